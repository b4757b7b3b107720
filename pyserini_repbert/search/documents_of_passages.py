"""From passages to documents: the score of a document is aggregated from its passages.

The maximum (MaxP), the first passage (FirstP), and sums of several passages are from Dai and
Callan, "Deeper Text Understanding for IR with Contextual Neural Language Modeling", 2019
(https://arxiv.org/abs/1905.09217).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.ordering import rank_by_score
from pyserini_repbert.ranking import Ranking, Run
from pyserini_repbert.search.aggregation import PassageAggregation

# What separates a docid from the number of a passage, in the ids that Pyserini's `--max-passage`
# reads.
PASSAGE_MARK = '#'
_TOP = 3


def aggregate_groups(
    scores: NDArray[np.float32], starts: NDArray[np.int64], aggregation: PassageAggregation
) -> NDArray[np.float32]:
    """The score of each document, float32 (documents,).

    Parameters
    ----------
    scores : of passages, float32 (n,); passages of a document are adjacent
    starts : where each document begins, int64 (documents,), ascending
    aggregation : not FIRST, which is a choice of passages
    """
    chosen = PassageAggregation(aggregation)
    if chosen is PassageAggregation.MAX:
        return np.maximum.reduceat(scores, starts)
    counts = np.diff(starts, append=len(scores))
    if chosen is PassageAggregation.TOP3:
        owners = np.repeat(np.arange(len(starts)), counts)
        # By document, and within it the best first.
        order = np.lexsort((-scores, owners))
        ranks = np.arange(len(scores)) - np.repeat(starts, counts)
        scores = np.where(ranks < _TOP, scores[order], np.float32(0))
        counts = np.minimum(counts, _TOP)
    sums = np.add.reduceat(scores.astype(np.float64), starts)
    means: NDArray[np.float32] = (sums / counts).astype(np.float32)
    return means


def document_of(passage_id: str) -> str:
    """The docid in the id of a passage: 'd1' in 'd1#3'; an id without a number is a docid."""
    docid, mark, number = passage_id.rpartition(PASSAGE_MARK)
    return docid if mark and number.isascii() and number.isdigit() else passage_id


def documents_of_run(run: Run, aggregation: PassageAggregation = PassageAggregation.MAX) -> Run:
    """The documents of a run of passages, which are named 'DOCID#NUMBER'.

    Only the passages that the run has count: the mean is theirs, and FIRST leaves out a document
    whose passage 0 the run lacks.

    Parameters
    ----------
    run : of passages
    aggregation : how scores of passages become scores of documents
    """
    chosen = PassageAggregation(aggregation)
    return {qid: _documents_of(ranking, chosen) for qid, ranking in run.items()}


def _documents_of(ranking: Ranking, aggregation: PassageAggregation) -> Ranking:
    scores_by_docid: dict[str, list[float]] = {}
    for passage_id, score in zip(ranking.docids, ranking.scores, strict=True):
        docid = document_of(passage_id)
        is_first = passage_id in (docid, f'{docid}{PASSAGE_MARK}0')
        if aggregation is not PassageAggregation.FIRST or is_first:
            scores_by_docid.setdefault(docid, []).append(score)
    docids = np.array(list(scores_by_docid), dtype=object)
    totals = [_total(scores, aggregation) for scores in scores_by_docid.values()]
    documents = rank_by_score(docids, np.array(totals, dtype=np.float64), k=None)
    return documents.with_background(ranking.background)


def _total(scores: Sequence[float], aggregation: PassageAggregation) -> float:
    """The score of a document whose passages have these, the best first."""
    if aggregation in (PassageAggregation.MAX, PassageAggregation.FIRST):
        return scores[0]
    counted = scores[:_TOP] if aggregation is PassageAggregation.TOP3 else scores
    return sum(counted) / len(counted)
