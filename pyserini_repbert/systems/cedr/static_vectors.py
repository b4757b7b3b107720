"""Word vectors instead of a BERT: the rows "GloVe" of CEDR's Table 1.

A vector belongs to a word, whatever its context, so there is one similarity matrix and no [CLS].
The folder of the vectors is a base for `train`: its vocabulary has whole words, so that the
tokenizer looks words up instead of cutting them. A word without a vector has similarity 0 to all.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from pyserini_repbert.checksums import write_checksums
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import atomic_folder, check_absent, numbered_lines
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.folder import Checkpoint
from pyserini_repbert.systems.cedr.settings import NAME, Architecture

_SPECIAL_TOKENS = ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')
# No position has a weight, so texts are never split for want of positions.
_POSITIONS = 1 << 20


class _WordTable(nn.Module):
    """The vectors under the name that a BERT's embeddings have."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)


class StaticVectors(nn.Module):
    """What a CEDR head reads instead of a BERT: a vector for each word.

    `config` has the sizes of the table, and no layer.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = _WordTable(config)

    def each_layer(
        self,
        input_ids: Tensor,
        token_type_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
    ) -> Iterator[Tensor]:
        """The words' vectors: (n, length, h), once. Only `input_ids`, int64 (n, length), are
        read.
        """
        yield self.embeddings.word_embeddings(input_ids)


@dataclass(frozen=True)
class WordVectors:
    """Words and their vectors, float32 (words, h)."""

    words: list[str]
    vectors: np.ndarray


def convert_vectors(source: Path, target: Path, most_words: int | None = None) -> WordVectors:
    """Convert word vectors as text into a base for CEDR's heads.

    Parameters
    ----------
    source : lines 'word value value …', as GloVe is published; a first line with the number of
        words and of values, as word2vec has it, is passed over
    target : the folder to make
    most_words : how many of the first words are kept; None for all

    Raises InputError, with file and line, for a line whose number of values differs from the first.
    """
    check_absent(target)
    table = read_vectors(source, most_words)
    n_special = len(_SPECIAL_TOKENS)
    weights = torch.zeros(n_special + len(table.words), table.vectors.shape[1])
    weights[n_special:] = torch.from_numpy(table.vectors)
    config = {
        'model_type': 'bert',
        'vocab_size': len(weights),
        'hidden_size': weights.shape[1],
        'num_hidden_layers': 0,
        'num_attention_heads': 1,
        'max_position_embeddings': _POSITIONS,
        'ranking': {
            'system': NAME,
            'architecture': str(Architecture.KNRM),
            'joint': False,
            'static': True,
        },
    }
    with atomic_folder(target) as folder:
        lines = [f'{word}\n' for word in (*_SPECIAL_TOKENS, *table.words)]
        (folder / 'vocab.txt').write_text(''.join(lines), encoding='utf-8')
        tensors = {'bert.embeddings.word_embeddings.weight': weights}
        Checkpoint.write(folder, config, tensors, str(source))
        write_checksums(folder)
    return table


def read_vectors(path: Path, most_words: int | None = None) -> WordVectors:
    """The vectors of a text file. If a word occurs twice, the first one counts."""
    words: dict[str, None] = {}
    values = array('f')
    n_values = 0
    for number, line in numbered_lines(path, 'word vectors'):
        if most_words is not None and len(words) == most_words:
            break
        columns = line.rstrip().split(' ')
        if number == 1 and len(columns) == 2:
            continue
        n_values = n_values or len(columns) - 1
        # A word may hold spaces.
        word = ' '.join(columns[:-n_values])
        vector = _finite_numbers(columns[-n_values:])
        if not word or vector is None:
            raise InputError.at(path, number, f'expected a word and {n_values} finite numbers')
        if word in words or word in _SPECIAL_TOKENS or word.split() != [word]:
            continue
        words[word] = None
        values.extend(vector)
    if not words:
        raise InputError(f"{path} has no word vectors: expected lines 'word value value …'")
    return WordVectors(list(words), np.asarray(values, np.float32).reshape(len(words), n_values))


def _finite_numbers(columns: list[str]) -> list[float] | None:
    """The columns as numbers; None if one of them is not a number."""
    try:
        values = [float(column) for column in columns]
    except ValueError:
        return None
    return values if all(map(math.isfinite, values)) else None
