"""Trains a recipe from beginning to end: sources, model, training, the finished checkpoint with
its card.
"""

from __future__ import annotations

import logging
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from pyserini_repbert import __version__
from pyserini_repbert.checksums import write_checksums
from pyserini_repbert.data.values import read_object
from pyserini_repbert.errors import InputError, needs
from pyserini_repbert.files import StrPath
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint
from pyserini_repbert.names.topics import load_topics
from pyserini_repbert.ranking import Query
from pyserini_repbert.tasks.recipe import PRE_TRAINING, Recipe
from pyserini_repbert.tasks.task import Task
from pyserini_repbert.train.checkpoints import (
    base_reference,
    new_task,
    open_base,
    with_settings_of,
    write_checkpoint,
)
from pyserini_repbert.train.digests import input_digests
from pyserini_repbert.train.inputs import Guard, source_topics
from pyserini_repbert.train.order import check_order
from pyserini_repbert.train.output import TrainingOutput, is_first
from pyserini_repbert.train.pretraining import CorpusSource
from pyserini_repbert.train.result import Trained
from pyserini_repbert.train.sources import TrainingSource
from pyserini_repbert.train.stream import InstanceStream
from pyserini_repbert.train.teachers import (
    BiEncoderTeacher,
    CandidateScorer,
    CrossEncoderTeacher,
)
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

    The folder `output` appears when all is done, with the model card and the log.

    Parameters
    ----------
    recipe : what to train
    output : the checkpoint folder to make
    resume : continue from the last checkpoint; the losses equal those from a training without a
        stop
    overwrite : replace an earlier training's output and state
    device : 'cpu', or 'auto' for a GPU where there is one
    quiet : show no progress bar
    tensorboard : also write TensorBoard's event files, to `tensorboard` in the state, then in the
        output
    """
    check_machine(recipe, device, tensorboard)
    from transformers import set_seed
    from transformers.utils.logging import set_verbosity_error

    from pyserini_repbert.train.trainer import RankingTrainer

    set_verbosity_error()
    training_output = TrainingOutput(recipe, Path(output), resume, overwrite)
    earlier = training_output.earlier_result()
    if earlier is not None:
        return earlier
    base = open_base(recipe.base)
    training_output.check_apart(base)
    digests = input_digests(recipe, base) if is_first() else {}
    training_output.check_inputs(digests)

    given = recipe.ranking
    recipe = with_settings_of(base, recipe)
    validation_topics = _validation_topics(recipe)
    sources = opened_sources(recipe, _guard(recipe, validation_topics))
    validator = None
    if recipe.validation is not None:
        validator = Validator(recipe.validation, recipe.system, validation_topics)
    task = new_task(recipe, base, sources)
    _check_batch_size(recipe, task)
    settings = _settings_text(recipe, given, task)
    _log([settings])
    stream = InstanceStream(sources, recipe.training.seed, recipe.training.shuffle)
    grouped = check_order(recipe, task, stream)
    if grouped is not None and is_first():
        logger.warning(grouped)
    with training_output.prepare_state(digests) as state:
        if state.checkpoint is None:
            task.before_first_step(stream)
            _log(task.notes())
        set_seed(recipe.training.seed)
        trainer = RankingTrainer(
            task, stream, validator, base, state.folder, device, quiet, tensorboard
        )
        trainer.run(state.checkpoint)
        trained = Trained.from_log(training_output.target, trainer.state.log_history)
        if not is_first():
            return trained
        with training_output.finish() as folder:
            write_checkpoint(folder, trainer.accelerator.unwrap_model(trainer.model), base)
            # Of what loading reads, and of nothing that a user may want to edit.
            write_checksums(folder)
            card = model_card(recipe, base, trained, settings, task.notes())
            (folder / 'README.md').write_text(card, encoding='utf-8')
    return trained


def recorded_settings(recipe: Recipe, folder: Path) -> dict[str, Any]:
    """All that a recipe says, defaults too, with the `ranking` of the checkpoint in `folder`."""
    settings = asdict(recipe)
    # The output holds the recipe's file.
    del settings['text']
    settings['ranking'] |= read_object(folder / 'config.json').get('ranking') or {}
    return settings


def _log(lines: Sequence[str]) -> None:
    """Each line once, however many processes train."""
    if is_first():
        for line in lines:
            logger.info(line)


def _validation_topics(recipe: Recipe) -> list[Query]:
    validation = recipe.validation
    if validation is None:
        return []
    return source_topics(validation, validation.sample, recipe.training.seed)


def _guard(recipe: Recipe, validation_topics: Sequence[Query]) -> Guard:
    """Keeps test topics, the demo's among them, and validation topics out of training."""
    test_sets = () if recipe.allow_test_topics else ('demo', *recipe.test_topics)
    test_topics: list[Query] = []
    for name in test_sets:
        test_topics += load_topics(name)
    return Guard(test_topics, validation_topics)


