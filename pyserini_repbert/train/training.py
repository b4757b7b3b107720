"""A recipe from beginning to end: sources, model, training, the finished checkpoint with its card."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
from pathlib import Path
from typing import Any

from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError, MissingDependencyError
from pyserini_repbert.files import StrPath, atomic_file, atomic_folder
from pyserini_repbert.train.inputs import load_any_topics, source_topics
from pyserini_repbert.train.leakage import TEST_SETS, Guard
from pyserini_repbert.train.recipe import Recipe, System
from pyserini_repbert.train.result import Trained
from pyserini_repbert.train.sources import InstanceStream, TrainingSource

RECIPE = 'recipe.yaml'
_CHECKPOINT = re.compile(r'checkpoint-(\d+)$')


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

    Parameters
    ----------
    output : the checkpoint folder, which appears when all is done, with the model card and the log
    resume : go on from the last state; the losses are those of a training that was never stopped
    overwrite : remove an earlier output, and the state of an earlier training
    device : 'cpu', or 'auto' for a GPU where there is one
    quiet : no progress bar
    tensorboard : write TensorBoard's event files too, in the folder `tensorboard` of the state, then of the output

    Raises
    ------
    InputError
        for data or settings that do not fit, and test topics among the training data
    MismatchError
        where `resume` meets the state of another recipe
    """
    check_machine(recipe, device, tensorboard)
    from transformers import set_seed
    from transformers.utils import logging

    from pyserini_repbert.train.card import model_card
    from pyserini_repbert.train.logs import AT_CUTOFF, CUTOFF, EVENTS, LOG
    from pyserini_repbert.train.saving import write_checkpoint
    from pyserini_repbert.train.starting import new_task, open_base
    from pyserini_repbert.train.trainer import RankingTrainer
    from pyserini_repbert.train.validation import Validator

    logging.set_verbosity_error()
    target = Path(output)
    work = target.with_name(f'{target.name}.training')
    checkpoint = prepared(recipe, target, work, resume, overwrite)
    base = open_base(recipe.base)
    settings = recipe.training
    chosen = source_topics(recipe.validation, recipe.validation.sample, settings.seed) if recipe.validation else []
    guard = Guard(forbidden_texts(recipe), [query.text for query in chosen])
    sources = opened_sources(recipe, guard)
    validator = Validator(recipe.validation, recipe.system, chosen) if recipe.validation else None
    task = new_task(recipe, base, sources)
    if settings.batch_size % task.inputs_per_instance:
        raise InputError(
            f'training.batch_size is {settings.batch_size}: an instance makes {task.inputs_per_instance} inputs, '
            'so a multiple of that was expected'
        )
    set_seed(settings.seed)
    stream = InstanceStream(sources, settings.seed, settings.shuffle)
    trainer = RankingTrainer(task, recipe, stream, validator, base, work, device, quiet, tensorboard)
    metrics = trainer.run(checkpoint)
    state = trainer.state
    best = None if state.best_metric is None else float(state.best_metric)
    tuned: dict[str, Any] = next((row for row in reversed(state.log_history) if CUTOFF in row), {})
    done = Trained(target, state.global_step, metrics['train_loss'], best, tuned.get(CUTOFF), tuned.get(AT_CUTOFF))
    if not trainer.is_world_process_zero():
        return done
    trained = trainer.accelerator.unwrap_model(trainer.model)
    if overwrite and target.is_dir():
        shutil.rmtree(target)
    with atomic_folder(target) as made:
        write_checkpoint(made, trained, base, recipe.adapter)
        for name in (LOG, RECIPE):
            shutil.copyfile(work / name, made / name)
        if (work / EVENTS).is_dir():
            shutil.copytree(work / EVENTS, made / EVENTS)
        with atomic_file(made / 'README.md') as stream_out:
            stream_out.write(model_card(recipe, base, done))
    shutil.rmtree(work)
    return done


def opened_sources(recipe: Recipe, guard: Guard) -> list[Any]:
    """The recipe's sources: corpora for pre-training, topics with their judgments otherwise."""
    if recipe.system is System.MLM:
        from pyserini_repbert.train.tasks.pretraining import CorpusSource

        return [CorpusSource(source, f'data.{n}') for n, source in enumerate(recipe.data)]
    return [TrainingSource(source, n, guard, f'data.{n}') for n, source in enumerate(recipe.data)]


def prepared(recipe: Recipe, target: Path, work: Path, resume: bool, overwrite: bool) -> Path | None:
    """Make the folder of the training's state ready; the state to go on from, None to begin.

    With several processes, the first one makes ready and checks.

    Raises InputError or MismatchError where something is in the way that `resume` or `overwrite` do not allow.
    """
    if int(os.environ.get('RANK', '0')):
        return last_checkpoint(work) if resume and work.is_dir() else None
    if target.exists() and not overwrite:
        raise InputError(f'{target} is there already: give another --output, or --overwrite')
    if overwrite and work.exists():
        shutil.rmtree(work)
    if not work.exists():
        if resume and not overwrite:
            raise InputError(f'{work} is not there: nothing to resume, leave out --resume')
        work.mkdir(parents=True)
        with atomic_file(work / RECIPE) as stream:
            stream.write(recipe.text)
        return None
    if not resume:
        if not any(work.iterdir()):
            return None
        raise InputError(f'{work} holds a training that was stopped: pass --resume, or --overwrite')
    before = (work / RECIPE).read_text(encoding='utf-8') if (work / RECIPE).is_file() else None
    if before != recipe.text:
        raise MismatchError(
            f'{work} holds a training of another recipe or other settings: give the same, or --overwrite'
        )
    return last_checkpoint(work)


def last_checkpoint(work: Path) -> Path | None:
    """The newest whole state in a folder; None where there is none yet."""
    found = {int(match[1]): path for path in work.iterdir() if (match := _CHECKPOINT.search(path.name))}
    whole = {step: path for step, path in found.items() if (path / 'trainer_state.json').is_file()}
    if found and not whole:
        raise DamagedFileError(f'{work} holds no whole state of the training: begin again with --overwrite')
    return whole[max(whole)] if whole else None


def forbidden_texts(recipe: Recipe) -> list[str]:
    """The texts of the topics that may not be trained on."""
    if recipe.allow_test_topics:
        return []
    return [query.text for name in (*TEST_SETS, *recipe.test_topics) for query in load_any_topics(name)]


def check_machine(recipe: Recipe, device: str, tensorboard: bool) -> None:
    """Raise where packages, or the device, do not allow what is asked for."""
    for package in ('transformers', 'accelerate'):
        if importlib.util.find_spec(package) is None:
            raise MissingDependencyError.of(package, 'training', "'pyserini-repbert[train]'")
    if tensorboard and importlib.util.find_spec('tensorboard') is None:
        raise MissingDependencyError.of('tensorboard', "TensorBoard's log", "'pyserini-repbert[train]'")
    import torch

    if device not in ('auto', 'cpu'):
        raise InputError(f"device '{device}' was given: 'cpu' or 'auto' (choose GPUs with CUDA_VISIBLE_DEVICES)")
    has_gpu = device == 'auto' and torch.cuda.is_available()
    if recipe.training.precision == 'float16' and not has_gpu:
        raise InputError('training.precision is float16, which needs a GPU: take float32 or bfloat16')
    with contextlib.suppress(AttributeError):
        torch.backends.cuda.matmul.allow_tf32 = False
