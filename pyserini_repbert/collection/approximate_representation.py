"""An approximate index of the vectors that a further model made of passages: late interaction.

The folder `tokens` of a collection has it, with the files of the folder around `ann`, and it stays
in use while the collection changes, as that one does (`collection.approximate`). A row of the index
is a vector of a token. The vectors nearest to each token of a question name the candidates, whose
passages get exact scores (ColBERT section 3.6). https://arxiv.org/abs/2004.12832
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.approximate import (
    CollectionAnnRecord,
    CoveredShard,
    build_collection_ann,
    open_collection_ann,
    other_vectors,
)
from pyserini_repbert.collection.further_encoders import further_model
from pyserini_repbert.collection.generation import Generation, open_generation
from pyserini_repbert.collection.passage_vectors import PassageVectors
from pyserini_repbert.collection.rankings import CollectionRanking
from pyserini_repbert.encode.representations import (
    RepresentationModel,
    VectorRows,
)
from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import Representation, representations
from pyserini_repbert.index.ann import candidate_rows, write_ann
from pyserini_repbert.index.ann_form import ANN, CLEARED
from pyserini_repbert.index.ann_kinds import AnnKind, Effort, token_efforts
from pyserini_repbert.index.quantized import StoredVectors
from pyserini_repbert.search.ann import SEED, AnnSettings, ann_lock, check_count, make_ann
from pyserini_repbert.search.scores import top_rows

# Queries on which recall is measured, where none are given.
_SAMPLE = 50
# Of a smaller share of rows that count, all are candidates.
_ALL_SHARE = 1 / 16


def build_ranking_ann(
    folder: Path,
    ranking: str,
    settings: AnnSettings | None = None,
    *,
    overwrite: bool = False,
    on_progress: Callable[[int], object] = int,
) -> CollectionAnnRecord:
    """Build the approximate index of a ranking of a collection's newest generation.

    Others may search and write the collection meanwhile.

    Parameters
    ----------
    folder : of the collection
    ranking : 'dense', or that of a further model that has vectors: 'multi'
    settings : what it has to reach; recall is the share of exact search's best passages, the live
        ones
    overwrite : replace the ranking's approximate index
    on_progress : called with the number of vectors added since the last call

    Raises InputError for a ranking without vectors, for a collection of too few of them, and where
    no setting reaches the recall; nothing is written then.
    """
    if ranking == CollectionRanking.DENSE:
        return build_collection_ann(folder, settings, overwrite, on_progress)
    kind = _approximated(ranking)
    with contextlib.closing(open_generation(folder)) as generation:
        if kind not in generation.settings.further_models:
            raise InputError(
                f'collection {folder} has no {kind.what}: build the index of another ranking',
                parameters=('ranking',),
            )
        passages = PassageVectors(generation)
        vectors = _FurtherVectors(generation, kind, passages)
        check_count(vectors.count_of(passages.live), folder)
        target = ann_folder(folder, ranking)
        target.mkdir(exist_ok=True)
        with ann_lock(target, overwrite):
            wanted = settings or AnnSettings()
            measure = _PassageRecall(kind, vectors, passages.live, wanted)
            built = make_ann(vectors, wanted, measure, on_progress)
            shards = []
            for shard, rows in zip(passages.shards, vectors.rows, strict=True):
                if len(rows.vectors):
                    shards.append(CoveredShard(shard.name, len(rows.vectors)))
            record = CollectionAnnRecord(**vars(built.record), shards=tuple(shards))
            return write_ann(target, built.index, record)


def _approximated(ranking: str) -> Representation:
    """What is searched by a ranking. Raises InputError for one that has no approximate index."""
    kinds = {kind.ranking: kind for kind in representations() if kind.has_ann}
    if ranking not in kinds:
        raise InputError(
            f"ranking '{ranking}' has no approximate index: expected "
            f'{", ".join([CollectionRanking.DENSE, *kinds])}',
            parameters=('ranking',),
        )
    return kinds[ranking]


def ann_folder(folder: Path, ranking: str) -> Path:
    """The folder in a collection in which a ranking has its approximate index, `ann`."""
    if ranking == CollectionRanking.DENSE:
        return folder
    return folder / _approximated(ranking).name


def describe_further_anns(generation: Generation) -> str:
    """A line for the index of each further model that has one, once its files are compared; ''
    without any.

    Raises DamagedFileError for an index that is not whole, or does not fit.
    """
    lines = []
    for kind in generation.settings.further_models:
        folder = generation.folder / kind.name
        if not kind.has_ann or not (folder / ANN).exists():
            continue
        passages = PassageVectors(generation)
        ann = RepresentationAnn(generation, kind, passages, remembered=False)
        n_covered = int(np.count_nonzero(ann.is_covered & passages.live))
        n_live = int(np.count_nonzero(passages.live))
        lines.append(f'{folder / ANN}: whole, has {n_covered} of {n_live} passages, {ann.record}')
    return '\n'.join(lines)


class _FurtherVectors:
    """The vectors that a further model made of a generation's passages, as `SizedVectors`.

    Attributes
    ----------
    rows : of each shard, in the order of `PassageVectors`
    """

    def __init__(
        self, generation: Generation, kind: Representation, passages: PassageVectors
    ) -> None:
        self._model = further_model(generation, kind)
        self.rows = [cast(VectorRows, shard.rows_of(kind)) for shard in passages.shards]

    @property
    def settings(self) -> RepresentationModel:
        """The model's: `dimension`, the length of a vector."""
        return self._model

    def __len__(self) -> int:
        return sum(len(rows.vectors) for rows in self.rows)

    def blocks(self, size: int) -> Iterator[tuple[int, StoredVectors]]:
        """As in `Blocks`."""
        first = 0
        for rows in self.rows:
            for start in range(0, len(rows.vectors), size):
                yield first + start, rows.vectors[start : start + size]
            first += len(rows.vectors)

    def count_of(self, rows: NDArray[np.bool_]) -> int:
        """How many vectors some passages have, bool (passages,)."""
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