def _check_batch_size(recipe: Recipe, task: Task) -> None:
    """Raise InputError for a batch that would end within an instance."""
    size = recipe.training.batch_size
    if size % task.inputs_per_instance:
        raise InputError(
            f'training.batch_size is {size}: an instance makes {task.inputs_per_instance} inputs, '
            'so a multiple of that was expected'
        )


def _settings_text(recipe: Recipe, given: Mapping[str, Any], task: Task) -> str:
    """'repbert: max_query_length 20 (recipe), …': the settings of the model, and who says so.

    Parameters
    ----------
    recipe : with the settings of its base
    given : the settings that the recipe itself had
    task : has the settings that were used
    """
    settings = []
    for key, value in task.ranking().items():
        if key == 'system':
            continue
        origin = 'default'
        if key in recipe.ranking:
            origin = 'recipe' if key in given else 'base'
        settings.append(f'{key} {value} ({origin})')
    return f'{recipe.system}: {", ".join(settings)}' if settings else 'pre-training'


def model_card(
    recipe: Recipe, base: Checkpoint, trained: Trained, settings: str, notes: Sequence[str]
) -> str:
    """The card in Markdown, with the YAML front matter that Hugging Face's hub reads.

    Parameters
    ----------
    recipe : of the training
    base : from which checkpoint
    trained : what came of it
    settings : of the model, as text
    notes : the task's
    """
    packages = ('torch', 'transformers', 'accelerate')
    versions = ', '.join(f'{name} {metadata.version(name)}' for name in packages)
    results = '\n'.join(f'- {line}' for line in _result_lines(recipe, trained, notes))
    return f"""---
license: {recipe.licence.lower()}
base_model: {base_reference(base)}
library_name: pyserini_repbert
---

# {recipe.name}

{recipe.description or f'{recipe.system} trained with pyserini_repbert.'}

- {settings}
- base: {base_reference(base)}, {_trained_part(recipe)}
- licence: {recipe.licence}
- made with: pyserini_repbert {__version__}, Python {platform.python_version()}, {versions}

## Results

{results}

## Recipe

```yaml
{recipe.text.rstrip()}
```
"""


def _result_lines(recipe: Recipe, trained: Trained, notes: Sequence[str]) -> list[str]:
    """The lines of the card's results."""
    lines = [
        f'steps: {trained.steps} of {recipe.training.steps}',
        f'mean training loss: {trained.loss:.4f}',
        *notes,
    ]
    validation = recipe.validation
    if validation is not None and trained.best is not None:
        lines.append(f'validation, {validation.measure}: {trained.validated}')
        if trained.cutoff is not None:
            best = f'{trained.cutoff} hits reranked, {validation.measure}: {trained.at_cutoff:.4f}'
            lines.append(f'best cut-off on the validation topics: {best}')
    return lines


def _trained_part(recipe: Recipe) -> str:
    """What of the base was trained, in words."""
    adapter = recipe.adapter
    if adapter is None:
        return 'full fine-tuning'
    if adapter.whole:
        return 'its layers whole'
    return f'LoRA adapter (rank {adapter.rank})'


def opened_sources(recipe: Recipe, guard: Guard) -> list[Any]:
    """The recipe's sources, opened: corpora for pre-training (`CorpusSource`), otherwise
    `TrainingSource`s.
    """
    if recipe.system == PRE_TRAINING:
        return [CorpusSource(source, f'data.{n}') for n, source in enumerate(recipe.data)]
    scorer: CandidateScorer | None = None
    if recipe.teacher is not None and recipe.teacher.checkpoint is not None:
        model = open_base(recipe.teacher.checkpoint)
        crosses = model.config.get('ranking', {}).get('system') == 'monobert'
        scorer = CrossEncoderTeacher(model) if crosses else BiEncoderTeacher(model)
    group = recipe.training.group
    return [
        TrainingSource(source, number, guard, group, recipe.teacher, scorer)
        for number, source in enumerate(recipe.data)
    ]


def check_machine(recipe: Recipe, device: str, tensorboard: bool = False) -> None:
    """Raise MissingDependencyError or InputError if packages or the device do not support the
    request.
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
    on_gpu = device == 'auto' and torch.cuda.is_available()
    if recipe.training.precision == 'float16' and not on_gpu:
        raise InputError(
            'training.precision is float16, which needs a GPU: take float32 or bfloat16'
        )
