"""From a task to a checkpoint folder: config.json, weights or adapter, tokenizer files, and the model card."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

import pyserini_repbert
from pyserini_repbert import catalog
from pyserini_repbert.models.cedr.settings import CedrSettings
from pyserini_repbert.models.checkpoints.adapter import PREFIX
from pyserini_repbert.models.checkpoints.folder import ADAPTER, HOLDS_HEADS, WEIGHTS, Checkpoint
from pyserini_repbert.train.output import Trained
from pyserini_repbert.train.recipe import Adapter, Recipe, Source, System
from pyserini_repbert.train.starting import LORA, lora_config
from pyserini_repbert.train.tasks.base import Task

_TOKENIZER = ('vocab.txt', 'tokenizer.json', 'tokenizer_config.json', 'special_tokens_map.json')
_NOT_KEPT = ('_name_or_path', 'architectures', 'transformers_version', 'ranking', HOLDS_HEADS)


@torch.no_grad()
def write_checkpoint(folder: Path, task: Task, base: Checkpoint, adapter: Adapter | None) -> None:
    """Write the task's model as it is now into an existing folder, in the form that `open_checkpoint` reads."""
    config = {key: value for key, value in task.body_config(base.config, task.recipe).items() if key not in _NOT_KEPT}
    if ranking := task.ranking():
        config['ranking'] = ranking
    if adapter is not None:
        config[HOLDS_HEADS] = True
    (folder / 'config.json').write_text(json.dumps(config, indent=2) + '\n', encoding='utf-8')
    tensors = {name: value.detach().float().cpu() for name, value in task.ranker.state_dict().items()}
    tensors = {name: value.contiguous().clone() for name, value in task.finished(tensors).items()}
    if adapter is None:
        save_file(tensors, folder / WEIGHTS, metadata={'format': 'pt'})
        shutil.copymode(folder / 'config.json', folder / WEIGHTS)  # safetensors makes files for their owner only
        for name in _TOKENIZER:
            if (base.tokenizer_folder / name).is_file():
                shutil.copyfile(base.tokenizer_folder / name, folder / name)
        return
    save_file(_adapter_tensors(tensors, task.trained_in_body), folder / ADAPTER, metadata={'format': 'pt'})
    shutil.copymode(folder / 'config.json', folder / ADAPTER)
    settings = lora_config(adapter)
    settings.base_model_name_or_path = base_reference(base)
    settings.inference_mode = True
    settings.save_pretrained(folder)


def base_reference(base: Checkpoint) -> str:
    """The base's name in an adapter's settings: its catalog name, else the absolute path of its folder."""
    named = catalog.checkpoint_kind(base.name) is not None
    return base.name if named else str(Path(base.name).resolve())


def _adapter_tensors(tensors: dict[str, Tensor], trained_in_body: tuple[str, ...]) -> dict[str, Tensor]:
    """Low-rank updates, heads, and the body's own weights that were trained, under PEFT's names."""
    named = {}
    for name, value in tensors.items():
        if LORA in name:
            named[PREFIX + name.replace('.default.', '.')] = value
        elif not name.startswith('bert.') or name.startswith(trained_in_body):
            named[PREFIX + name.replace('.base_layer.', '.')] = value
    return named


def model_card(recipe: Recipe, base: Checkpoint, trained: Trained, notes: Sequence[str]) -> str:
    """The card in Markdown, with the YAML front matter that Hugging Face's hub reads, and the task's `notes`."""
    kind = 'full fine-tuning'
    if recipe.adapter:
        kind = 'its layers whole' if recipe.adapter.whole else f'LoRA adapter (rank {recipe.adapter.rank})'
    if recipe.adapter and recipe.adapter.start:
        kind += f', which goes on from {recipe.adapter.start}'
    if recipe.training.unit_layer:
        kind += ', and a last layer that makes vectors equally long'
    lines = [f'steps: {trained.steps} of {recipe.training.steps}', f'mean training loss: {trained.loss:.4f}', *notes]
    if recipe.validation is not None and trained.best is not None:
        lines.append(f'validation, {recipe.validation.measure}: {trained.best:.4f}')
        if trained.cutoff is not None:
            lines.append(
                f'best cut-off on the validation topics: {trained.cutoff} hits reranked, '
                f'{recipe.validation.measure}: {trained.at_cutoff:.4f}'
            )
    versions = ', '.join(f'{name} {metadata.version(name)}' for name in ('torch', 'transformers', 'accelerate'))
    sources = '\n'.join(f'- {described(source)}' for source in recipe.data)
    results = '\n'.join(f'- {line}' for line in lines)
    return f"""---
license: {recipe.licence.lower()}
base_model: {base_reference(base)}
library_name: pyserini_repbert
---

# {recipe.name}

{recipe.description or f'{recipe.system} trained with pyserini_repbert.'}

- system: {system_of(recipe)}
- base: {base_reference(base)}, {kind}
- licence: {recipe.licence}
- code: pyserini_repbert {pyserini_repbert.__version__}, commit {commit()}
- made with: Python {platform.python_version()}, {versions}

## Data

{sources}

## Results

{results}

## Recipe

```yaml
{recipe.text.rstrip()}
```
"""


def system_of(recipe: Recipe) -> str:
    """The system and, for CEDR, its architecture."""
    if recipe.system is not System.CEDR:
        return str(recipe.system)
    settings = CedrSettings.from_ranking(recipe.ranking)
    return f'{recipe.system}, {settings.architecture}{"" if settings.joint else " without [CLS] (joint: false)"}'


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
    """The commit of the repository that this package's source lies in, '-dirty' if changed since; else 'unknown'."""
    folder = str(Path(pyserini_repbert.__file__).parent)
    command = ['git', '-C', folder, 'describe', '--always', '--dirty', '--abbrev=40', '--exclude=*']
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return 'unknown'
