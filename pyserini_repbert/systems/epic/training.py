"""Training EPIC to rank a relevant passage above a non-relevant one (EPIC section 3).

https://arxiv.org/abs/2004.14245
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

from pyserini_repbert.errors import InputError
from pyserini_repbert.models.batching import collate_chunks
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.systems.epic import network as epic
from pyserini_repbert.tasks.task import Batch, GroupTask, limit, named, outputs

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
        return {
            'system': epic.NAME,
            'variant': str(cast(epic.Epic, self.ranker).variant),
            'max_query_length': self.max_query,
            'max_doc_length': self.max_passage,
        }

    def inputs_of(
        self, queries: list[list[int]], passages: list[list[int]], query_of: Sequence[int]
    ) -> Batch:
        """Queries and passages, encoded apart.

        The batch has, with the prefixes `query_` and `passage_`, the chunks of these texts, and

        - `positions`: where their wordpieces are in BERT's flattened output
        - `lengths`, `chunks`: how many wordpieces and chunks each text has

        Of the queries, it has the row (`owners`) and the term (`terms`) of each wordpiece; of the
        passages, the row of their query (`query_of`).
        """
        queries = [query[: self.max_query] or self.unknown for query in queries]
        passages = [text[: self.max_passage] or self.unknown for text in passages]
        owners: list[int] = []
        for row, query in enumerate(queries):
            owners += [row] * len(query)
        return {
            **self._texts(queries, epic.QUERY_TYPE, 'query_'),
            **self._texts(passages, epic.PASSAGE_TYPE, 'passage_'),
            'owners': torch.tensor(owners),
            'query_of': torch.tensor(query_of),
            'terms': torch.tensor(list(itertools.chain.from_iterable(queries))),
        }

    def _texts(self, texts: list[list[int]], token_type: int, prefix: str) -> Batch:
        """The tensors of texts, whose names begin with `prefix`."""
        chunks = []
        chunk_counts = []
        for text in texts:
            chunks_of_text = self.tokenizer.chunks(text, self.chunk_size, token_type)
            chunks += chunks_of_text
            chunk_counts.append(len(chunks_of_text))
        ids, types, mask, positions = collate_chunks(chunks, self.tokenizer.pad, 'cpu')
        batch = named(ids, types, mask, prefix)
        batch[f'{prefix}positions'] = positions
        batch[f'{prefix}lengths'] = torch.tensor([len(text) for text in texts])
        batch[f'{prefix}chunks'] = torch.tensor(chunk_counts)
        return batch

    def scores(self, batch: Batch) -> Tensor:
        """EPIC's scores of the passages for their queries (EPIC eq. 5)."""
        ranker = cast(epic.Epic, self.ranker)
        weights = ranker.query_importances(self._contextual(batch, 'query_')[0])
        terms, columns = torch.unique(batch['terms'], return_inverse=True)
        tokens, cls_vectors = self._contextual(batch, 'passage_')
        vectors = ranker.document_vectors(
            tokens, batch['passage_lengths'].tolist(), cls_vectors, terms
        )
        # The weights of a repeated term are summed, in a flat matrix (queries, terms).
        cells = batch['owners'] * len(terms) + columns
        flat = vectors.new_zeros(len(batch['query_lengths']) * len(terms))
        queries = flat.index_add(0, cells, weights.to(vectors)).view(-1, len(terms))
        return (queries[batch['query_of']] * vectors).sum(dim=1)

    def _contextual(self, batch: Batch, prefix: str) -> tuple[Tensor, Tensor]:
        """The wordpieces' vectors, (total, h), text after text, and the texts' [CLS], (n, h).

        [CLS] is the mean over a text's chunks.
        """
        hidden = outputs(self.ranker, batch, prefix)
        tokens = hidden.flatten(0, 1)[batch[f'{prefix}positions']]
        parts = torch.split(hidden[:, 0], batch[f'{prefix}chunks'].tolist())
        return tokens, torch.stack([part.mean(dim=0) for part in parts])
