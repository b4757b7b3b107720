"""Every ordered pair of runs, interleaved and evaluated (RepBERT Tables 3 and 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyserini_repbert.data.runs import reciprocal_scores
from pyserini_repbert.data.topics import Qrels
from pyserini_repbert.evaluate.measures import NamedMeasure, evaluate
from pyserini_repbert.fusion.methods import ALPHA, RRF_K, FusionMethod, fuse
from pyserini_repbert.ranking import Ranking, Run

FusionTable = dict[str, dict[str, dict[str, float]]]


def fusion_table(
    runs: Mapping[str, Run],
    qrels: Qrels,
    measures: Sequence[NamedMeasure],
    method: str = FusionMethod.INTERLEAVE,
    k: int | None = 1000,
    alpha: float = ALPHA,
    rrf_k: float = RRF_K,
) -> FusionTable:
    """The value of each measure for each ordered pair of runs; a run paired with itself is evaluated alone.

    Parameters
    ----------
    runs : name -> run
    method : a `FusionMethod`; the row's run comes first
    k : length of a fused ranking; None for all hits
    alpha, rrf_k : as in `fuse`

    Returns
    -------
    measure name -> row's run -> column's run -> value over all judged topics
    """
    judged = {name: {qid: run[qid] for qid in qrels if qid in run} for name, run in runs.items()}
    table: FusionTable = {named.name: {row: {} for row in runs} for named in measures}
    for row, first in judged.items():
        for column, second in judged.items():
            fused = first if row == column else in_order(fuse([first, second], method, k, alpha, rrf_k))
            for name, value in evaluate(fused, qrels, measures).means.items():
                table[name][row][column] = value
    return table


def in_order(run: Run) -> Run:
    """The run with the scores 1, 1/2, 1/3, …, so that an evaluator, which sorts by score, keeps its order."""
    return {qid: Ranking(own.docids, reciprocal_scores(len(own.docids))) for qid, own in run.items()}
