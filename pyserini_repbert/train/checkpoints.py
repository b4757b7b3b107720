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
from pyserini_repbert.tasks.recipe import Adapter, Recipe, System
from pyserini_repbert.tasks.task import Task
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
    if system == System.MLM:
        return PreTrainingTask
    task: type[Task] = load(str(systems()[system].task))
    return task


def new_task(recipe: Recipe, base: Checkpoint, sources: Sequence[Any]) -> Task:
    """A recipe's task: a model with the base's weights, and new ones, drawn by the seed, where
    the base has none.
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
    if recipe.adapter is not None:
        add_adapter(task, recipe.adapter)
        if recipe.adapter.start is not None:
            go_on_from(task, recipe.adapter, open_base(recipe.adapter.start), base)
    return task


def with_settings_of(base: Checkpoint, recipe: Recipe) -> Recipe:
    """The recipe with the `ranking` of a base of its own system, in what the recipe leaves open."""
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
    wrong = []
    for key, weights in module.state_dict().items():
        value = tensors.get(key)
        if value is not None and value.shape == weights.shape:
            weights.copy_(value)
        elif value is not None and key.endswith(_TYPES) and len(value) < len(weights):
            weights.zero_()
            weights[: len(value)] = value
        elif key.startswith('bert.') and not (value is None and key.startswith('bert.pooler.')):
            wrong.append(key)
        else:
            new.append(key)
    if wrong:
        more = f' and {len(wrong) - 2} more' if len(wrong) > 2 else ''
        raise DamagedFileError(
            f"base '{name}' does not fit: {', '.join(wrong[:2])}{more} missing or of another shape"
        )
    if new:
        logger.info("not in base '%s', and new: %s", name, ', '.join(new))


def add_adapter(task: Task, adapter: Adapter) -> None:
    """Freeze the body but for `task.trained_in_body`, and put low-rank updates beside its layers.

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
        parameter.requires_grad_(
            _LORA in name or not name.startswith('bert.') or name.startswith(task.trained_in_body)
        )


@torch.no_grad()
def go_on_from(task: Task, adapter: Adapter, start: Checkpoint, base: Checkpoint) -> None:
    """Copy a trained adapter, its heads and its other weights; token types that it lacks stay as
    they are.
    """
    file = start.folder / ADAPTER
    if not file.is_file() or start.base is None:
        raise InputError(
            f"adapter.start '{start.name}' is no adapter checkpoint: {ADAPTER} was expected in it"
        )
    settings = read_object(start.folder / ADAPTER_CONFIG)
    given = (settings.get('r'), settings.get('lora_alpha'), start.base.weights_sha256)
    if given != (adapter.rank, adapter.alpha, base.weights_sha256):
        raise InputError(
            f"adapter.start '{start.name}' has rank {given[0]}, alpha {given[1]} and base "
            f'{start.base.name}: '
            f'expected rank {adapter.rank}, alpha {adapter.alpha} and base {base.name}'
        )
    weights = task.ranker.state_dict()
    for name, value in load_file(file).items():
        key = (
            name.removeprefix(PREFIX)
            .replace('.lora_A.', '.lora_A.default.')
            .replace('.lora_B.', '.lora_B.default.')
        )
        place = weights.get(key)
        if place is not None and key.endswith(_TYPES) and len(value) < len(place):
            place = place[: len(value)]
        if place is None or place.shape != value.shape:
            raise InputError(
                f"adapter.start '{start.name}' does not fit: {key} is not part of this model"
            )
        place.copy_(value)


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
    """Write the task's model as it is now into an existing folder, in the form that
    `open_checkpoint` reads.
    """
    adapter = task.recipe.adapter
    config = {
        key: value
        for key, value in task.body_config(base.config, task.recipe).items()
        if key not in _NOT_KEPT
    }
    if ranking := task.ranking():
        config['ranking'] = ranking
    if adapter is not None:
        config[HOLDS_HEADS] = True
    (folder / 'config.json').write_text(json.dumps(config, indent=2) + '\n', encoding='utf-8')
    tensors = {
        name: value.detach().float().cpu() for name, value in task.ranker.state_dict().items()
    }
    tensors = {name: value.contiguous().clone() for name, value in task.finished(tensors).items()}
    if adapter is None:
        saved = tensors
        file = folder / WEIGHTS
        base.copy_tokenizer(folder)
    else:
        saved = {}
        file = folder / ADAPTER
        for (
            name,
            value,
        ) in (
            tensors.items()
        ):  # low-rank updates, heads, and what was trained of the body's own weights
            if (
                _LORA in name
                or not name.startswith('bert.')
                or name.startswith(task.trained_in_body)
            ):
                saved[PREFIX + name.replace('.default.', '.').replace('.base_layer.', '.')] = (
                    value  # PEFT's names
                )
        settings = lora_config(adapter)
        settings.base_model_name_or_path = base_reference(base)
        settings.inference_mode = True
        settings.save_pretrained(folder)
    save_file(saved, file, metadata={'format': 'pt'})
    shutil.copymode(folder / 'config.json', file)  # safetensors makes files for their owner only


def base_reference(base: Checkpoint) -> str:
    """The base's name in an adapter's settings: its catalog name, else the absolute path of its
    folder.
    """
    return (
        base.name
        if catalog.checkpoint_kind(base.name) is not None
        else str(Path(base.name).resolve())
    )