class _PassageRecall:
    """The share of the best passages with a vector near to one of a query, as a `RecallMeasure`.

    Their scores are exact, so these passages are found in the order of exact search.

    Parameters
    ----------
    kind : of the further model
    vectors : of all passages
    live : the passages that can be hits, bool (passages,)
    settings : `queries` and `hits` are taken
    """

    usual = AnnKind.IVF

    def __init__(
        self,
        kind: Representation,
        vectors: _FurtherVectors,
        live: NDArray[np.bool_],
        settings: AnnSettings,
    ) -> None:
        self._kind = kind
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


class RepresentationAnn:
    """Finds passages of a generation whose vectors are near to those of a question.

    Parameters
    ----------
    generation : open
    kind : of the further model
    passages : of the generation
    remembered : as in `AnnIndex`

    Attributes
    ----------
    record : of the index
    is_covered : the passages that the index has, bool (rows,)

    Raises
    ------
    InputError : there is no such index
    DamagedFileError : it is not whole, or of other vectors
    """

    def __init__(
        self,
        generation: Generation,
        kind: Representation,
        passages: PassageVectors,
        remembered: bool = True,
    ) -> None:
        self._kind = kind
        folder = generation.folder / kind.name
        if not (folder / ANN).exists() and not (folder / CLEARED).exists():
            raise InputError(
                f'collection {generation.folder} has no approximate index of the ranking '
                f"'{kind.ranking}': build it with `index ann`, for this ranking"
            )
        self.index = open_collection_ann(folder, remembered)
        self.record = self.index.record
        self._ends = np.empty(0, np.int64)
        self._rows = np.empty(0, np.int64)
        self._locate(folder, _FurtherVectors(generation, kind, passages), passages)
        self.is_covered = np.zeros(len(passages), np.bool_)
        self.is_covered[self._rows[self._rows >= 0]] = True
        self._n_covered = int(np.count_nonzero(self.is_covered))

    def _locate(self, folder: Path, vectors: _FurtherVectors, passages: PassageVectors) -> None:
        """Find out which vectors of the index are of which passage.

        `_ends` has where those of each passage end, `_rows` its row; -1 for all of a shard that is
        gone. Raises DamagedFileError for an index of other vectors.
        """
        rows_by_name = {}
        first_rows = {}
        first = 0
        for shard, rows in zip(passages.shards, vectors.rows, strict=True):
            rows_by_name[shard.name] = rows
            first_rows[shard.name] = first
            first += len(shard)
        ends = [np.empty(0, np.int64)]
        numbers = [np.empty(0, np.int64)]
        start = 0
        for covered in self.record.shards:
            if covered.name in rows_by_name:
                rows = rows_by_name[covered.name]
                if rows.vectors.shape != (covered.rows, self.record.dimension):
                    raise other_vectors(folder, covered)
                ends.append(start + rows.offsets[1:])
                numbers.append(first_rows[covered.name] + np.arange(len(rows)))
            else:
                ends.append(np.array([start + covered.rows]))
                numbers.append(np.array([-1]))
            start += covered.rows
        self._ends = np.concatenate(ends)
        self._rows = np.concatenate(numbers)

    def candidates(self, query: Any, k: int, allowed: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Passages among which the k best may be, int64 (m,).

        Those of newer shards are all among them. Where few are allowed, or not many more than k,
        all that are allowed are.

        Parameters
        ----------
        query : of the representation
        k : how many passages are wanted; more are searched for where few count
        allowed : the passages that count, bool (rows,)
        """
        counted = allowed & self.is_covered
        n_counted = int(np.count_nonzero(counted))
        if n_counted <= _ALL_SHARE * self._n_covered:
            return np.flatnonzero(allowed)
        depth = -(-k * self._n_covered // n_counted)
        if depth >= self._n_covered:
            return np.flatnonzero(allowed)
        found = self.index.rows(self._kind.work.query_vectors(query), depth)
        positions = np.searchsorted(self._ends, np.unique(found[found >= 0]), side='right')
        rows = self._rows[positions]
        is_candidate = allowed & ~self.is_covered
        is_candidate[rows[rows >= 0]] = True
        return np.flatnonzero(is_candidate & allowed)
