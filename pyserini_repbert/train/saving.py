"""From a task to a checkpoint folder: config.json, weights or adapter, tokenizer files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from pyserini_repbert import catalog
from pyserini_repbert.models.checkpoints.adapter import PREFIX
from pyserini_repbert.models.checkpoints.folder import ADAPTER, HOLDS_HEADS, WEIGHTS, Checkpoint
from pyserini_repbert.train.recipe import Adapter
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
        _copy_tokenizer(base, folder)
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


def _copy_tokenizer(base: Checkpoint, folder: Path) -> None:
    for name in _TOKENIZER:
        if (base.tokenizer_folder / name).is_file():
            shutil.copyfile(base.tokenizer_folder / name, folder / name)
