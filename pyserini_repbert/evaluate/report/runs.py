"""What the report keeps of a run: its values, its best hits, the ranks of relevant documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.evaluate.measures import Evaluation
from pyserini_repbert.ranking import NO_HITS, Ranking

# The best hits of a question, whose judged share is reported.
TOP_HITS = 10


@dataclass(frozen=True)
class MeasuredRun:
    """A run in the report.

    Attributes
    ----------
    name : as the report calls it
    path : of its file
    evaluation : its values
    top : the best `TOP_HITS` docids of each judged topic, by qid
    relevant_ranks : the ranks, from 1, of the relevant documents that it has, by qid and docid
    """

    name: str
    path: str
    evaluation: Evaluation
    top: Mapping[str, tuple[str, ...]]
    relevant_ranks: Mapping[str, Mapping[str, int]]

    def judged_share(self, qrels: Qrels) -> float | None:
        """Which share of the best hits is judged for their topic; None without hits."""
        n_hits = 0
        n_judged = 0
        for qid, docids in self.top.items():
            n_hits += len(docids)
            n_judged += sum(docid in qrels[qid] for docid in docids)
        if not n_hits:
            return None
        return n_judged / n_hits


def measured_run(
    name: str, path: str, run: Mapping[str, Ranking], *, evaluation: Evaluation, qrels: Qrels
) -> MeasuredRun:
    """What the report keeps of a run; the run itself may be forgotten.

    Parameters
    ----------
    name, path : of the run
    run : all its hits, unjudged ones too
    evaluation : its values
    qrels : the judgments
    """
    top = {}
    relevant_ranks = {}
    for qid, grades in qrels.items():
        docids = run.get(qid, NO_HITS).docids
        top[qid] = docids[:TOP_HITS]
        ranks = {
            docid: rank for rank, docid in enumerate(docids, 1) if is_relevant(grades.get(docid))
        }
        relevant_ranks[qid] = ranks
    return MeasuredRun(name, path, evaluation, top, relevant_ranks)


def is_relevant(grade: int | None) -> bool:
    """Whether a document of this grade is relevant; None: it was not judged."""
    return grade is not None and grade > 0
