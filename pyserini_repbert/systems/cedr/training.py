"""CEDR and Vanilla BERT, trained to rank a relevant document above a non-relevant one (CEDR
section 3.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, cast

import torch
from torch import Tensor

from pyserini_repbert.errors import InputError
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.systems.cedr.heads import CedrKnrm
from pyserini_repbert.systems.cedr.layout import (
    CedrLayout,
    PairBatch,
)
from pyserini_repbert.systems.cedr.loading import new_ranker
from pyserini_repbert.systems.cedr.network import CedrRanker
from pyserini_repbert.systems.cedr.settings import CedrSettings
from pyserini_repbert.tasks.recipe import Recipe
from pyserini_repbert.tasks.task import (
    GROUP,
    Batch,
    GroupTask,
    limit,
)

# A key of the recipe's `ranking`, which config.json has as the size of the BERT.
_N_LAYERS = 'n_layers'


class CedrTask(GroupTask):
    """Scores of both documents of an instance, each read beside the query."""

    leaves_weights_unused = True
    known = (*(setting.name for setting in fields(CedrSettings)), _N_LAYERS)

    @classmethod
    def body_config(cls, values: Mapping[str, Any], recipe: Recipe) -> dict[str, Any]:
        """The base's own, with its first `n_layers` layers alone if the recipe says so (CEDR
        section 3.2, Figure 2b).

        Raises InputError for fewer than one layer, for more than the base has, and beside an
        adapter.
        """
        if _N_LAYERS not in recipe.ranking:
            return dict(values)
        if recipe.adapter is not None:
            raise InputError(
                f"recipe '{recipe.name}': ranking.{_N_LAYERS} leaves layers out, and an adapter "
                'keeps its base whole: leave one of them out'
            )
        most = BertConfig.from_dict(values).num_hidden_layers
        return {**values, 'num_hidden_layers': limit(recipe, _N_LAYERS, most, most)}

    def new_ranker(self, sizes: BertConfig) -> CedrRanker:
        settings = CedrSettings.from_ranking(self.recipe.ranking)
        self.layout = CedrLayout(sizes, settings, self.tokenizer)
        return new_ranker(sizes, settings)

    def begun(self, base: Mapping[str, Tensor]) -> None:
        """With `vanilla_head`, begin with the scores of the base: a KNRM with [CLS] over a
        Vanilla BERT.
        """
        if not self.recipe.training.vanilla_head:
            return
        ranker = cast(CedrRanker, self.ranker)
        if not (isinstance(ranker, CedrKnrm) and ranker.settings.joint and 'cls.weight' in base):
            raise InputError(
                f"recipe '{self.recipe.name}': training.vanilla_head is for KNRM with [CLS] over "
                f'a Vanilla BERT: '
                'leave it out, or check ranking.architecture, ranking.joint and base'
            )
        ranker.begin_as_vanilla(base['cls.weight'], base['cls.bias'])

    def ranking(self) -> dict[str, Any]:
        return cast(CedrRanker, self.ranker).settings.ranking()

    def inputs_of(
        self, queries: list[list[int]], passages: list[list[int]], query_of: Sequence[int]
    ) -> Batch:
        """Pairs of query and document, sorted by length, in batches of `GROUP`; in a single batch
        on a GPU.

        `groups` are these batches as dictionaries, `ranks` int64 (pairs,) the ranks of the pairs in
        the sorted order.
        """
        pairs = [
            self.layout.cut(queries[row], text)
            for row, text in zip(query_of, passages, strict=True)
        ]
        order = sorted(range(len(pairs)), key=lambda row: self.layout.cost(pairs[row]))
        size = len(pairs) if torch.cuda.is_available() else GROUP
        parts = (order[start : start + size] for start in range(0, len(order), size))
        groups = []
        for part in parts:
            batch = self.layout.collate([pairs[row] for row in part])
            groups.append(vars(batch))
        return {'ranks': torch.tensor(order).argsort(), 'groups': groups}

    def scores(self, batch: Batch) -> Tensor:
        scores = [self.ranker(PairBatch(**group)) for group in batch['groups']]
        return torch.cat(scores)[batch['ranks']]
