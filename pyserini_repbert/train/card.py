"""The model card of a trained checkpoint: base, data, recipe, commit, results, licence."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import pyserini_repbert
from pyserini_repbert.models.cedr import CedrSettings
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint
from pyserini_repbert.train.recipe import Recipe, Source, System
from pyserini_repbert.train.result import Trained
from pyserini_repbert.train.saving import base_reference


def model_card(recipe: Recipe, base: Checkpoint, done: Trained, notes: Sequence[str] = ()) -> str:
    """The card in Markdown, with the YAML front matter that Hugging Face's hub reads.

    Parameters
    ----------
    notes : lines about the training, from `Task.notes`
    """
    kind = 'full fine-tuning'
    if recipe.adapter:
        kind = 'its layers whole' if recipe.adapter.whole else f'LoRA adapter (rank {recipe.adapter.rank})'
    if recipe.adapter and recipe.adapter.start:
        kind += f', which goes on from {recipe.adapter.start}'
    if recipe.training.unit_layer:
        kind += ', and a last layer that makes vectors equally long'
    results = [f'- steps: {done.steps} of {recipe.training.steps}', f'- mean training loss: {done.loss:.4f}']
    results += [f'- {note}' for note in notes]
    if recipe.validation is not None and done.best is not None:
        results.append(f'- validation, {recipe.validation.measure}: {done.best:.4f}')
        if done.cutoff is not None:
            results.append(
                f'- best cut-off on the validation topics: {done.cutoff} hits reranked, '
                f'{recipe.validation.measure}: {done.at_cutoff:.4f}'
            )
    versions = ', '.join(f'{name} {metadata.version(name)}' for name in ('torch', 'transformers', 'accelerate'))
    return '\n'.join(
        [
            '---',
            f'license: {recipe.licence.lower()}',
            f'base_model: {base_reference(base)}',
            'library_name: pyserini_repbert',
            '---',
            '',
            f'# {recipe.name}',
            '',
            recipe.description or f'{recipe.system} trained with pyserini_repbert.',
            '',
            f'- system: {system_of(recipe)}',
            f'- base: {base_reference(base)}, {kind}',
            f'- licence: {recipe.licence}',
            f'- code: pyserini_repbert {pyserini_repbert.__version__}, commit {commit()}',
            f'- made with: Python {platform.python_version()}, {versions}',
            '',
            '## Data',
            '',
            *(f'- {described(source)}' for source in recipe.data),
            '',
            '## Results',
            '',
            *results,
            '',
            '## Recipe',
            '',
            '```yaml',
            recipe.text.rstrip(),
            '```',
            '',
        ]
    )


def system_of(recipe: Recipe) -> str:
    """The system and, for CEDR, its architecture."""
    if recipe.system is not System.CEDR:
        return str(recipe.system)
    settings = CedrSettings.from_ranking(recipe.ranking)
    if settings.joint:
        return f'{recipe.system}, {settings.architecture}'
    return f'{recipe.system}, {settings.architecture} without [CLS] (joint: false; "BERT (fine-tuned)" in CEDR Table 1)'


def described(source: Source) -> str:
    """A source in one line."""
    parts = {
        'topics': source.topics,
        'qrels': source.qrels,
        'triples': source.triples,
        'negatives from': source.run,
        "teacher's scores": source.scores,
        'passages': source.corpus or source.index,
    }
    return ', '.join(f'{name} {value}' for name, value in parts.items() if value)


def commit() -> str:
    """The commit of the repository that this package's source lies in, or 'unknown'; '+' marks uncommitted changes."""
    folder = Path(pyserini_repbert.__file__).parent
    try:
        found = _git(folder, 'rev-parse', 'HEAD')
        return found + ('+' if _git(folder, 'status', '--porcelain', '--', '.') else '')
    except (OSError, subprocess.CalledProcessError):
        return 'unknown'


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(['git', '-C', str(folder), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()
