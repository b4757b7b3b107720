"""Rerankers on result frames, and interleave fusion of any PyTerrier transformers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.fusing import fuse
from pyserini_repbert.fusion.methods import FusionMethod
from pyserini_repbert.interop.pyterrier.frames import (
    FrameQuery,
    pd,
    pt,
    queries_of,
    rank_columns,
    ranked_frame,
    ranked_rows,
)
from pyserini_repbert.interop.pyterrier.parameters import Configured
from pyserini_repbert.interop.pyterrier.retrievers import Retriever
from pyserini_repbert.models.cross_encoder import log_probabilities
from pyserini_repbert.names.rerankers import open_reranker
from pyserini_repbert.pipeline.pipeline import cut_batches
from pyserini_repbert.ranking import NO_HITS, Query, Ranker, Ranking, Run
from pyserini_repbert.rerank.base import rescored

PAIRS = 'duobert_p'


@dataclass(frozen=True)
class _Compared:
    """Rankings, and for each of their hits its probabilities against the query's hits."""

    rankings: list[Ranking]
    pairs: list[Any]


class Rerank(Configured):
    """Any reranker: a result frame in, the same rows with new scores out, best first.

    Equal scores keep the order of the stage before: by 'rank'; without ranks, as the rows stand.
    Queries share the model's batches. Other columns stay. The frame needs 'text' (`PassageText`
    adds it), except for EPIC with an index. duoBERT takes n(n - 1) model inputs for n candidates,
    so cut first: `monobert % 50 >> Rerank('duobert-demo')`.

    Parameters
    ----------
    model : a catalog name, a checkpoint folder, a class (`MODULE:CLASS`), or an open reranker
    settings : keyword arguments of the reranker: method and samples of duoBERT, index of EPIC,
        token_budget, …
    matrix : of duoBERT: add the column 'duobert_p': for each hit i float64 (n,), the p_ij against
        the query's hits j by 'rank', NaN for itself and for pairs that were not compared; stacked,
        a query's rows are the matrix
    """

    def __init__(
        self, model: str | Path | Ranker, device: str = 'cpu', matrix: bool = False, **settings: Any
    ) -> None:
        self.model = model
        self.device = device
        self.matrix = matrix
        self.settings = settings
        self.reranker: Any = model
        if not isinstance(model, Ranker):
            self.reranker = open_reranker(model, device, settings)
        if matrix and not hasattr(self.reranker, 'pair_differences'):
            raise InputError(f"'{self.reranker.label}' compares no pairs: matrix is for duoBERT")

    def transform(self, inp: Any) -> Any:
        """The frame reranked. A candidate is refused if it lacks a text that the reranker needs."""
        needed = ['query']
        if self.reranker.needs_text:
            needed.append('text')
        pt.validate.result_frame(inp, extra_columns=needed)
        queries = queries_of(inp)
        lengths = [len(query.candidates) for query in queries]
        rows: list[int] = []
        rankings: list[Ranking] = []
        pairs: list[Any] = []
        for batch in cut_batches(self.reranker.planned(lengths)):
            part = queries[batch.start : batch.stop]
            if self.matrix:
                compared = self._compare(part)
                reranked = compared.rankings
                pairs += compared.pairs
            else:
                reranked = self._rerank(part)
            for query, ranking in zip(part, reranked, strict=True):
                row_of = dict(zip(query.candidates.docids, query.rows, strict=True))
                rows += [row_of[docid] for docid in ranking.docids]
            rankings += reranked
        columns = {}
        if self.matrix:
            columns[PAIRS] = pd.Series(pairs, dtype=object)
        return ranked_frame(inp, rows, rankings, columns)

    def _rerank(self, queries: Sequence[FrameQuery]) -> list[Ranking]:
        topics = [Query(str(number), query.query) for number, query in enumerate(queries)]
        run = {str(number): query.candidates for number, query in enumerate(queries)}
        return list(self.reranker.rank(topics, run, None).values())

    def _compare(self, queries: Sequence[FrameQuery]) -> _Compared:
        """duoBERT's rankings, and the row of probabilities of each hit."""
        texts = [query.query for query in queries]
        lists = [query.candidates for query in queries]
        for text, candidates in zip(texts, lists, strict=True):
            self.reranker.check(text, candidates)
        rankings = []
        pairs: list[Any] = []
        matrices = self.reranker.pair_differences(texts, lists)
        for text, candidates, matrix in zip(texts, lists, matrices, strict=True):
            ranking = rescored(candidates, self.reranker.aggregated(text, matrix))
            order = [candidates.docids.index(docid) for docid in ranking.docids]
            rankings.append(ranking)
            pairs += list(np.exp(log_probabilities(matrix[np.ix_(order, order)])))
        return _Compared(rankings, pairs)


