"""Training RepBERT: a margin over in-batch negatives, and the scores of a teacher.

RepBERT section 3.2, https://arxiv.org/abs/2006.15498.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed, nn

from pyserini_repbert.errors import InputError
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.weights import UNIT_LAYER
from pyserini_repbert.systems.repbert import settings as repbert
from pyserini_repbert.systems.repbert.network import RepBert
from pyserini_repbert.tasks.bi_encoder import BiEncoderTask, in_batch_labels
from pyserini_repbert.tasks.instances import Instance
from pyserini_repbert.tasks.losses import MARGIN, multi_label_margin
from pyserini_repbert.tasks.recipe import Recipe
from pyserini_repbert.tasks.task import Batch, limit, outputs

# Instances from whose scores the scale is chosen.
SCALE_INSTANCES = 32
# The share of pairs of a relevant and another passage that a chosen scale leaves within the margin.
WITHIN_MARGIN = 0.1
_SPECIAL_TOKENS = 2


class RepBertTask(BiEncoderTask):
    """A margin loss over the scores of each row's query for all passages in the batch.

    Rows are query-passage pairs: an instance gives one with its relevant passage and, if it has a
    non-relevant passage, another with that, as the released code reads MS MARCO's triples. The
    judgments of a row's query say which passages are relevant to it. Queries and passages are
    encoded apart.

    With groups, rows are judged queries; the scores of a query's own candidates also follow the
    teacher's.

    Attributes
    ----------
    first_scale : the scale that was chosen, 0 before; None if the recipe says it
    """

    known = ('max_query_length', 'max_doc_length')
    query_type = repbert.QUERY_TYPE
    passage_type = repbert.PASSAGE_TYPE
    first_scale: Tensor | None

    def new_ranker(self, sizes: BertConfig) -> RepBert:
        most = sizes.max_position_embeddings - _SPECIAL_TOKENS
        self.max_query = limit(self.recipe, 'max_query_length', repbert.MAX_QUERY_TOKENS, most)
        self.max_passage = limit(self.recipe, 'max_doc_length', repbert.MAX_PASSAGE_TOKENS, most)
        scale = self.recipe.training.scale
        is_open = scale is None and self.recipe.training.unit_layer
        self.register_buffer('first_scale', torch.zeros(()) if is_open else None)
        self.last_norm = f'bert.encoder.layer.{sizes.num_hidden_layers - 1}.output.LayerNorm.'
        self.log_scale: nn.Parameter | None = None
        self.trained_in_body = ()
        if scale or is_open:
            self.log_scale = nn.Parameter(torch.tensor(math.log(scale or 1.0)))
            self.trained_in_body = (self.last_norm,)
        if any(source.source.triples or source.source.negatives for source in self.sources):
            self.inputs_per_pair = 2
        return RepBert(sizes)

    @classmethod
    def body_config(cls, values: Mapping[str, Any], recipe: Recipe) -> dict[str, Any]:
        """The base's own, with one layer more if the recipe asks for a unit layer."""
        if not recipe.training.unit_layer:
            return dict(values)
        if values.get(UNIT_LAYER):
            raise InputError(
                f"base '{recipe.base}' has a unit layer: leave training.unit_layer out"
            )
        return {
            **values,
            'num_hidden_layers': BertConfig.from_dict(values).num_hidden_layers + 1,
            UNIT_LAYER: True,
        }

    @torch.no_grad()
    def before_first_step(self, stream: Iterable[Instance]) -> None:
        """With a unit layer and no `scale`, choose the scale by the scores of the first model."""
        if self.first_scale is None or self.log_scale is None:
            return
        batch = self.collate(list(itertools.islice(stream, SCALE_INSTANCES)))
        self.ranker.eval()
        queries = outputs(self.ranker, batch, 'query_')
        passages = outputs(self.ranker, batch, 'passage_')
        self.ranker.train()
        rows = batch['rows']
        labels = in_batch_labels(batch['passage_keys'], batch['relevant_keys'][rows])
        scale = fitting_scale(queries[rows].float() @ passages.float().T, labels)
        self.first_scale.fill_(scale)
        self.log_scale.fill_(math.log(scale))

    def notes(self) -> list[str]:
        scale = self.first_scale
        if not scale:
            return []
        return [
            f"scale of inner products: {scale:.4g} at the beginning, from the base's own scores"
        ]

    def ranking(self) -> dict[str, Any]:
        return {
            'system': repbert.NAME,
            'max_query_length': self.max_query,
            'max_doc_length': self.max_passage,
        }

    def forward(self, batch: Batch) -> Tensor:
        """RepBERT eq. 4, averaged over rows; plus the teacher's loss, for groups."""
        queries = outputs(self.ranker, batch, 'query_')
        passages = outputs(self.ranker, batch, 'passage_')
        columns = passages
        keys = batch['passage_keys']
        if self.recipe.training.gather:
            columns, keys = gathered(passages, keys)
        rows = batch['rows']
        judged = batch.get('judged')
        with torch.autocast(queries.device.type, enabled=False):
            queries = queries.float()
            if self.log_scale is not None:
                queries = queries * self.log_scale.exp()
            # With groups, a judged query is one row of the loss.
            of_rows = rows if judged is None else judged.nonzero().squeeze(1)
            labels = in_batch_labels(keys, batch['relevant_keys'][of_rows])
            loss = multi_label_margin(queries[of_rows] @ columns.float().T, labels)
            if judged is not None:
                scores = (queries[rows] * passages.float()).sum(dim=1)
                loss = self.with_teacher(loss, scores, batch)
        return loss

    def finished(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """The weights to be saved.

        A learned scale s goes into the last layer norm: vectors become sqrt(s) times as long.
        """
        if self.log_scale is None:
            return tensors
        root = float((self.log_scale.detach() / 2).exp())
        scaled = dict(tensors)
        for name, value in tensors.items():
            if name.startswith(self.last_norm):
                scaled[name] = value * root
        return scaled


def fitting_scale(similarities: Tensor, positive: Tensor) -> float:
    """A factor of similarities with which the margin is violated by some pairs, and not by all.

    A pair has a relevant and another passage. The margin of 1 then equals the standard deviation of
    the other passages' scores, or the difference of scores that a tenth of the pairs stay below,
    whichever is more. Takes the parameters of `multi_label_margin`.
    """
    rows = similarities.double().numpy()
    relevant = positive.numpy()
    pairs = [
        np.subtract.outer(row[mask], row[~mask]).ravel()
        for row, mask in zip(rows, relevant, strict=True)
    ]
    differences = np.concatenate(pairs)
    if not len(differences):
        return 1.0
    margin = max(float(rows[~relevant].std()), float(np.quantile(differences, WITHIN_MARGIN)))
    if margin <= 0:
        return 1.0
    return MARGIN / margin


def gathered(passages: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """The passages and keys of all processes, in the order of their ranks, with gradients.

    Every process has to have the same number of passages. With one process, nothing changes.
    """
    in_group = distributed.is_available() and distributed.is_initialized()
    if not in_group or distributed.get_world_size() == 1:
        return passages, keys
    from torch.distributed.nn import functional

    all_gather: Any = functional.all_gather
    return torch.cat(all_gather(passages.contiguous())), torch.cat(all_gather(keys))
