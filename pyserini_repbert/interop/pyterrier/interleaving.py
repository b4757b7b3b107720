"""Interleave fusion of any PyTerrier transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.methods import FusionMethod, fuse
from pyserini_repbert.interop.pyterrier.frames import pd, pt, rank_columns, ranked_frame, ranked_rows
from pyserini_repbert.interop.pyterrier.retrievers import Retriever
from pyserini_repbert.ranking import NO_HITS, Ranking, Run


class Interleave(pt.Transformer):  # type: ignore[misc]
    """Alternates between the rankings of several systems (RepBERT eq. 6); the first one leads.

    Scores are 1, 1/2, 1/3, …; columns that all systems give stay, with the values of the first system that has the hit.
    The column 'rank_NAME' has a hit's rank in a system, from 0, missing where the system lacks the hit.

    Parameters
    ----------
    systems : transformers that give result frames
    names : of the systems; default: those of this package's retrievers, else their numbers from 1
    num_results : hits of a query

    Raises
    ------
    InputError
        for no system, another number of names, or equal ones
    """

    def __init__(self, *systems: Any, names: Sequence[str] | None = None, num_results: int = 1000) -> None:
        self.systems, self.num_results = systems, num_results
        own = [system.name if isinstance(system, Retriever) else str(n) for n, system in enumerate(systems, 1)]
        self.names = tuple(own if names is None else names)
        if not systems or len(self.names) != len(systems) or len(set(self.names)) < len(systems):
            raise InputError(
                f'{len(systems)} systems were given with the names {list(self.names)}: expected at least one system, '
                'and a name of its own for each'
            )

    def transform(self, inp: Any) -> Any:
        """The fused hits of each query. Raises InputValidationError for a frame that a system refuses or returns."""
        frames = [system.transform(inp) for system in self.systems]
        for frame in frames:
            pt.validate.result_frame(frame, extra_columns=['rank'], context=self)
        runs = [_run(frame) for frame in frames]
        fused = fuse(runs, FusionMethod.INTERLEAVE, self.num_results)
        pool = _common(frames, [f'rank_{name}' for name in self.names])
        places = {key: place for place, key in enumerate(zip(pool['qid'], map(str, pool['docno']), strict=True))}
        rows = [places[qid, docid] for qid, ranking in fused.items() for docid in ranking.docids]
        inputs = [[run.get(qid, NO_HITS) for run in runs] for qid in fused]
        rankings = list(fused.values())
        return ranked_frame(pool, rows, rankings, rank_columns(self.names, inputs, rankings))

    def fuse_rank_cutoff(self, k: int) -> Any:
        """This transformer with at most k hits, for PyTerrier's compiler; the systems still give all theirs."""
        if k >= self.num_results:
            return self
        return Interleave(*self.systems, names=self.names, num_results=k)


def _run(frame: Any) -> Run:
    return {key[0]: Ranking(map(str, rows['docno'])) for key, rows in ranked_rows(frame, ['qid'])}


def _common(frames: Sequence[Any], replaced: Sequence[str]) -> Any:
    """Each (qid, docno) once, from the first frame that has it, with the columns that all frames have."""
    first = frames[0]
    columns = [name for name in first.columns if all(name in frame for frame in frames) and name not in replaced]
    filled = [frame[columns] for frame in frames if len(frame)] or [first[columns]]
    return pd.concat(filled, ignore_index=True).drop_duplicates(['qid', 'docno'], ignore_index=True)
