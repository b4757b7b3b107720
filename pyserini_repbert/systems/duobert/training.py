"""duoBERT, trained by cross-entropy on pairs in both orders (Multi-Stage eq. 2, section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from pyserini_repbert.systems.duobert.inputs import TripleInputs
from pyserini_repbert.systems.duobert.network import SEGMENTS, DuoBert
from pyserini_repbert.tasks.cross_encoder import CrossEncoderTask, first_half
from pyserini_repbert.tasks.instances import Instance
from pyserini_repbert.tasks.losses import relevance_cross_entropy
from pyserini_repbert.tasks.recipe import Recipe
from pyserini_repbert.tasks.task import Batch, outputs, padded


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
            relevance = relevance_cross_entropy(logits[judged], first_half(logits)[judged])
        if teacher is None:
            return relevance
        return teacher.judged_weight * relevance + teacher.weight * relevance_cross_entropy(
            logits, batch['taught']
        )
