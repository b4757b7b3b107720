"""Tiny cross-encoder checkpoints, and the passages that they read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def cross_encoder_folder(tmp_path: Path, tiny_checkpoint: Callable[..., Path]) -> Callable[..., Path]:
    """make(system='monobert', labels=2, name=None, seed=0, **config) -> a checkpoint folder with random weights."""

    def make(system: str = 'monobert', labels: int = 2, name: str | None = None, seed: int = 0, **config: Any) -> Path:
        import torch
        from safetensors.torch import save_file

        from pyserini_repbert.models.bert import BertConfig
        from pyserini_repbert.models.cross_encoder import CrossEncoder

        folder = tiny_checkpoint(name or system)
        values = json.loads((folder / 'config.json').read_text(encoding='utf-8'))
        ranking = {'system': system, 'max_query_length': 8, 'max_length': 48}
        values |= {'ranking': ranking, 'type_vocab_size': 3 if system == 'duobert' else 2} | config
        values = {key: value for key, value in values.items() if value is not None}
        (folder / 'config.json').write_text(json.dumps(values), encoding='utf-8')
        torch.manual_seed(seed)
        model = CrossEncoder(BertConfig.from_dict(values), labels)
        save_file(model.state_dict(), folder / 'model.safetensors')
        return folder

    return make
