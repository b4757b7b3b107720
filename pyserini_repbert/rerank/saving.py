"""`Saving`: the last one or two stages of a pipeline, whose scores are kept so that they can be replayed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pyserini_repbert.errors import InputError
from pyserini_repbert.ranking import NO_HITS, Query, Ranker, Ranking, Run
from pyserini_repbert.rerank.base import Reranker
from pyserini_repbert.rerank.duobert import DuoBertReranker
from pyserini_repbert.rerank.saved_scores import SavedScores, needed_pairs, submatrix
from pyserini_repbert.trace import Trace


class Saving(Ranker):
    """A pointwise reranker, duoBERT, or both; keeps the `SavedScores` of each topic as 'scores'.

    Parameters
    ----------
    stages : one or two; of two, the second is duoBERT
    depths : further depths k0 for whose replay duoBERT compares pairs

    Raises InputError for two stages without duoBERT.
    """

    def __init__(self, stages: Sequence[Reranker], depths: Sequence[int] = ()) -> None:
        *before, last = stages
        self.pairwise = last if isinstance(last, DuoBertReranker) else None
        if before and self.pairwise is None:
            raise InputError(
                'scores are saved of monoBERT and duoBERT: the last stage has to be duoBERT, or the only one'
            )
        self.pointwise = before[-1] if before else None if self.pairwise else last
        self.stages, self.depths = tuple(stages), tuple(depths)
        self.name, self.reads = '+'.join(stage.name for stage in stages), stages[0].reads

    @property
    def label(self) -> str:
        """As of its first stage: a pipeline compares depths by it."""
        return self.stages[0].label

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        given = {topic.qid: (run or {}).get(topic.qid, NO_HITS) for topic in topics}
        ranked = given
        if self.pointwise:
            ranked = self.pointwise.rank(topics, given, None, trace.at(0, self.pointwise.label))
        saved = [self._pointwise_scores(topic, given[topic.qid], ranked[topic.qid]) for topic in topics]
        if self.pairwise:
            saved, ranked = self._compared(self.pairwise, saved, ranked, trace)
        for scores in saved:
            trace.keep('scores', scores.qid, scores)
        return ranked

    def _pointwise_scores(self, topic: Query, given: Ranking, ranked: Ranking) -> SavedScores:
        """The candidates of a topic in the order in which they were given, with their new scores."""
        known: list[float] = []
        if self.pointwise:
            scores = dict(zip(ranked.docids, ranked.scores, strict=True))
            known = [scores[docid] for docid in given.docids[: self.pointwise.reads]]
        nobody = np.empty(0, dtype=np.int64)
        return SavedScores(topic.qid, topic.text, given.docids, np.array(known, dtype=float), nobody, np.empty((0, 0)))

    def _compared(
        self, duo: DuoBertReranker, saved: Sequence[SavedScores], run: Run, trace: Trace
    ) -> tuple[list[SavedScores], Run]:
        """Compare all pairs that replays at the depths need; the first depth is this run's."""
        depths = [self.pointwise.reads if self.pointwise else 0, *self.depths]
        members, pairs, groups = [], [], []
        for saved_topic in saved:
            chosen, wanted = needed_pairs(saved_topic, depths, duo.reads)
            by_docid = {candidate.docid: candidate for candidate in run[saved_topic.qid]}
            members.append(chosen)
            pairs.append(wanted)
            groups.append(Ranking.of(by_docid[saved_topic.docids[place]] for place in chosen.tolist()))
        with duo.counted(groups, trace.at(1, duo.label)) as counting:
            matrices = counting.pair_differences(
                [saved_topic.query for saved_topic in saved], groups, pairs, trace.advance
            )
        whole = [
            replace(saved_topic, members=m, differences=d)
            for saved_topic, m, d in zip(saved, members, matrices, strict=True)
        ]
        scores = []
        for saved_topic in whole:
            place = {docid: number for number, docid in enumerate(saved_topic.docids)}
            head = np.array([place[docid] for docid in run[saved_topic.qid].docids[: duo.reads]], dtype=np.int64)
            scores.append(duo.aggregated(saved_topic.query, submatrix(saved_topic, head)))
        return whole, duo.reordered(run, scores)

    def identity(self) -> Mapping[str, Any]:
        """All that decides its rankings, stage by stage."""
        return {'replay_k0': list(self.depths), 'of': [stage.identity() for stage in self.stages]}

    def planned(self, lengths: Sequence[int]) -> list[int]:
        """The query-document pairs to come for runs of these lengths."""
        return [sum(counts) for counts in zip(*(stage.planned(lengths) for stage in self.stages), strict=True)]

    def leaves(self) -> Iterator[Ranker]:
        """The leaves of its parts, in their order."""
        yield from self.stages
