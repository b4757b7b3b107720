"""The vectors of tokens: late interaction.

The folder `tokens` of a collection has their approximate index. A row of it is a vector of a token.
The vectors nearest to each token of a question name the candidates, whose passages get exact scores
(ColBERT section 3.6). https://arxiv.org/abs/2004.12832
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.collection.opened_models import further_model
from pyserini_repbert.collection.passage_vectors import PassageVectors
from pyserini_repbert.encode.representations import RepresentationModel, VectorRows
from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import Representation
from pyserini_repbert.extensions.approximate.covered import ShardVectors
from pyserini_repbert.extensions.approximate.index import candidate_rows
from pyserini_repbert.extensions.approximate.kinds import AnnKind, Effort, token_efforts
from pyserini_repbert.extensions.approximate.making import SEED, AnnSettings, RecallMeasure
from pyserini_repbert.extensions.approximate.ranking_vectors import RankingVectors
from pyserini_repbert.index.quantized import StoredVectors
from pyserini_repbert.search.scores import top_rows

# How many queries measure recall if none are given.
_SAMPLE = 50


class TokenRankingVectors(RankingVectors):
    """A further model's vectors of a generation's passages, several per passage.

    Attributes
    ----------
    kind : of the further model
    rows : of each shard, in the order of `PassageVectors`
    """

    def __init__(
        self, generation: Generation, kind: Representation, passages: PassageVectors
    ) -> None:
        self.kind = kind
        self.folder = generation.folder / kind.name
        self._model = further_model(generation, kind)
        self._live = passages.live
        self.rows = [cast(VectorRows, shard.rows_of(kind)) for shard in passages.shards]
        self.shards = []
        for shard, rows in zip(passages.shards, self.rows, strict=True):
            n_vectors, dimension = rows.vectors.shape
            self.shards.append(ShardVectors(shard.name, (n_vectors, dimension), rows.offsets[1:]))

    @property
    def settings(self) -> RepresentationModel:
        """The model's."""
        return self._model

    def blocks(self, size: int) -> Iterator[tuple[int, StoredVectors]]:
        first = 0
        for rows in self.rows:
            for start in range(0, len(rows.vectors), size):
                yield first + start, rows.vectors[start : start + size]
            first += len(rows.vectors)

    def count_of(self, rows: NDArray[np.bool_]) -> int:
        return int(np.diff(self.ends, prepend=0)[rows].sum())

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """Where the vectors of each passage end, int64 (passages,)."""
        first = 0
        parts = [np.empty(0, np.int64)]
        for rows in self.rows:
            parts.append(first + rows.offsets[1:])
            first += len(rows.vectors)
        return np.concatenate(parts)

    def recall_measure(self, settings: AnnSettings) -> RecallMeasure:
        return _PassageRecall(self, self._live, settings)


class _PassageRecall:
    """The share of the best passages with a vector near to one of a query, as a `RecallMeasure`.

    Their scores are exact, so these passages are found in the order of exact search.

    Parameters
    ----------
    vectors : of all passages
    live : the passages that can be hits, bool (passages,)
    settings : `queries` and `hits` are taken
    """

    usual = AnnKind.IVF

    def __init__(
        self,
        vectors: TokenRankingVectors,
        live: NDArray[np.bool_],
        settings: AnnSettings,
    ) -> None:
        self._kind = vectors.kind
        self._vectors = vectors
        can_match = [np.empty(0, np.bool_), *(rows.can_match for rows in vectors.rows)]
        self._can_match = live & np.concatenate(can_match)
        self.hits = min(settings.hits, int(np.count_nonzero(self._can_match)))
        self.sample = settings.sample or 'queries'
        if settings.queries is None:
            self.queries: Sequence[Any] = self._sample_queries()
            self.sample = f'parts of passages with noise, seed {SEED}'
        else:
            # A question without tokens that count finds nothing.
            self.queries = [query for query in settings.queries if query is not None]
            if not self.queries:
                raise InputError(f'no question of {self.sample} has tokens that count: give others')

    def _sample_queries(self) -> list[Any]:
        random = np.random.default_rng(SEED)
        rows = np.flatnonzero(self._can_match)
        drawn = np.sort(random.choice(rows, min(_SAMPLE, len(rows)), replace=False))
        queries = []
        first = 0
        for part in self._vectors.rows:
            for row in drawn[(drawn >= first) & (drawn < first + len(part))].tolist():
                queries.append(self._kind.work.sample_query(part.value(row - first), random))
            first += len(part)
        return queries

    @cached_property
    def _truth(self) -> list[NDArray[np.int64]]:
        """The best passages of each query, and those that tie with the last."""
        rows = np.flatnonzero(self._can_match)
        best = []
        for query in self.queries:
            scores = np.concatenate([part.scores(query) for part in self._vectors.rows])
            best.append(top_rows(scores[rows], rows, self.hits).rows)
        return best

    def efforts(self, kind: AnnKind) -> Iterator[Effort]:
        return token_efforts(kind, len(self._vectors), self.hits)

    def recall(self, index: Any, kind: AnnKind, effort: Effort) -> float:
        shares = []
        for query, best in zip(self.queries, self._truth, strict=True):
            found = candidate_rows(index, kind, self._kind.work.query_vectors(query), effort)
            passages = np.searchsorted(self._vectors.ends, found[found >= 0], side='right')
            n_found = int(np.isin(best, passages).sum())
            shares.append(min(n_found, self.hits) / self.hits)
        return float(np.mean(shares))
