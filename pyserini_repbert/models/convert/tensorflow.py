"""Converting the published monoBERT and duoBERT (TensorFlow 1 checkpoints) into checkpoint
folders.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pyserini_repbert.data.values import read_object
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import check_absent
from pyserini_repbert.models.bert import Bert
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.loading import load_model
from pyserini_repbert.models.convert.pytorch import converted, sizes_of, unpacked, vocabulary_of
from pyserini_repbert.models.convert.tensor_bundle import TensorBundle
from pyserini_repbert.models.cross_encoder import CrossEncoder

_OPTIMISER = ('adam_m', 'adam_v', 'global_step')
_PRETRAINING = 'cls/'  # the masked-LM and next-sentence heads
_HEAD = {'output_weights': 'classifier.weight', 'output_bias': 'classifier.bias'}


class _PlainBert(nn.Module):
    """A BERT under the names that its weights have."""

    def __init__(self, sizes: BertConfig) -> None:
        super().__init__()
        self.bert = Bert(sizes)


def hub_name(name: str) -> str | None:
    """Hugging Face's name for a TensorFlow variable; None if ranking does not use it."""
    if name.startswith(_PRETRAINING) or name.rpartition('/')[2] in _OPTIMISER:
        return None
    if name in _HEAD:
        return _HEAD[name]
    parts = name.split('/')
    last = {'kernel': 'weight', 'gamma': 'weight', 'beta': 'bias'}.get(parts[-1], parts[-1])
    if last.endswith('_embeddings'):
        last += '.weight'
    stem = [re.sub(r'^layer_(\d+)$', r'layer.\1', part) for part in parts[:-1]]
    return '.'.join([*stem, last])


def convert_tensorflow(
    source: Path,
    target: Path,
    ranking: Mapping[str, Any] | None,
    vocabulary: Path | None = None,
    checkpoint: str = '',
) -> None:
    """Convert a published archive, its folder, or a checkpoint by its prefix into a checkpoint
    folder at `target`.

    `source` is a .zip, a folder, or a path such as model.ckpt-100000; `checkpoint` is the name of
    the one to convert if there are several. Sizes are taken from the `bert_config.json` beside it,
    otherwise from the variables' shapes. `ranking` is the object for config.json, None for a BERT
    that is a base for training; `vocabulary` is the vocab.txt to use if the source has none.
    """
    check_absent(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix='.unpacked.') as temporary:
        is_archive = source.is_file() and source.suffix == '.zip'
        folder = source
        if is_archive:
            folder = unpacked(source, Path(temporary))
        prefix = _prefix(folder, checkpoint)
        tensors = _read_tensors(TensorBundle(prefix))
        config = {**sizes_of(source, tensors), **_config_beside(prefix)}
        if ranking is not None:
            config['architectures'] = ['BertForSequenceClassification']
            config['ranking'] = dict(ranking)
        labels = len(tensors.get('classifier.weight', ())) or 2
        words = vocabulary_of(prefix.parent, vocabulary)

        def make_model() -> nn.Module:
            sizes = BertConfig.from_dict(config)
            if ranking is None:
                return _PlainBert(sizes)
            return CrossEncoder(sizes, labels)

        with converted(target, source, config, tensors, words) as written:
            load_model(make_model, written, tensors=tensors)


def _read_tensors(bundle: TensorBundle) -> dict[str, Tensor]:
    """The tensors that ranking uses, float32, by Hugging Face's names."""
    tensors: dict[str, Tensor] = {}
    for variable in bundle.shapes():
        name = hub_name(variable)
        if name is None:
            continue
        value = torch.from_numpy(bundle.tensor(variable)).to(torch.float32)
        if variable.endswith('/kernel'):
            value = value.T
        tensors[name] = value.contiguous()
    return tensors


def _config_beside(prefix: Path) -> dict[str, Any]:
    """The configuration in the folder of a TensorFlow checkpoint; empty if there is none."""
    for name in ('bert_config.json', 'config.json'):
        path = prefix.parent / name
        if path.is_file():
            return read_object(path)
    return {}


def _prefix(source: Path, checkpoint: str) -> Path:
    if not source.is_dir():
        return source.with_name(source.name.removesuffix('.index'))
    prefixes = sorted(path.with_suffix('') for path in source.rglob('*.index'))
    chosen = [path for path in prefixes if checkpoint in ('', path.name)]
    if len(chosen) != 1:
        names = ', '.join(path.name for path in prefixes) or 'none'
        expected = 'one TensorFlow checkpoint was expected, or the name of one of these'
        raise InputError(f'{source}: {expected}: {names}', parameters=('checkpoint',))
    return chosen[0]
