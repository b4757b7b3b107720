"""From a base to a task: its weights, new heads, a LoRA adapter; and from a trained task to a
checkpoint folder.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from pyserini_repbert import catalog
from pyserini_repbert.data.values import read_object
from pyserini_repbert.errors import DamagedFileError, InputError, needs
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint, open_checkpoint
from pyserini_repbert.models.checkpoints.folder import ADAPTER, ADAPTER_CONFIG, HOLDS_HEADS, WEIGHTS
from pyserini_repbert.models.checkpoints.weights import PREFIX, with_unit_layer
from pyserini_repbert.systems.registry import load, systems
from pyserini_repbert.tasks.recipe import PRE_TRAINING, Adapter, Recipe
from pyserini_repbert.tasks.task import Task
from pyserini_repbert.train.optimizing import freeze_body
from pyserini_repbert.train.pretraining import PreTrainingTask

logger = logging.getLogger(__name__)

_TYPES = 'token_type_embeddings.weight'
_LORA = 'lora_'
_NOT_KEPT = ('_name_or_path', 'architectures', 'transformers_version', 'ranking', HOLDS_HEADS)


def open_base(name: str) -> Checkpoint:
    """A checkpoint that a recipe names: one of the catalog's bases, encoders or rerankers, or a
    folder.
    """
    return open_checkpoint(name, catalog.checkpoint_kind(name) or 'bases')


def task_class(system: str) -> type[Task]:
    """The task that trains a system, or BERT itself by pre-training."""
    if system == PRE_TRAINING:
        return PreTrainingTask
    task: type[Task] = load(str(systems()[system].task))
    return task


def new_task(recipe: Recipe, base: Checkpoint, sources: Sequence[Any]) -> Task:
    """A recipe's task: a model with the base's weights.

    Weights that the base lacks are drawn with the seed.
    """
    kind = task_class(recipe.system)
    torch.manual_seed(recipe.training.seed)
    config = kind.body_config(base.config, recipe)
    if (dropout := recipe.training.dropout) is not None:
        config |= {'hidden_dropout_prob': dropout, 'attention_probs_dropout_prob': dropout}
    task = kind(recipe, base.tokenizer(), sources, config)
    tensors = with_unit_layer(base.tensors(), config)
    start_from(task.ranker, tensors, base.name)
    task.begun(tensors)
    if not recipe.training.learning_rate:
        freeze_body(task)
    if recipe.adapter is not None:
        add_adapter(task, recipe.adapter)
        if recipe.adapter.start is not None:
            go_on_from(task, recipe.adapter, open_base(recipe.adapter.start), base)
    return task


def with_settings_of(base: Checkpoint, recipe: Recipe) -> Recipe:
    """The recipe with the `ranking` of a base of the same system, in what the recipe leaves
    open.
    """
    settings = base.config.get('ranking') or {}
    if settings.get('system') != recipe.system:
        return recipe
    known = {key: settings[key] for key in task_class(recipe.system).known if key in settings}
    return replace(recipe, ranking=known | recipe.ranking)


def start_from(module: nn.Module, tensors: Mapping[str, Tensor], name: str) -> None:
    """Copy a base's weights into `module`; heads, and perhaps the pooler, that the base lacks stay
    new.

    Token types that the base lacks become zeros, as in `DuoBert.with_three_segments`.
    """
    new = []
    misfits = []
    for key, weights in module.state_dict().items():
        value = tensors.get(key)
        if value is not None and value.shape == weights.shape:
            weights.copy_(value)
        elif value is not None and _is_more_types(key, weights, than=value):
            weights.zero_()
            weights[: len(value)] = value
        elif _may_be_new(key, value):
            new.append(key)
        else:
            misfits.append(key)
    if misfits:
        more = f' and {len(misfits) - 2} more' if len(misfits) > 2 else ''
        raise DamagedFileError(
            f"base '{name}' does not fit: {', '.join(misfits[:2])}{more} missing or of another "
            f'shape'
        )
    if new:
        logger.info("not in base '%s', and new: %s", name, ', '.join(new))


def _is_more_types(key: str, weights: Tensor, *, than: Tensor) -> bool:
    """Whether these are embeddings of token types, more than another checkpoint has."""
    return key.endswith(_TYPES) and len(than) < len(weights)


def _may_be_new(key: str, value: Tensor | None) -> bool:
    """Whether weights that do not fit may stay new: of a head, or of a pooler that is missing."""
    if key.startswith('bert.pooler.'):
        return value is None
    return not key.startswith('bert.')


def add_adapter(task: Task, adapter: Adapter) -> None:
    """Freeze the body except for `task.trained_in_body`, and put low-rank updates beside its
    layers.

    With `adapter.whole`, train those layers in full instead.
    """
    with needs('peft', 'training an adapter', 'train'):
        from peft import inject_adapter_in_model
    if adapter.whole:
        task.trained_in_body = (*task.trained_in_body, 'bert.encoder.')
    else:
        width = int(task.ranker.bert.config.hidden_size)  # type: ignore[union-attr, arg-type]
        if adapter.rank > width:
            raise InputError(
                f"adapter.rank is {adapter.rank}: expected at most {width}, the base's hidden size"
            )
        inject_adapter_in_model(lora_config(adapter), task.ranker)
    for name, parameter in task.ranker.named_parameters():
        parameter.requires_grad_(_is_trained(name, task))


def _is_trained(name: str, task: Task) -> bool:
    """Whether a weight is trained beside an adapter: low-rank updates, heads, and what else is
    trained of the body.
    """
    in_body = name.startswith('bert.')
    return _LORA in name or not in_body or name.startswith(task.trained_in_body)


@torch.no_grad()
def go_on_from(task: Task, adapter: Adapter, start: Checkpoint, base: Checkpoint) -> None:
    """Copy a trained adapter, its heads and its other weights.

    Token types that it lacks do not change.

    Parameters
    ----------
    task : gets the weights
    adapter : the recipe's
    start : the checkpoint of the trained adapter
    base : the recipe's, which must be the base of `start`, too
    """
    file = start.folder / ADAPTER
    if not file.is_file() or start.base is None:
        raise InputError(
            f"adapter.start '{start.name}' is not an adapter checkpoint: it has no {ADAPTER}"
        )
    settings = read_object(start.folder / ADAPTER_CONFIG)
    rank = settings.get('r')
    alpha = settings.get('lora_alpha')
    expected = (adapter.rank, adapter.alpha, base.weights_sha256)
    if (rank, alpha, start.base.weights_sha256) != expected:
        raise InputError(
            f"adapter.start '{start.name}' has rank {rank}, alpha {alpha} and base "
            f'{start.base.name}: '
            f'expected rank {adapter.rank}, alpha {adapter.alpha} and base {base.name}'
        )
    weights = task.ranker.state_dict()
    for name, value in load_file(file).items():
        key = _name_in_training(name)
        target = weights.get(key)
        if target is not None and _is_more_types(key, target, than=value):
            target = target[: len(value)]
        if target is None or target.shape != value.shape:
            raise InputError(
                f"adapter.start '{start.name}' does not fit: {key} is not part of this model"
            )
        target.copy_(value)


def _name_in_training(name: str) -> str:
    """The name in training of a weight that an adapter's file calls by PEFT's name."""
    inner = name.removeprefix(PREFIX)
    for matrix in ('lora_A', 'lora_B'):
        inner = inner.replace(f'.{matrix}.', f'.{matrix}.default.')
    return inner


def _name_in_file(name: str) -> str:
    """PEFT's name of a weight that has this name in training."""
    return PREFIX + name.replace('.default.', '.').replace('.base_layer.', '.')


