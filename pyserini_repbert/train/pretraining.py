"""Target corpus pre-training: masked words and next sentences of the corpus itself (Multi-Stage
section 4.1).

The inputs are BERT's (Devlin et al., 2019): two spans of sentences; in half of the cases, the
second follows the first. 15% of the wordpieces are predicted: 80% of these are replaced by [MASK],
10% by a random wordpiece, and 10% are left as they are.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.cross_encoder import MAX_TOKENS
from pyserini_repbert.models.pretraining import PreTrainedBert
from pyserini_repbert.models.tokenizer import TokenSequence
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.tasks.recipe import Source
from pyserini_repbert.tasks.task import Batch, Task, limit, padded

MASKED = 0.15
# Cumulative probabilities.
_AS_MASK = 0.8
_AS_OTHER = 0.9
_REMEMBERED = 1000  # passages from which a second text that does not follow is drawn
_SPECIAL_TOKENS = 3
_SENTENCE_END = re.compile(r'(?<=[.!?])\s+')


@dataclass(frozen=True)
class TextPair:
    """Two texts, whether the second follows the first, and the seed of the masking."""

    first: str
    second: str
    follows: bool
    draw: int


@dataclass(frozen=True)
class MaskedInput:
    """Wordpieces with masks among them, and the original wordpieces.

    Attributes
    ----------
    sequence : the model's input
    positions : of the masked wordpieces, rising
    words : the original wordpieces
    """

    sequence: TokenSequence
    positions: list[int]
    words: list[int]


class CorpusSource:
    """A corpus as a stream of text pairs; a passage is cut between sentences, a single sentence
    in its middle.
    """

    def __init__(self, source: Source, where: str) -> None:
        self.source = source
        self.where = where

    def instances(self, seed: int, epoch: int) -> Iterator[TextPair]:
        """The passages in the corpus' order, one pair each; passages of fewer than two words are
        left out.
        """
        draw = random.Random(f'{seed} {epoch} {self.where}')
        seen: list[str] = []
        source = self.source
        corpus = open_corpus(
            str(source.corpus), source.corpus_format, source.fields, keep_empty=True
        )
        for passage in corpus:
            parts = _SENTENCE_END.split(passage.text.strip())
            if len(parts) > 1:
                cut = draw.randrange(1, len(parts))
            else:
                parts = passage.text.split()
                cut = len(parts) // 2
            if len(parts) < 2:
                continue
            first = ' '.join(parts[:cut])
            second = ' '.join(parts[cut:])
            follows = not seen or draw.random() < 0.5
            shown = second if follows else draw.choice(seen)
            yield TextPair(first, shown, follows, draw.getrandbits(32))
            if len(seen) < _REMEMBERED:
                seen.append(second)
            else:
                seen[draw.randrange(_REMEMBERED)] = second


class PreTrainingTask(Task):
    """Mean loss of the masked wordpieces, plus the mean loss of the next sentences."""

    known = ('max_length',)
    reads_queries = False

    def new_ranker(self, sizes: BertConfig) -> PreTrainedBert:
        """BERT with the heads of pre-training.

        Raises DamagedFileError if the base has no [MASK].
        """
        self.max_tokens = limit(
            self.recipe, 'max_length', MAX_TOKENS, sizes.max_position_embeddings
        )
        mask = self.tokenizer.backend.token_to_id('[MASK]')
        if mask is None:
            base = self.recipe.base
            raise DamagedFileError(
                f"base '{base}' has no [MASK] in its vocabulary, which pre-training needs"
            )
        self.mask: int = mask
        return PreTrainedBert(sizes)

    def ranking(self) -> dict[str, Any]:
        """Empty: the result is a base."""
        return {}

    def collate(self, instances: Sequence[Any]) -> Batch:
        """Inputs with masked wordpieces.

        `positions` int64 (m,): of the masked wordpieces in the flattened inputs; `words` int64
        (m,): what they were; `follows` int64 (n,): 0 if the second text follows the first,
        otherwise 1, as in BERT's head.
        """
        texts: list[str] = []
        for pair in instances:
            texts += [pair.first, pair.second]
        ids = self.tokenizer.ids(texts)
        inputs = []
        for row, pair in enumerate(instances):
            draw = random.Random(pair.draw)
            inputs.append(self._mask(ids[2 * row], ids[2 * row + 1], draw))
        batch = padded([masked.sequence for masked in inputs], self.tokenizer.pad)
        width = batch['input_ids'].shape[1]
        positions: list[int] = []
        words: list[int] = []
        for row, masked in enumerate(inputs):
            positions += [row * width + position for position in masked.positions]
            words += masked.words
        follows = [int(not pair.follows) for pair in instances]
        return batch | {
            'positions': torch.tensor(positions, dtype=torch.int64),
            'words': torch.tensor(words, dtype=torch.int64),
            'follows': torch.tensor(follows),
        }

    def _mask(self, first: list[int], second: list[int], draw: random.Random) -> MaskedInput:
        """The input of two texts, some of its wordpieces masked; the longer text is cut."""
        room = self.max_tokens - _SPECIAL_TOKENS
        first = first[: max(room // 2, room - len(second))]
        second = second[: room - len(first)]
        head = [self.tokenizer.cls, *first, self.tokenizer.sep]
        ids = [*head, *second, self.tokenizer.sep]
        types = [0] * len(head) + [1] * (len(ids) - len(head))
        words = [*range(1, len(head) - 1), *range(len(head), len(ids) - 1)]
        n_masked = min(len(words), max(1, round(MASKED * len(words))))
        positions = sorted(draw.sample(words, n_masked))
        hidden = [ids[position] for position in positions]
        for position in positions:
            fate = draw.random()
            if fate < _AS_MASK:
                ids[position] = self.mask
            elif fate < _AS_OTHER:
                ids[position] = draw.randrange(self.tokenizer.vocab_size)
        return MaskedInput(TokenSequence(ids, types), positions, hidden)

    def forward(self, batch: Batch) -> Tensor:
        words, order = self.ranker(
            batch['input_ids'],
            batch['token_type_ids'],
            batch.get('attention_mask'),
            batch['positions'],
        )
        of_words = functional.cross_entropy(words, batch['words'])
        of_order = functional.cross_entropy(order, batch['follows'])
        return of_words + of_order
