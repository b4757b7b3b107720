"""Checkpoint folders: config.json with its `ranking` object, weights in safetensors, adapters
merged into a base.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import StringConstraints

from pyserini_repbert.checksums import remembered_digest
from pyserini_repbert.data.values import checked, read_object
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.models.checkpoints.weights import (
    UNIT_LAYER,
    Weight,
    merged,
    merged_arrays,
    read_arrays,
    read_weights,
    scale_of,
    unit_layer,
    with_unit_layer,
)

if TYPE_CHECKING:
    from torch import Tensor

    from pyserini_repbert.models.tokenizer import WordPieceTokenizer

WEIGHTS = 'model.safetensors'
ADAPTER = 'adapter_model.safetensors'
# The name of one of several files, which is in the checkpoint's folder.
_WeightsName = Annotated[str, StringConstraints(pattern=r'^[\w-][\w.-]*\.safetensors\z')]
ADAPTER_CONFIG = 'adapter_config.json'
# in config.json of an adapter: it has heads of its own, the base's are dropped
HOLDS_HEADS = 'adapter_holds_heads'
TOKENIZER = ('vocab.txt', 'tokenizer.json', 'tokenizer_config.json', 'special_tokens_map.json')
# Keys of config.json that change no vector of a trained model, and the one that is 0 in all BERTs.
_NOT_DECISIVE = (
    'hidden_dropout_prob',
    'attention_probs_dropout_prob',
    'initializer_range',
    'position_offset',
)
_BERT = 'bert.'
# How RoBERTa calls what BERT has, too.
_ROBERTA_NAMES = {
    'roberta.': 'bert.',
    'classifier.dense.': 'bert.pooler.dense.',
    'classifier.out_proj.': 'classifier.',
}
_BODY = ('embeddings.', 'encoder.', 'pooler.')


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint folder, opened."""

    name: str  # as the user gave it: a catalog name or a path
    folder: Path
    config: Mapping[str, Any]  # config.json; `config['ranking']` holds the system's settings
    base: Checkpoint | None = field(default=None, repr=False)  # what a PEFT adapter adapts

    @classmethod
    def open(
        cls,
        folder: Path,
        name: str | None = None,
        ranking: Mapping[str, Any] | None = None,
        base: Checkpoint | None = None,
    ) -> Checkpoint:
        """Open a folder. `ranking` is used if config.json has no such object.

        Raises InputError without a config.json, DamagedFileError for one that is not a BERT's. A
        folder that has no weights yet is opened anyway.
        """
        from pyserini_repbert.models.bert_config import BertConfig, RankingObject

        path = folder / 'config.json'
        if not path.is_file():
            raise InputError(f'{folder} is not a checkpoint: it has no config.json')
        config = read_object(path)
        if ranking is not None:
            config.setdefault('ranking', dict(ranking))
        if config.get('model_type', 'bert') == 'bert':
            try:
                checked(RankingObject, config.get('ranking', {}))
                BertConfig.from_dict(config)
            except ValueError as error:
                raise DamagedFileError(f'{path}: ranking: {error}') from error
            except InputError as error:
                raise DamagedFileError(f'{path}: {error}') from error
        return cls(name or str(folder), folder, config, base)

    @classmethod
    def write(
        cls, folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Tensor], name: str
    ) -> Checkpoint:
        """Write config.json and the weights into `folder`, and return the checkpoint, with the
        name `name`.
        """
        from safetensors.torch import save_file

        (folder / 'config.json').write_text(json.dumps(config, indent=2) + '\n', encoding='utf-8')
        save_file(dict(tensors), folder / WEIGHTS, metadata={'format': 'pt'})
        return cls(name, folder, config)

    def system(self, expected: str) -> Mapping[str, Any]:
        """The `ranking` object, of the system `expected`; a plain BERT, which has none, counts
        as one of any system.
        """
        ranking: Mapping[str, Any] = self.config.get('ranking', {'system': expected})
        if ranking.get('system') != expected:
            raise MismatchError(
                f"checkpoint '{self.name}' is for the system '{ranking.get('system')}', "
                f"'{expected}' was expected"
            )
        return ranking

    @cached_property
    def weights_sha256(self) -> str:
        """Checksum of the weights: of model.safetensors itself, or over the checksums of several
        files.

        For an adapter, it covers the checksums of its file and its base, its scale, and its unit
        layer if it has one.
        """
        parts = [remembered_digest(file) for file in self._weights_files()]
        if self.base is not None:
            parts += [str(scale_of(self.folder / ADAPTER_CONFIG)), self.base.weights_sha256]
            if self.config.get(UNIT_LAYER):
                parts.append(UNIT_LAYER)
        return _joint_digest(parts)

    @cached_property
    def config_sha256(self) -> str:
        """Checksum of what config.json says of a BERT's computation, defaults included, as JSON
        with sorted keys.

        Names, versions, what only training uses, and the `ranking` object are left out.
        """
        from pyserini_repbert.models.bert_config import BertConfig

        values = asdict(BertConfig.from_dict(self.config))
        decisive = {name: value for name, value in values.items() if name not in _NOT_DECISIVE}
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()

    @cached_property
    def tokenizer_sha256(self) -> str:
        """Checksum of the tokenizer's file, this checkpoint's or its base's; of two files, over
        their checksums.
        """
        folder = self.tokenizer_folder
        files = [folder / 'tokenizer.json']
        if not files[0].is_file():
            files = [folder / 'vocab.txt', folder / 'tokenizer_config.json']
        return _joint_digest([remembered_digest(file) for file in files if file.is_file()])

    def _weights_files(self) -> list[Path]:
        files = [self.folder / name for name in self._names_of_weights()]
        for file in files:
            if not file.is_file():
                raise InputError(
                    f'checkpoint {self.folder} has no {file.name}: convert older weights by '
                    'scripts in tools/'
                )
        return files

    def _names_of_weights(self) -> list[str]:
        """The names of the files that should hold the weights."""
        if self.base is not None:
            return [ADAPTER]
        index = self.folder / f'{WEIGHTS}.index.json'
        if not index.is_file():
            return [WEIGHTS]
        try:
            file_by_tensor = checked(dict[str, _WeightsName], read_object(index).get('weight_map'))
        except ValueError as error:
            raise DamagedFileError(
                f'{index}: weight_map: {error}: fetch the checkpoint again'
            ) from error
        return sorted(set(file_by_tensor.values()))

    def tensors(self, mapped: str | None = None) -> dict[str, Tensor]:
        """All weights by name, the body as `bert.*`; an adapter is merged into its base.

        Weights whose names end with `mapped` stay in their file (`read_weights`), the others are
        read into memory.
        """
        tensors: dict[str, Tensor] = {}
        for file in self._weights_files():
            tensors |= read_weights(file, mapped)
        if self.base is None:
            return _with_usual_names(tensors)
        base = self.base.tensors(mapped)
        if self.config.get(HOLDS_HEADS):
            base = {name: value for name, value in base.items() if name.startswith(_BERT)}
        return merged(with_unit_layer(base, self.config), tensors, self.folder / ADAPTER_CONFIG)

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """All weights as `tensors` has them, without PyTorch, float32; most stay in their files."""
        arrays: dict[str, NDArray[np.float32]] = {}
        for file in self._weights_files():
            arrays |= read_arrays(file)
        if self.base is None:
            return _with_usual_names(arrays)
        base = self.base.arrays()
        if self.config.get(HOLDS_HEADS):
            base = {name: value for name, value in base.items() if name.startswith(_BERT)}
        shapes = {name: value.shape for name, value in base.items()}
        whole = {**unit_layer(shapes, self.config), **base}
        return merged_arrays(whole, arrays, self.folder / ADAPTER_CONFIG)

    @property
    def tokenizer_folder(self) -> Path:
        """The folder with the tokenizer: this folder, or the base's."""
        files = [self.folder / 'tokenizer.json', self.folder / 'vocab.txt']
        if self.base is None or any(file.is_file() for file in files):
            return self.folder
        return self.base.tokenizer_folder

    def copy_tokenizer(self, folder: Path) -> None:
        """Copy the tokenizer's files into a folder."""
        for name in TOKENIZER:
            if (self.tokenizer_folder / name).is_file():
                shutil.copyfile(self.tokenizer_folder / name, folder / name)

    def tokenizer(self) -> WordPieceTokenizer:
        """The tokenizer in `tokenizer_folder`.

        Raises DamagedFileError if it has ids beyond the model's vocabulary.
        """
        from pyserini_repbert.models.tokenizer import WordPieceTokenizer

        tokenizer = WordPieceTokenizer.from_folder(self.tokenizer_folder)
        largest = max(tokenizer.backend.get_vocab().values())
        if largest >= self.config.get('vocab_size', largest + 1):
            raise DamagedFileError(
                f'{self.tokenizer_folder}: the tokenizer has a wordpiece {largest}, the model has '
                f'{self.config["vocab_size"]}: take the tokenizer that the model was trained with'
            )
        return tokenizer


