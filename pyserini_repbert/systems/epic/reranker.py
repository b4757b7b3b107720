"""Reranking with EPIC: a query costs a few sums, since passage vectors come from an index.

Use it as a second stage where monoBERT takes too long. Candidates that the index lacks are encoded
on the fly. EPIC section 3, https://arxiv.org/abs/2004.14245
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyserini_repbert.models.token_ids import TokenIds
from pyserini_repbert.rerank.base import Progress
from pyserini_repbert.rerank.term_weights import QueryTextPair, TermWeightsReranker
from pyserini_repbert.systems.epic.encoder import EpicEncoder


class EpicReranker(TermWeightsReranker, recorded_as='EpicReranker'):
    """Reranks by the weights of an EPIC checkpoint, such as the catalog's 'epic' (EPIC eq. 5).

    If nothing is pruned, only the terms of queries are computed. Parameters and errors are as in
    `TermWeightsReranker`.
    """

    encoder_class = EpicEncoder
    encoder: EpicEncoder

    def _read_texts(self, counts: Counter[str]) -> TokenIds:
        """The token ids of texts; counts tokens, and the texts that are cut."""
        ids = self.encoder.tokenizer.flat_ids(list(counts), self.encoder.limit + 1)
        lengths = ids.lengths.tolist()
        self.work.tokens += sum(map(self.encoder.input_tokens, lengths))
        for count, length in zip(counts.values(), lengths, strict=True):
            if length > self.encoder.limit:
                self.work.truncated += count
        return ids

    def _score_pairs(
        self, pairs: Sequence[QueryTextPair], passages: Any, on_progress: Progress
    ) -> list[float]:
        if self.prune:
            return super()._score_pairs(pairs, passages, on_progress)
        # Only the terms of the queries are computed.
        queries = dict.fromkeys(pair.query for pair in pairs)
        terms = np.unique(np.concatenate([query.terms for query in queries]))
        dense = self.encoder.encode_dense(passages, terms, self.token_budget, on_progress)
        columns = {query: np.searchsorted(terms, query.terms) for query in queries}
        scores = []
        for pair in pairs:
            weights = dense[pair.text, columns[pair.query]]
            scores.append(weights @ pair.query.weights)
        return scores
