"""A collection of any size, without what it takes to encode one: made-up documents and vectors."""

from __future__ import annotations

import random
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

LONG_WORDS = 20_000
# Beginning of the title of documents whose passages are near the question.
NEAR = 'near'
_WORDS = 4_000
_LONG_EVERY = 5_000  # documents, of which one is long


def write_encoder(folder: Path, dimension: int) -> None:
    """A BERT of one layer with random weights, whose words are w0, w1, ..."""
    import torch
    from transformers import BertConfig, BertModel

    words = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
    words += [f'w{number}' for number in range(_WORDS)]
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=dimension,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=dimension,
        max_position_embeddings=512,
    )
    BertModel(config).save_pretrained(folder)
    (folder / 'vocab.txt').write_text('\n'.join([*words, '']), encoding='utf-8')


class SyntheticVectors:
    """Encodes passages in the encoder's place: random vectors of length 1.

    The vectors of a document whose title begins with 'near' are near `query`, float32 (d,).
    """

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self.query: NDArray[np.float32] | None = None

    def __call__(self, encoder: Any, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.empty((len(texts), self._dimension), np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self._vector(text)
        return vectors

    def _vector(self, text: str) -> NDArray[np.float32]:
        drawn = np.random.Generator(np.random.SFC64(zlib.crc32(text.encode())))
        vector = drawn.standard_normal(self._dimension, dtype=np.float32)
        vector /= np.linalg.norm(vector)
        if self.query is None or not text.startswith(NEAR):
            return vector
        nearest = self.query / np.linalg.norm(self.query)
        return nearest + vector / 10


class WordVectors:
    """Encodes passages and questions in an encoder's place, at no cost: the sum of a random vector
    for each word, the rarer the longer. So texts with the same words are near.

    Parameters
    ----------
    texts : from which the numbers of documents with a word are counted
    dimension : of the vectors
    """

    def __init__(self, texts: Sequence[str], dimension: int) -> None:
        self._dimension = dimension
        self._n_texts = len(texts)
        self._n_with: Counter[str] = Counter()
        for text in texts:
            self._n_with.update(self._words(text))
        self._vector_of: dict[str, NDArray[np.float32]] = {}

    def __call__(self, encoder: Any, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.empty((len(texts), self._dimension), np.float32)
        for row, text in enumerate(texts):
            words = [self._word_vector(word) for word in self._words(text)]
            total = np.sum([np.full(self._dimension, 1e-3, np.float32), *words], axis=0)
            vectors[row] = total / np.linalg.norm(total)
        return vectors

    def _words(self, text: str) -> list[str]:
        return sorted(set(re.findall(r'\w+', text.lower())))

    def _word_vector(self, word: str) -> NDArray[np.float32]:
        vector = self._vector_of.get(word)
        if vector is None:
            drawn = np.random.Generator(np.random.SFC64(zlib.crc32(word.encode())))
            vector = drawn.standard_normal(self._dimension, dtype=np.float32)
            vector *= np.float32(log(1 + self._n_texts / (1 + self._n_with[word])))
            self._vector_of[word] = vector
        return vector


def text_of(drawn: random.Random, words: int) -> str:
    """A text of so many words, rare and frequent ones."""
    numbers = (int(_WORDS ** drawn.random()) for _ in range(words))
    return ' '.join(f'w{number}' for number in numbers)


def document(number: int, words: int | None = None) -> dict[str, Any]:
    """A document with its fields."""
    drawn = random.Random(number)
    if words is None:
        words = LONG_WORDS if number % _LONG_EVERY == 1 else drawn.randint(20, 60)
    return {
        'id': f'd{number}',
        'text': text_of(drawn, words),
        'kind': f'kind{number % 5}',
        'tags': [f'tag{number % 2000}', f'tag{number * 7 % 2000}'],
        'number': number,
        'of1': number % 100 == 0,
        'of11': number % 9 == 0,
        'of50': number % 2 == 0,
    }


def documents(count: int) -> Iterator[dict[str, Any]]:
    """The documents of a collection."""
    for number in range(count):
        yield document(number)
