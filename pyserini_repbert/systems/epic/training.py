"""EPIC, trained to rank a relevant passage above a non-relevant one (EPIC section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

from pyserini_repbert.errors import InputError
from pyserini_repbert.models.batching import collate_chunks
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.systems.epic import network as epic
from pyserini_repbert.tasks.task import (
    Batch,
    GroupTask,
    limit,
    named,
    outputs,
)

_SPECIAL_TOKENS = 2


class EpicTask(GroupTask):
    """Scores of both passages of an instance.

    Vectors have only the terms of the batch's queries: no other term counts.

    A text without wordpieces is read as [UNK].
    """

    leaves_weights_unused = True
    known = ('variant', 'max_query_length', 'max_doc_length')

    def new_ranker(self, sizes: BertConfig) -> epic.Epic:
        recipe = self.recipe
        self.chunk_size = sizes.max_position_embeddings - _SPECIAL_TOKENS
        self.max_query = limit(recipe, 'max_query_length', epic.MAX_QUERY_TOKENS, self.chunk_size)
        self.max_passage = limit(recipe, 'max_doc_length', epic.MAX_PASSAGE_TOKENS)
        variant = recipe.ranking.get('variant', epic.Variant.OFFICIAL)
        if variant not in list(epic.Variant):
            expected = ', '.join(epic.Variant)
            raise InputError(
                f"recipe '{recipe.name}': ranking.variant is {variant!r}: expected one of "
                f'{expected}'
            )
        self.unknown = self.tokenizer.ids(['[UNK]'])[0]
        return epic.Epic(sizes, variant)

    def ranking(self) -> dict[str, Any]:
        variant = str(cast(epic.Epic, self.ranker).variant)
        lengths = {'max_query_length': self.max_query, 'max_doc_length': self.max_passage}
        return {'system': epic.NAME, 'variant': variant, **lengths}

    def inputs_of(
        self, queries: list[list[int]], passages: list[list[int]], query_of: Sequence[int]
    ) -> Batch:
        """Queries and passages, encoded apart.

        Of both, by the prefixes `query_` and `passage_`: the texts' chunks, where their wordpieces
        are in BERT's flattened output (`places`), and how many wordpieces and chunks each text has
        (`lengths`, `chunks`). Of the queries: the row (`owners`) and the term (`terms`) of each
        wordpiece. Of the passages: the row of their query (`query_of`).
        """
        queries = [query[: self.max_query] or self.unknown for query in queries]
        passages = [text[: self.max_passage] or self.unknown for text in passages]
        return {
            **self._texts(queries, epic.QUERY_TYPE, 'query_'),
            **self._texts(passages, epic.PASSAGE_TYPE, 'passage_'),
            'owners': torch.tensor([row for row, query in enumerate(queries) for _ in query]),
            'query_of': torch.tensor(query_of),
            'terms': torch.tensor([term for query in queries for term in query]),
        }

    def _texts(self, texts: list[list[int]], token_type: int, prefix: str) -> Batch:
        chunked = [self.tokenizer.chunks(text, self.chunk_size, token_type) for text in texts]
        chunks = [chunk for chunks_of_text in chunked for chunk in chunks_of_text]
        ids, types, mask, places = collate_chunks(chunks, self.tokenizer.pad, 'cpu')
        return named(ids, types, mask, prefix) | {
            f'{prefix}places': places,
            f'{prefix}lengths': torch.tensor([len(text) for text in texts]),
            f'{prefix}chunks': torch.tensor([len(chunks_of_text) for chunks_of_text in chunked]),
        }

    def scores(self, batch: Batch) -> Tensor:
        """EPIC's scores of the passages for their queries (EPIC eq. 5)."""
        ranker = cast(epic.Epic, self.ranker)
        weights = ranker.query_importances(self._contextual(batch, 'query_')[0])
        terms, columns = torch.unique(batch['terms'], return_inverse=True)
        tokens, cls_vectors = self._contextual(batch, 'passage_')
        vectors = ranker.document_vectors(
            tokens, batch['passage_lengths'].tolist(), cls_vectors, terms
        )
        places = batch['owners'] * len(terms) + columns
        queries = vectors.new_zeros(len(batch['query_lengths']) * len(terms)).index_add(
            0, places, weights.to(vectors)
        )
        return (queries.view(-1, len(terms))[batch['query_of']] * vectors).sum(dim=1)

    def _contextual(self, batch: Batch, prefix: str) -> tuple[Tensor, Tensor]:
        """Vectors of the wordpieces (total, h), one text after the other; and of [CLS] (n, h),
        the mean over chunks.
        """
        hidden = outputs(self.ranker, batch, prefix)
        tokens = hidden.flatten(0, 1)[batch[f'{prefix}places']]
        parts = torch.split(hidden[:, 0], batch[f'{prefix}chunks'].tolist())
        return tokens, torch.stack([part.mean(dim=0) for part in parts])
