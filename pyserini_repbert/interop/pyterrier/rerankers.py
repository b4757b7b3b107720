"""Rerankers on result frames, and interleave fusion of any PyTerrier transformers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.fusing import fuse
from pyserini_repbert.fusion.methods import FusionMethod
from pyserini_repbert.interop.pyterrier.frames import (
    candidates_of,
    pd,
    pt,
    rank_columns,
    ranked_frame,
    ranked_rows,
)
from pyserini_repbert.interop.pyterrier.retrievers import Retriever
from pyserini_repbert.models.cross_encoder import log_probabilities
from pyserini_repbert.names.rerankers import open_reranker
from pyserini_repbert.pipeline.pipeline import cut_batches
from pyserini_repbert.ranking import NO_HITS, Query, Ranker, Ranking, Run
from pyserini_repbert.rerank.base import rescored

PAIRS = 'duobert_p'


class Rerank(pt.Transformer):  # type: ignore[misc]
    """Any reranker: a result frame in, the same rows with new scores out, best first.

    Equal scores keep the order of the stage before: by 'rank', or else of the rows. Queries share
    the model's batches. Other columns stay. The frame needs 'text' (`PassageText` adds it), except
    for EPIC with an index. duoBERT takes n(n - 1) model inputs for n candidates, so cut first:
    `monobert % 50 >> Rerank('duobert-demo')`.

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
        opened = model if isinstance(model, Ranker) else open_reranker(model, device, settings)
        self.reranker: Any = opened
        if matrix and not hasattr(opened, 'pair_differences'):
            raise InputError(f"'{opened.label}' compares no pairs: matrix is for duoBERT")

    def transform(self, inp: Any) -> Any:
        """The frame reranked. A candidate without a text that the reranker needs is refused."""
        pt.validate.result_frame(
            inp, extra_columns=['query', 'text'] if self.reranker.needs_text else ['query']
        )
        lists = list(candidates_of(inp))
        rows: list[int] = []
        rankings: list[Ranking] = []
        pairs: list[Any] = []
        for batch in cut_batches(self.reranker.planned([len(ranking) for _, _, ranking in lists])):
            part = lists[batch.start : batch.stop]
            queries = [query for query, *_ in part]
            run = {str(n): ranking for n, (*_, ranking) in enumerate(part)}
            if self.matrix:
                reranked, probabilities = self._compared(queries, list(run.values()))
                pairs += probabilities
            else:
                reranked = list(
                    self.reranker.rank(list(map(Query, run, queries)), run, None).values()
                )
            for (_, places, candidates), ranking in zip(part, reranked, strict=True):
                row = dict(zip(candidates.docids, places, strict=True))
                rows += [row[docid] for docid in ranking.docids]
            rankings += reranked
        return ranked_frame(
            inp, rows, rankings, {PAIRS: pd.Series(pairs, dtype=object)} if self.matrix else {}
        )

    def _compared(
        self, queries: Sequence[str], lists: Sequence[Ranking]
    ) -> tuple[list[Ranking], list[Any]]:
        """duoBERT's rankings, and the row of probabilities of each hit."""
        for query, ranking in zip(queries, lists, strict=True):
            self.reranker.check(query, ranking)
        reranked = []
        pairs = []
        matrices = self.reranker.pair_differences(queries, lists)
        for query, ranking, matrix in zip(queries, lists, matrices, strict=True):
            reranked.append(rescored(ranking, self.reranker.aggregated(query, matrix)))
            order = list(map(list(ranking.docids).index, reranked[-1].docids))
            pairs += list(np.exp(log_probabilities(matrix[np.ix_(order, order)])))
        return reranked, pairs


class Interleave(pt.Transformer):  # type: ignore[misc]
    """Alternates between the rankings of several systems (RepBERT eq. 6); the first one leads.

    Scores are 1, 1/2, 1/3, …; columns that all systems give stay, with the values of the first
    system that has the hit. The column 'rank_NAME' has a hit's rank in a system, from 0, missing
    where the system lacks the hit.

    Parameters
    ----------
    systems : transformers that give result frames
    names : of the systems; default: those of this package's retrievers, else their numbers from 1
    num_results : hits of a query
    """

    def __init__(
        self, *systems: Any, names: Sequence[str] | None = None, num_results: int = 1000
    ) -> None:
        self.systems = systems
        self.num_results = num_results
        numbered = enumerate(systems, 1)
        usual = [
            system.name if isinstance(system, Retriever) else str(number)
            for number, system in numbered
        ]
        self.names = tuple(usual if names is None else names)
        if not systems or len(self.names) != len(systems) or len(set(self.names)) < len(systems):
            raise InputError(
                f'{len(systems)} systems were given with the names {list(self.names)}: expected '
                f'at least one system, '
                'and a name of its own for each'
            )

    def transform(self, inp: Any) -> Any:
        """The fused hits of each query."""
        frames = [system.transform(inp) for system in self.systems]
        for frame in frames:
            pt.validate.result_frame(frame, extra_columns=['rank'], context=self)
        runs = [_run(frame) for frame in frames]
        fused = fuse(runs, FusionMethod.INTERLEAVE, self.num_results)
        pool = _common(frames, [f'rank_{name}' for name in self.names])
        places = {
            key: place
            for place, key in enumerate(zip(pool['qid'], map(str, pool['docno']), strict=True))
        }
        rows = [places[qid, docid] for qid, ranking in fused.items() for docid in ranking.docids]
        inputs = [[run.get(qid, NO_HITS) for run in runs] for qid in fused]
        rankings = list(fused.values())
        return ranked_frame(pool, rows, rankings, rank_columns(self.names, inputs, rankings))


def _run(frame: Any) -> Run:
    return {key[0]: Ranking(map(str, rows['docno'])) for key, rows in ranked_rows(frame, ['qid'])}


def _common(frames: Sequence[Any], replaced: Sequence[str]) -> Any:
    """Each (qid, docno) once, from the first frame that has it, with the columns that all frames
    have.
    """
    first = frames[0]
    columns = [
        name
        for name in first.columns
        if all(name in frame for frame in frames) and name not in replaced
    ]
    filled = [frame[columns] for frame in frames if len(frame)] or [first[columns]]
    return pd.concat(filled, ignore_index=True).drop_duplicates(['qid', 'docno'], ignore_index=True)