class Interleave(Configured):
    """Alternates between the rankings of several systems (RepBERT eq. 6); the first one leads.

    Scores are 1, 1/2, 1/3, …; columns that all systems give stay, with the values of the first
    system that has the hit. The column 'rank_NAME' has a hit's rank in a system, from 0, missing
    where the system lacks the hit.

    Parameters
    ----------
    systems : transformers that give result frames
    names : of the systems; default: our retrievers' names, otherwise their numbers from 1
    num_results : hits of a query
    """

    def __init__(
        self, *systems: Any, names: Sequence[str] | None = None, num_results: int = 1000
    ) -> None:
        self.systems = systems
        self.num_results = num_results
        self._names = names if names is None else tuple(names)
        self._check_names(self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """What the systems are called now."""
        if self._names is not None:
            return self._names
        return tuple(_usual_name(system, number) for number, system in enumerate(self.systems, 1))

    def _check_names(self, names: Sequence[str]) -> None:
        """Raises InputError unless each system has a unique name."""
        n_systems = len(self.systems)
        if not n_systems or len(names) != n_systems or len(set(names)) < n_systems:
            raise InputError(
                f'{n_systems} systems were given with the names {list(names)}: expected '
                f'at least one system, and a different name for each'
            )

    def transform(self, inp: Any) -> Any:
        """The fused hits of each query."""
        names = self.names
        self._check_names(names)
        frames = [system.transform(inp) for system in self.systems]
        for frame in frames:
            pt.validate.result_frame(frame, extra_columns=['rank'], context=self)
        runs = [_run(frame) for frame in frames]
        fused = fuse(runs, FusionMethod.INTERLEAVE, self.num_results)
        pool = _pool(frames, [f'rank_{name}' for name in names])
        docids = map(str, pool['docno'])
        row_of = {key: row for row, key in enumerate(zip(pool['qid'], docids, strict=True))}
        rows = []
        inputs = []
        for qid, ranking in fused.items():
            rows += [row_of[qid, docid] for docid in ranking.docids]
            inputs.append([run.get(qid, NO_HITS) for run in runs])
        rankings = list(fused.values())
        return ranked_frame(pool, rows, rankings, rank_columns(names, inputs, rankings))


def _usual_name(system: Any, number: int) -> str:
    return system.name if isinstance(system, Retriever) else str(number)


def _run(frame: Any) -> Run:
    """The rankings of a result frame, without scores."""
    return {qid: Ranking(map(str, rows['docno'])) for (qid,), rows in ranked_rows(frame, ['qid'])}


def _pool(frames: Sequence[Any], replaced: Sequence[str]) -> Any:
    """Each (qid, docno) once, from the first frame that has it, with the columns that all frames
    have but those that are `replaced`.
    """
    first = frames[0]
    columns = []
    for name in first.columns:
        if name not in replaced and all(name in frame for frame in frames):
            columns.append(name)
    filled = [frame[columns] for frame in frames if len(frame)] or [first[columns]]
    return pd.concat(filled, ignore_index=True).drop_duplicates(['qid', 'docno'], ignore_index=True)
