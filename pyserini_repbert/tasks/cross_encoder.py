"""monoBERT and duoBERT: cross-entropy on as many relevant as non-relevant inputs (Multi-Stage
eq. 1-2, section 4.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.cross_encoder import SEGMENTS, CrossEncoder, DuoBert, MonoBert
from pyserini_repbert.models.pair_inputs import MAX_TOKENS, PairInputs, TripleInputs
from pyserini_repbert.train.losses import relevance_cross_entropy
from pyserini_repbert.train.recipe import Recipe
from pyserini_repbert.train.sources import Instance
from pyserini_repbert.train.tasks.base import Batch, GroupTask, Task, limit, outputs, padded


class CrossEncoderTask(Task):
    """An instance gives two inputs, one relevant and one not: batches are balanced (Multi-Stage
    section 4.1).
    """

    known = ('layout', 'max_query_length', 'max_length')
    inputs_per_pair = 2
    module: type[CrossEncoder]
    builder: type[PairInputs] | type[TripleInputs]

    def new_ranker(self, sizes: BertConfig) -> CrossEncoder:
        self.inputs = self.builder(
            self.tokenizer,
            self.recipe.ranking.get('layout', self.builder.layout),
            limit(self.recipe, 'max_length', MAX_TOKENS, sizes.max_position_embeddings),
            limit(self.recipe, 'max_query_length', self.builder.max_query),
        )
        return self.module(sizes)

    def ranking(self) -> dict[str, Any]:
        lengths = {'max_query_length': self.inputs.max_query, 'max_length': self.inputs.max_tokens}
        return {'system': str(self.recipe.system), 'layout': str(self.inputs.layout), **lengths}


class MonoBertTask(CrossEncoderTask, GroupTask):
    """A query beside a relevant passage, and beside a non-relevant one (Multi-Stage eq. 1)."""

    module = MonoBert
    builder = PairInputs
    inputs: PairInputs
    trained_in_body = ('bert.pooler.',)

    def inputs_of(
        self, queries: list[list[int]], passages: list[list[int]], query_of: Sequence[int]
    ) -> Batch:
        pairs = zip(query_of, passages, strict=True)
        return padded(
            [self.inputs.build(queries[row], text).sequence for row, text in pairs],
            self.tokenizer.pad,
        )

    def scores(self, batch: Batch) -> Tensor:
        """The log-odds of relevance."""
        logits = outputs(self.ranker, batch)
        return logits[:, 1] - logits[:, 0]

    def forward(self, batch: Batch) -> Tensor:
        """Mean cross-entropy (Multi-Stage eq. 1); `group_loss` for groups."""
        if 'present' in batch:
            return self.group_loss(batch)
        logits = outputs(self.ranker, batch)
        return relevance_cross_entropy(logits, _first_half(logits))


class DuoBertTask(CrossEncoderTask):
    """Each pair of a relevant and a non-relevant passage in both orders (Multi-Stage eq. 2)."""

    module = DuoBert
    builder = TripleInputs
    inputs: TripleInputs
    trained_in_body = ('bert.pooler.', 'bert.embeddings.token_type_embeddings.')

    @classmethod
    def body_config(cls, values: Mapping[str, Any], recipe: Recipe) -> dict[str, Any]:
        """The base's own, with three token types."""
        return {**values, 'type_vocab_size': max(SEGMENTS, int(values.get('type_vocab_size', 2)))}

    def collate(self, instances: Sequence[Instance]) -> Batch:
        """Inputs with the relevant passage first, then the same pairs the other way round.

        For groups, which are pairs, `judged` bool (inputs,) says which inputs have a relevant
        passage; with a teacher, `taught` float32 (inputs,) is the sigmoid of its margin: the
        probability that the first passage is the better.
        """
        queries, passages = self.queries_and_passages(instances)
        build = self.inputs.build
        pairs = list(zip(queries, passages[::2], passages[1::2], strict=True))
        first = [build(query, one, other).sequence for query, one, other in pairs]
        second = [build(query, other, one).sequence for query, one, other in pairs]
        batch = padded([*first, *second], self.tokenizer.pad)
        batch['judged'] = torch.tensor([pair.judged for pair in instances] * 2)
        if self.recipe.teacher is not None:
            scores = torch.tensor(
                [self.sources[pair.source].taught(pair.qid, pair.docids) for pair in instances]
            )
            margins = scores[:, 0] - scores[:, 1]
            batch['taught'] = torch.sigmoid(torch.cat([margins, -margins]))
        return batch

    def forward(self, batch: Batch) -> Tensor:
        """Mean cross-entropy with judgments (Multi-Stage eq. 2), and with the teacher's
        probabilities, weighted.
        """
        logits = outputs(self.ranker, batch)
        judged = batch['judged']
        teacher = self.recipe.teacher
        relevance = logits.new_zeros(())
        if judged.any():
            relevance = relevance_cross_entropy(logits[judged], _first_half(logits)[judged])
        if teacher is None:
            return relevance
        return teacher.judged_weight * relevance + teacher.weight * relevance_cross_entropy(
            logits, batch['taught']
        )


def _first_half(logits: Tensor) -> Tensor:
    """Targets of as many relevant inputs as others: bool (n,)."""
    return torch.arange(len(logits), device=logits.device) < len(logits) // 2