def lora_config(adapter: Adapter) -> Any:
    """PEFT's configuration of an adapter."""
    from peft import LoraConfig

    return LoraConfig(
        r=adapter.rank,
        lora_alpha=adapter.alpha,
        lora_dropout=adapter.dropout,
        target_modules=rf'bert\.encoder\..*\.({"|".join(adapter.targets)})',
    )


@torch.no_grad()
def write_checkpoint(folder: Path, task: Task, base: Checkpoint) -> None:
    """Write the task's present model into an existing folder, in the form that `open_checkpoint`
    reads.
    """
    _write_config(folder / 'config.json', task, base)
    in_training = {
        name: value.detach().float().cpu() for name, value in task.ranker.state_dict().items()
    }
    tensors = {
        name: value.contiguous().clone() for name, value in task.finished(in_training).items()
    }
    adapter = task.recipe.adapter
    if adapter is None:
        file = folder / WEIGHTS
        base.copy_tokenizer(folder)
    else:
        file = folder / ADAPTER
        tensors = {
            _name_in_file(name): value for name, value in tensors.items() if _is_trained(name, task)
        }
        settings = lora_config(adapter)
        settings.base_model_name_or_path = base_reference(base)
        settings.inference_mode = True
        settings.save_pretrained(folder)
    save_file(tensors, file, metadata={'format': 'pt'})
    # safetensors makes files for their owner only.
    shutil.copymode(folder / 'config.json', file)


def _write_config(path: Path, task: Task, base: Checkpoint) -> None:
    """Write the config.json of a checkpoint."""
    values = task.body_config(base.config, task.recipe)
    config = {key: value for key, value in values.items() if key not in _NOT_KEPT}
    ranking = task.ranking()
    if ranking:
        config['ranking'] = ranking
    if task.recipe.adapter is not None:
        config[HOLDS_HEADS] = True
    path.write_text(json.dumps(config, indent=2) + '\n', encoding='utf-8')


def base_reference(base: Checkpoint) -> str:
    """The base's name in an adapter's settings: its catalog name, otherwise the absolute path of
    its folder.
    """
    if catalog.checkpoint_kind(base.name) is not None:
        return base.name
    return str(Path(base.name).resolve())
