"""monoBERT and duoBERT: cross-entropy on as many relevant as non-relevant inputs (Multi-Stage eq. 1-2, section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from pyserini_repbert.models.cross_encoder import CrossEncoder
from pyserini_repbert.models.duobert import SEGMENTS, SYSTEM as DUO, DuoBert
from pyserini_repbert.models.monobert import SYSTEM as MONO, MonoBert
from pyserini_repbert.models.pair_inputs import (
    DUO_QUERY_TOKENS,
    MAX_TOKENS,
    MONO_QUERY_TOKENS,
    PairInputs,
    PairLayout,
    TripleInputs,
    TripleLayout,
)
from pyserini_repbert.models.tokenizer import TokenSequence, WordPieces
from pyserini_repbert.train.losses import relevance_cross_entropy
from pyserini_repbert.train.recipe import Recipe
from pyserini_repbert.train.sources import Group, TrainingSource
from pyserini_repbert.train.tasks.base import (
    Batch,
    GroupTask,
    Task,
    check_ranking,
    config_of,
    in_length_groups,
    limit,
    padded,
)

_KNOWN = ('layout', 'max_query_length', 'max_length')


class CrossEncoderTask(Task):
    """An instance gives two inputs, one relevant and one not: batches are balanced."""

    system: str
    module: type[CrossEncoder]
    builder: type[PairInputs] | type[TripleInputs]
    layout: str
    query_tokens: int

    def __init__(
        self, recipe: Recipe, pieces: WordPieces, sources: Sequence[TrainingSource], config: Mapping[str, Any]
    ) -> None:
        super().__init__(recipe, pieces, sources)
        check_ranking(recipe, _KNOWN)
        sizes = config_of(config)
        self.inputs = self.builder(
            pieces,
            recipe.ranking.get('layout', self.layout),
            limit(recipe, 'max_length', MAX_TOKENS, sizes.max_position_embeddings),
            limit(recipe, 'max_query_length', self.query_tokens),
        )
        self.ranker = self.module(sizes)

    def ranking(self) -> dict[str, Any]:
        """System, layout and lengths."""
        lengths = {'max_query_length': self.inputs.max_query, 'max_length': self.inputs.max_tokens}
        return {'system': self.system, 'layout': str(self.inputs.layout), **lengths}

    @property
    def inputs_per_instance(self) -> int:
        """Two; of a group, which is counted as a whole, one."""
        return 1 if self.recipe.training.group else 2

    def forward(self, batch: Batch) -> Tensor:
        """Mean cross-entropy."""
        return relevance_cross_entropy(self._logits(batch), batch['relevant'])

    def _logits(self, batch: Batch) -> Tensor:
        inputs = batch['input_ids'], batch['token_type_ids'], batch.get('attention_mask')
        return in_length_groups(self.ranker, *inputs)

    def _batch(self, relevant: list[TokenSequence], others: list[TokenSequence]) -> Batch:
        targets = torch.tensor([1] * len(relevant) + [0] * len(others))
        return {**padded([*relevant, *others], self.pieces.pad), 'relevant': targets}


class MonoBertTask(CrossEncoderTask, GroupTask):
    """A query beside a relevant passage, and beside a non-relevant one (Multi-Stage eq. 1)."""

    system = MONO
    module = MonoBert
    builder = PairInputs
    inputs: PairInputs
    layout = PairLayout.PAPER
    query_tokens = MONO_QUERY_TOKENS
    trained_in_body = ('bert.pooler.',)

    def inputs_of(self, queries: list[list[int]], passages: list[list[int]], query_of: Sequence[int]) -> Batch:
        """Each passage beside its query."""
        pairs = zip(query_of, passages, strict=True)
        return padded([self.inputs.build(queries[row], text).sequence for row, text in pairs], self.pieces.pad)

    def scores(self, batch: Batch) -> Tensor:
        """The log-odds of relevance."""
        logits = self._logits(batch)
        return logits[:, 1] - logits[:, 0]

    def forward(self, batch: Batch) -> Tensor:
        """Mean cross-entropy; the loss of groups where the batch has them."""
        return self.group_loss(batch) if 'present' in batch else super().forward(batch)

    def collate(self, instances: Sequence[Any]) -> Batch:
        """Inputs with the relevant passages, then those with the others; or those of groups."""
        if self.recipe.training.group:
            return self.collate_groups(instances)
        queries, positives, negatives = self.queries_and_passages(instances)
        relevant, others = (
            [self.inputs.build(query, text).sequence for query, text in zip(queries, texts, strict=True)]
            for texts in (positives, negatives)
        )
        return self._batch(relevant, others)


class DuoBertTask(CrossEncoderTask):
    """Each pair of a relevant and a non-relevant passage in both orders (Multi-Stage eq. 2)."""

    system = DUO
    module = DuoBert
    builder = TripleInputs
    inputs: TripleInputs
    layout = TripleLayout.PAPER
    query_tokens = DUO_QUERY_TOKENS
    trained_in_body = ('bert.pooler.', 'bert.embeddings.token_type_embeddings.')

    @classmethod
    def body_config(cls, values: Mapping[str, Any], recipe: Recipe) -> dict[str, Any]:
        """With a third token type."""
        return {**values, 'type_vocab_size': max(SEGMENTS, int(values.get('type_vocab_size', 2)))}

    def collate(self, instances: Sequence[Any]) -> Batch:
        """Inputs with the relevant passage first, then the same pairs the other way round.

        Of groups, which are pairs, `taught` has the probability that the teacher's margin gives to an input's order,
        and `judged` says which inputs have a relevant passage.
        """
        if self.recipe.training.group:
            return self._collate_taught(instances)
        return self._both_orders(list(zip(*self.queries_and_passages(instances), strict=True)))

    def _collate_taught(self, pairs: Sequence[Group]) -> Batch:
        known = [(self.sources[own.source], own) for own in pairs]
        texts = [text for source, own in known for text in source.texts(own.docids)]
        ids = self.ids([*(source.query(own.qid) for source, own in known), *texts])
        queries, passages = ids[: len(pairs)], ids[len(pairs) :]
        batch = self._both_orders(list(zip(queries, passages[::2], passages[1::2], strict=True)))
        batch['judged'] = torch.tensor([own.judged for own in pairs] * 2)
        if self.recipe.teacher is not None:
            scores = torch.tensor([source.taught(own.qid, own.docids) for source, own in known])
            margins = scores[:, 0] - scores[:, 1]
            batch['taught'] = torch.sigmoid(torch.cat([margins, -margins]))
        return batch

    def forward(self, batch: Batch) -> Tensor:
        """Mean cross-entropy; of groups, against the teacher's probabilities and, where there are some, judgments."""
        if 'judged' not in batch:
            return super().forward(batch)
        logits, judged, teacher = self._logits(batch), batch['judged'], self.recipe.teacher
        relevance = logits.new_zeros(())
        if judged.any():
            relevance = relevance_cross_entropy(logits[judged], batch['relevant'][judged])
        if teacher is None:
            return relevance
        return teacher.judged_weight * relevance + teacher.weight * relevance_cross_entropy(logits, batch['taught'])

    def _both_orders(self, triples: list[tuple[list[int], list[int], list[int]]]) -> Batch:
        first = [self.inputs.build(query, positive, negative).sequence for query, positive, negative in triples]
        second = [self.inputs.build(query, negative, positive).sequence for query, positive, negative in triples]
        return self._batch(first, second)