def _joint_digest(digests: Sequence[str]) -> str:
    """One checksum over several; a single one is itself."""
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256('\n'.join(digests).encode()).hexdigest()


def _with_usual_names(tensors: Mapping[str, Weight]) -> dict[str, Weight]:
    """Tensors under the names of current BERT checkpoints.

    Some checkpoints leave out the prefix of the body. BERT's first checkpoints call the weights of
    layer norms gamma and beta, and have a buffer of ids.
    """
    of_bert = {_bert_name(name): value for name, value in tensors.items()}
    lacks_prefix = not any(name.startswith(_BERT) for name in of_bert)
    renamed: dict[str, Weight] = {}
    for name, value in of_bert.items():
        if name.endswith('position_ids'):
            continue
        if lacks_prefix and name.startswith(_BODY):
            name = f'{_BERT}{name}'
        name = name.replace('LayerNorm.gamma', 'LayerNorm.weight')
        name = name.replace('LayerNorm.beta', 'LayerNorm.bias')
        renamed[name] = value
    return renamed


def _bert_name(name: str) -> str:
    """BERT's name of a tensor that may be RoBERTa's."""
    for prefix, replacement in _ROBERTA_NAMES.items():
        if name.startswith(prefix):
            return replacement + name.removeprefix(prefix)
    return name
