"""Target corpus pre-training: masked words and next sentences of the corpus itself (Multi-Stage
section 4.1).

The inputs are BERT's (Devlin et al., 2019): two spans of sentences, of which the second follows the
first in half of the cases; 15% of the wordpieces are predicted, of which 80% are replaced by
[MASK], 10% by a random wordpiece, and 10% are left as they are.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

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
from pyserini_repbert.tasks.task import (
    Batch,
    Task,
    limit,
    padded,
)

MASKED = 0.15
# cumulative probabilities
_AS_MASK = 0.8
_AS_OTHER = 0.9
_REMEMBERED = 1000  # passages from which a second text that does not follow is drawn
_SPECIAL_TOKENS = 3
_SENTENCE_END = re.compile(r'(?<=[.!?])\s+')


class TextPair(NamedTuple):
    """Two texts, whether the second follows the first, and the seed of the masking."""

    first: str
    second: str
    follows: bool
    draw: int


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
        for passage in open_corpus(
            str(source.corpus), source.corpus_format, source.fields, keep_empty=True
        ):
            parts = _SENTENCE_END.split(passage.text.strip())
            parts = parts if len(parts) > 1 else passage.text.split()
            if len(parts) < 2:
                continue
            cut = (
                draw.randrange(1, len(parts))
                if _SENTENCE_END.search(passage.text.strip())
                else len(parts) // 2
            )
            first = ' '.join(parts[:cut])
            second = ' '.join(parts[cut:])
            follows = not seen or draw.random() < 0.5
            yield TextPair(
                first, second if follows else draw.choice(seen), follows, draw.getrandbits(32)
            )
            if len(seen) < _REMEMBERED:
                seen.append(second)
            else:
                seen[draw.randrange(_REMEMBERED)] = second


class PreTrainingTask(Task):
    """Mean loss of the masked wordpieces plus that of the next sentences."""

    known = ('max_length',)

    def new_ranker(self, sizes: BertConfig) -> PreTrainedBert:
        """BERT with the heads of pre-training.

        Raises DamagedFileError where the base has no [MASK].
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

        `places` int64 (m,): positions of the masked wordpieces in the flattened inputs; `words`
        int64 (m,): what they were; `follows` int64 (n,): 0 if the second text follows the first,
        else 1, as in BERT's head.
        """
        ids = self.tokenizer.ids([text for pair in instances for text in (pair.first, pair.second)])
        room = self.max_tokens - _SPECIAL_TOKENS
        sequences: list[TokenSequence] = []
        masked: list[list[tuple[int, int]]] = []
        for number, pair in enumerate(instances):
            second = ids[2 * number + 1]
            first = ids[2 * number][: max(room // 2, room - len(second))]  # the longer text is cut
            second = second[: room - len(first)]
            head = [self.tokenizer.cls, *first, self.tokenizer.sep]
            whole = [*head, *second, self.tokenizer.sep]
            words = [*range(1, len(head) - 1), *range(len(head), len(whole) - 1)]
            masked.append(self._hide(whole, words, random.Random(pair.draw)))
            sequences.append(TokenSequence(whole, [0] * len(head) + [1] * (len(whole) - len(head))))
        batch = padded(sequences, self.tokenizer.pad)
        width = batch['input_ids'].shape[1]
        places = [
            row * width + place for row, masked_row in enumerate(masked) for place, _ in masked_row
        ]
        return batch | {
            'places': torch.tensor(places, dtype=torch.int64),
            'words': torch.tensor(
                [word for masked_row in masked for _, word in masked_row], dtype=torch.int64
            ),
            'follows': torch.tensor([int(not pair.follows) for pair in instances]),
        }

    def _hide(
        self, ids: list[int], places: list[int], draw: random.Random
    ) -> list[tuple[int, int]]:
        """Mask some of the `places` of `ids`, in place; gives these with the wordpieces that
        were there.
        """
        chosen = sorted(draw.sample(places, min(len(places), max(1, round(MASKED * len(places))))))
        hidden = [(place, ids[place]) for place in chosen]
        for place in chosen:
            fate = draw.random()
            if fate < _AS_MASK:
                ids[place] = self.mask
            elif fate < _AS_OTHER:
                ids[place] = draw.randrange(self.tokenizer.vocab_size)
        return hidden

    def forward(self, batch: Batch) -> Tensor:
        words, order = self.ranker(
            batch['input_ids'],
            batch['token_type_ids'],
            batch.get('attention_mask'),
            batch['places'],
        )
        return functional.cross_entropy(words, batch['words']) + functional.cross_entropy(
            order, batch['follows']
        )
