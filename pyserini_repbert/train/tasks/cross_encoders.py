"""monoBERT and duoBERT: cross-entropy on as many relevant as non-relevant inputs (Multi-Stage eq. 1-2, section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.cross_encoder import CrossEncoder
from pyserini_repbert.models.duobert import SEGMENTS, SYSTEM as DUO, DuoBert
from pyserini_repbert.models.monobert import SYSTEM as MONO, MonoBert
from pyserini_repbert.models.pair_inputs import MAX_TOKENS, PairInputs, TripleInputs
from pyserini_repbert.train.losses import relevance_cross_entropy
from pyserini_repbert.train.recipe import Recipe
from pyserini_repbert.train.sources import Group
from pyserini_repbert.train.tasks.base import Batch, GroupTask, Task, limit, outputs, padded


class CrossEncoderTask(Task):
    """An instance gives two inputs, one relevant and one not: batches are balanced (Multi-Stage section 4.1)."""

    known = ('layout', 'max_query_length', 'max_length')
    system: str
    module: type[CrossEncoder]
    builder: type[PairInputs] | type[TripleInputs]

    def new_ranker(self, sizes: BertConfig) -> CrossEncoder:
        """A cross-encoder for the inputs of the recipe's layout."""
        self.inputs = self.builder(
            self.tokenizer,
            self.recipe.ranking.get('layout', self.builder.layout),
            limit(self.recipe, 'max_length', MAX_TOKENS, sizes.max_position_embeddings),
            limit(self.recipe, 'max_query_length', self.builder.max_query),
        )
        return self.module(sizes)

    def ranking(self) -> dict[str, Any]:
        """System, layout and lengths."""
        lengths = {'max_query_length': self.inputs.max_query, 'max_length': self.inputs.max_tokens}
        return {'system': self.system, 'layout': str(self.inputs.layout), **lengths}

    @property
    def inputs_per_instance(self) -> int:
        """Two; one for a group, which counts as a whole."""
        return 1 if self.recipe.training.group else 2

    def forward(self, batch: Batch) -> Tensor:
        """Mean cross-entropy."""
        return relevance_cross_entropy(outputs(self.ranker, batch), batch['relevant'])


class MonoBertTask(CrossEncoderTask, GroupTask):
    """A query beside a relevant passage, and beside a non-relevant one (Multi-Stage eq. 1)."""

    system = MONO
    module = MonoBert
    builder = PairInputs
    inputs: PairInputs
    trained_in_body = ('bert.pooler.',)

    def inputs_of(self, queries: list[list[int]], passages: list[list[int]], query_of: Sequence[int]) -> Batch:
        """Each passage beside its query."""
        pairs = zip(query_of, passages, strict=True)
        return padded([self.inputs.build(queries[row], text).sequence for row, text in pairs], self.tokenizer.pad)

    def scores(self, batch: Batch) -> Tensor:
        """The log-odds of relevance."""
        logits = outputs(self.ranker, batch)
        return logits[:, 1] - logits[:, 0]

    def forward(self, batch: Batch) -> Tensor:
        """Mean cross-entropy (Multi-Stage eq. 1); `group_loss` for groups."""
        return self.group_loss(batch) if 'present' in batch else super().forward(batch)

    def collate(self, instances: Sequence[Any]) -> Batch:
        """Inputs with the relevant passages, then inputs with the others; or the inputs of groups."""
        batch = super().collate(instances)
        return batch if self.recipe.training.group else {**batch, 'relevant': _first_half(len(instances))}


class DuoBertTask(CrossEncoderTask):
    """Each pair of a relevant and a non-relevant passage in both orders (Multi-Stage eq. 2)."""

    system = DUO
    module = DuoBert
    builder = TripleInputs
    inputs: TripleInputs
    trained_in_body = ('bert.pooler.', 'bert.embeddings.token_type_embeddings.')

    @classmethod
    def body_config(cls, values: Mapping[str, Any], recipe: Recipe) -> dict[str, Any]:
        """The base's own, with three token types."""
        return {**values, 'type_vocab_size': max(SEGMENTS, int(values.get('type_vocab_size', 2)))}

    def collate(self, instances: Sequence[Any]) -> Batch:
        """Inputs with the relevant passage first, then the same pairs the other way round.

        For groups, which are pairs, `judged` bool (inputs,) says which inputs have a relevant passage; with a teacher,
        `taught` float32 (inputs,) is the sigmoid of its margin: the probability that the first passage is the better.
        """
        if self.recipe.training.group:
            return self._collate_taught(instances)
        return self._both_orders(list(zip(*self.queries_and_passages(instances), strict=True)))

    def _collate_taught(self, pairs: Sequence[Group]) -> Batch:
        queries, passages = self.queries_and_candidates(pairs)
        batch = self._both_orders(list(zip(queries, passages[::2], passages[1::2], strict=True)))
        batch['judged'] = torch.tensor([own.judged for own in pairs] * 2)
        if self.recipe.teacher is not None:
            scores = torch.tensor([self.sources[own.source].taught(own.qid, own.docids) for own in pairs])
            margins = scores[:, 0] - scores[:, 1]
            batch['taught'] = torch.sigmoid(torch.cat([margins, -margins]))
        return batch

    def forward(self, batch: Batch) -> Tensor:
        """Mean cross-entropy (Multi-Stage eq. 2); for groups, with judgments and with the teacher's probabilities."""
        if 'judged' not in batch:
            return super().forward(batch)
        logits, judged, teacher = outputs(self.ranker, batch), batch['judged'], self.recipe.teacher
        relevance = logits.new_zeros(())
        if judged.any():
            relevance = relevance_cross_entropy(logits[judged], batch['relevant'][judged])
        if teacher is None:
            return relevance
        return teacher.judged_weight * relevance + teacher.weight * relevance_cross_entropy(logits, batch['taught'])

    def _both_orders(self, triples: list[tuple[list[int], list[int], list[int]]]) -> Batch:
        first = [self.inputs.build(query, positive, negative).sequence for query, positive, negative in triples]
        second = [self.inputs.build(query, negative, positive).sequence for query, positive, negative in triples]
        return {**padded([*first, *second], self.tokenizer.pad), 'relevant': _first_half(len(triples))}


def _first_half(n: int) -> Tensor:
    """Targets of n relevant inputs, then of n others."""
    return torch.tensor([1] * n + [0] * n)
