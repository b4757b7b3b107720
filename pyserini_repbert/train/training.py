"""Trains a recipe from beginning to end: sources, model, training, the finished checkpoint with
its card.
"""

from __future__ import annotations

import logging
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from pyserini_repbert import __version__
from pyserini_repbert.checksums import write_checksums
from pyserini_repbert.errors import InputError, needs
from pyserini_repbert.files import StrPath
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint
from pyserini_repbert.names.topics import load_topics
from pyserini_repbert.systems.monobert.network import NAME as MONOBERT
from pyserini_repbert.tasks.recipe import (
    Recipe,
    System,
)
from pyserini_repbert.train.checkpoints import (
    base_reference,
    new_task,
    open_base,
    with_settings_of,
    write_checkpoint,
)
from pyserini_repbert.train.digests import input_digests
from pyserini_repbert.train.inputs import (
    BiEncoderTeacher,
    CrossEncoderTeacher,
    Guard,
    source_topics,
)
from pyserini_repbert.train.output import (
    Trained,
    check_apart,
    check_inputs,
    earlier_result,
    finished_output,
    is_first,
    state_folder,
)
from pyserini_repbert.train.pretraining import CorpusSource
from pyserini_repbert.train.sources import InstanceStream, TrainingSource
from pyserini_repbert.train.validation import Validator

logger = logging.getLogger(__name__)


def train(
    recipe: Recipe,
    output: StrPath,
    resume: bool = False,
    overwrite: bool = False,
    device: str = 'auto',
    quiet: bool = True,
    tensorboard: bool = False,
) -> Trained:
    """Train a recipe's model; while it runs, its state is in the folder `OUTPUT.training`.

    The folder `output` appears when all is done, with the model card and the log. With `resume`,
    training goes on from the last checkpoint, and the losses are those of a training that was never
    stopped. With `overwrite`, it replaces an earlier training's output and state. `device` is
    'cpu', or 'auto' for a GPU where there is one. `tensorboard` also writes TensorBoard's event
    files, to `tensorboard` in the state, then in the output.
    """
    check_machine(recipe, device, tensorboard)
    from transformers import set_seed
    from transformers.utils.logging import set_verbosity_error

    from pyserini_repbert.train.trainer import RankingTrainer

    set_verbosity_error()
    target = Path(output)
    if earlier := earlier_result(recipe, target, resume, overwrite):
        return earlier
    base = open_base(recipe.base)
    check_apart(recipe, base, target)
    # the first process answers for the inputs, as for the state
    digests = input_digests(recipe, base) if is_first() else {}
    if resume and not overwrite and is_first():
        check_inputs(target, digests)
    given = recipe.ranking
    recipe = with_settings_of(base, recipe)
    settings = recipe.training
    chosen = (
        source_topics(recipe.validation, recipe.validation.sample, settings.seed)
        if recipe.validation
        else []
    )
    test_sets = () if recipe.allow_test_topics else ('demo', *recipe.test_topics)
    test = [query.text for name in test_sets for query in load_topics(name)]
    guard = Guard(test, [query.text for query in chosen])
    sources = opened_sources(recipe, guard)
    validator = Validator(recipe.validation, recipe.system, chosen) if recipe.validation else None
    task = new_task(recipe, base, sources)
    if settings.batch_size % task.inputs_per_instance:
        raise InputError(
            f'training.batch_size is {settings.batch_size}: an instance makes '
            f'{task.inputs_per_instance} inputs, '
            'so a multiple of that was expected'
        )
    origins = dict.fromkeys(recipe.ranking, 'base') | dict.fromkeys(given, 'recipe')
    ranking = {key: value for key, value in task.ranking().items() if key != 'system'}
    read = ', '.join(
        f'{key} {value} ({origins.get(key, "default")})' for key, value in ranking.items()
    )
    settings_line = f'{recipe.system}: {read}' if read else 'pre-training'
    if is_first():
        logger.info(settings_line)
    stream = InstanceStream(sources, settings.seed, settings.shuffle)
    with state_folder(recipe, target, digests, resume, overwrite) as (work, checkpoint):
        if checkpoint is None:
            task.before_first_step(stream)
        set_seed(settings.seed)
        trainer = RankingTrainer(task, stream, validator, base, work, device, quiet, tensorboard)
        trainer.run(checkpoint)
        trained = Trained.of(target, trainer.state.log_history)
        if not is_first():
            return trained
        with finished_output(target) as folder:
            write_checkpoint(folder, trainer.accelerator.unwrap_model(trainer.model), base)
            write_checksums(
                folder
            )  # of what loading reads, and of nothing that a user may want to edit
            card = model_card(recipe, base, trained, settings_line, task.notes())
            (folder / 'README.md').write_text(card, encoding='utf-8')
    return trained


def model_card(
    recipe: Recipe, base: Checkpoint, trained: Trained, settings: str, notes: Sequence[str]
) -> str:
    """The card in Markdown, with the YAML front matter that Hugging Face's hub reads, and the
    task's `notes`.
    """
    adapter = recipe.adapter
    validation = recipe.validation
    kind = f'LoRA adapter (rank {adapter.rank})' if adapter else 'full fine-tuning'
    kind = 'its layers whole' if adapter and adapter.whole else kind
    lines = [
        f'steps: {trained.steps} of {recipe.training.steps}',
        f'mean training loss: {trained.loss:.4f}',
        *notes,
    ]
    if validation is not None and trained.best is not None:
        lines.append(f'validation, {validation.measure}: {trained.validated}')
        if trained.cutoff is not None:
            best = f'{trained.cutoff} hits reranked, {validation.measure}: {trained.at_cutoff:.4f}'
            lines.append(f'best cut-off on the validation topics: {best}')
    versions = ', '.join(
        f'{name} {metadata.version(name)}' for name in ('torch', 'transformers', 'accelerate')
    )
    results = '\n'.join(f'- {line}' for line in lines)
    return f"""---
license: {recipe.licence.lower()}
base_model: {base_reference(base)}
library_name: pyserini_repbert
---

# {recipe.name}

{recipe.description or f'{recipe.system} trained with pyserini_repbert.'}

- {settings}
- base: {base_reference(base)}, {kind}
- licence: {recipe.licence}
- made with: pyserini_repbert {__version__}, Python {platform.python_version()}, {versions}

## Results

{results}

## Recipe

```yaml
{recipe.text.rstrip()}
```
"""


def opened_sources(recipe: Recipe, guard: Guard) -> list[Any]:
    """The recipe's sources, opened: corpora for pre-training (`CorpusSource`), else
    `TrainingSource`s.
    """
    if recipe.system is System.MLM:
        return [CorpusSource(source, f'data.{n}') for n, source in enumerate(recipe.data)]
    scorer: BiEncoderTeacher | CrossEncoderTeacher | None = None
    if recipe.teacher is not None and recipe.teacher.checkpoint is not None:
        model = open_base(recipe.teacher.checkpoint)
        crosses = model.config.get('ranking', {}).get('system') == MONOBERT
        scorer = CrossEncoderTeacher(model) if crosses else BiEncoderTeacher(model)
    teaching = recipe.training.group, recipe.teacher, scorer
    return [TrainingSource(source, n, guard, *teaching) for n, source in enumerate(recipe.data)]


def check_machine(recipe: Recipe, device: str, tensorboard: bool = False) -> None:
    """Raise MissingDependencyError or InputError where packages or the device do not allow what
    is asked for.
    """
    import torch

    with needs('accelerate', 'training', 'train'):
        import accelerate  # noqa: F401
    if tensorboard:
        with needs('tensorboard', 'TensorBoard', 'train'):
            import torch.utils.tensorboard

    if device not in ('auto', 'cpu'):
        raise InputError(
            f"device '{device}' was given: 'cpu' or 'auto' (choose GPUs with CUDA_VISIBLE_DEVICES)"
        )
    if recipe.training.precision == 'float16' and not (
        device == 'auto' and torch.cuda.is_available()
    ):
        raise InputError(
            'training.precision is float16, which needs a GPU: take float32 or bfloat16'
        )
