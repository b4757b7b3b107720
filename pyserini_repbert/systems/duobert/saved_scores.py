"""Scores of monoBERT and duoBERT that are saved, and from which reranking is replayed without a
model.

For each query: the first stage's candidates in their order with monoBERT's scores, and duoBERT's
logit differences for the pairs that were compared. A smaller k0 or k1, or another aggregation, then
takes sorting only.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict  # pydantic needs this one below Python 3.12

from pyserini_repbert.archives import open_zip
from pyserini_repbert.data.values import checked, parse_json
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.files import StrPath, atomic_file, existing_file
from pyserini_repbert.ranking import NO_HITS, Query, Ranker, Ranking, Run
from pyserini_repbert.rerank.base import Reranker, rescored
from pyserini_repbert.systems.duobert.aggregation import (
    aggregate_differences,
    sampled_pairs,
)
from pyserini_repbert.systems.duobert.reranker import (
    DuoBertReranker,
    sample_seed,
)
from pyserini_repbert.trace import Trace

# The key of `about` that has how many candidates the last stage read.
LAST_DEPTH = 'last_depth'


class _Names(TypedDict):
    """The JSON object in the array `names` of a file; `scored` and `members` tell the sizes of
    the other arrays.
    """

    format: Literal[1]
    about: dict[str, Any]
    qids: list[str]
    queries: list[str]
    docids: list[list[str]]
    scored: list[int]
    members: list[list[int]]


@dataclass(frozen=True)
class SavedScores:
    """The saved scores of one query."""

    qid: str
    query: str
    docids: tuple[str, ...]  # the first stage's candidates, in their order
    # (s,), monoBERT's log-probabilities of relevance for the first s candidates, if it ran
    scores: NDArray[np.float64]
    # (m,), the candidates that duoBERT compared, by position in `docids`
    members: NDArray[np.int64]
    # (m, m), duoBERT's logit differences of pairs of members, NaN where not compared
    differences: NDArray[np.float64]


def needed_pairs(
    saved: SavedScores, depths: Sequence[int], k1: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The pairs to score so that every k0 in `depths` can be replayed with up to k1.

    Members, int64 (m,), by position in `saved.docids`, and bool (m, m), True for pairs of members
    to score.
    """
    in_order = np.arange(len(saved.docids))  # without monoBERT, k0 = 0
    ranked = [np.argsort(-saved.scores[:k0], kind='stable') if k0 else in_order for k0 in depths]
    groups = [positions[:k1].tolist() for positions in ranked]
    row = {position: row for row, position in enumerate(dict.fromkeys(chain.from_iterable(groups)))}
    pairs = np.zeros((len(row), len(row)), dtype=bool)
    for group in groups:
        rows = [row[position] for position in group]
        pairs[np.ix_(rows, rows)] = True
    np.fill_diagonal(pairs, False)
    return np.array(list(row), dtype=np.int64), pairs


def submatrix(saved: SavedScores, docids: Sequence[str]) -> NDArray[np.float64]:
    """The logit differences between candidates, float64 (n, n), NaN where not compared."""
    row = {saved.docids[position]: row for row, position in enumerate(saved.members.tolist())}
    rows = [row.get(docid, len(row)) for docid in docids]
    return np.pad(saved.differences, (0, 1), constant_values=np.nan)[np.ix_(rows, rows)]


def replay(
    saved: SavedScores,
    k0: int,
    k1: int = 0,
    method: str = 'sum',
    samples: int | None = None,
    seed: int = 0,
    drop_rest: bool = False,
) -> Ranking:
    """The ranking that monoBERT on k0 candidates and duoBERT on the k1 best of them give; 0 leaves
    a stage out.

    Without monoBERT, candidates keep their order and get the scores -1, -2, … before duoBERT.

    `aggregate` explains `method`, `samples` and `seed`. `drop_rest` drops the candidates that a
    stage does not rerank, instead of ranking them below. Raises InputError if a score is needed
    that was not saved.
    """
    if min(k0, len(saved.docids)) > len(saved.scores):
        raise InputError(
            f"query '{saved.qid}': k0={k0} is asked for, {len(saved.scores)} candidates have scores"
        )
    incoming = Ranking(saved.docids, (-float(rank) for rank in range(1, len(saved.docids) + 1)))
    ranking = rescored(incoming[:k0], saved.scores[:k0]).append_below(
        NO_HITS if drop_rest and k0 else incoming[k0:]
    )
    if not k1:
        return ranking
    head = ranking[:k1]
    differences = submatrix(saved, head.docids)
    query_seed = sample_seed(seed, saved.query)
    if np.isnan(differences[sampled_pairs(len(head), samples, query_seed)]).any():
        lacking = f"query '{saved.qid}': not all pairs of k0={k0}, k1={k1} were compared"
        raise InputError(
            f'{lacking}: score again so that k0={k0} can be replayed', parameters=('replay_k0',)
        )
    new = aggregate_differences(differences, method, samples, query_seed)
    return rescored(head, new).append_below(NO_HITS if drop_rest else ranking[k1:])


def write_saved_scores(
    path: StrPath, queries: Sequence[SavedScores], about: Mapping[str, Any]
) -> None:
    """Write saved scores to a .npz file, atomically; `about` says how they were made, in JSON."""
    names = {
        'format': 1,
        'about': dict(about),
        'qids': [saved.qid for saved in queries],
        'queries': [saved.query for saved in queries],
        'docids': [list(saved.docids) for saved in queries],
        'scored': [len(saved.scores) for saved in queries],
        'members': [saved.members.tolist() for saved in queries],
    }
    text = np.frombuffer(json.dumps(names, ensure_ascii=False).encode('utf-8'), dtype=np.uint8)
    scores = np.concatenate([np.empty(0), *(saved.scores for saved in queries)])
    differences = np.concatenate([np.empty(0), *(saved.differences.ravel() for saved in queries)])
    with atomic_file(path, 'wb') as stream:
        np.savez_compressed(stream, names=text, scores=scores, differences=differences)


def read_saved_scores(path: StrPath) -> tuple[list[SavedScores], dict[str, Any]]:
    """The saved scores in a file, and `about` as it was written."""
    file = existing_file(path, 'file of saved scores')
    try:
        # Refuses one that unpacks to far more than its size.
        with open_zip(file):
            pass
        with warnings.catch_warnings(action='ignore'), np.load(file, allow_pickle=False) as arrays:
            content = parse_json(arrays['names'].tobytes())
            scores, differences = (np.asarray(arrays[name]) for name in ('scores', 'differences'))
    # numpy and zipfile raise nearly anything for a file that is not an .npz
    except Exception as error:
        message = f'{file} holds no saved scores: the rerank command writes them'
        raise InputError(message, parameters=('pairs',)) from error
    try:
        names = checked(_Names, content)
        return list(_queries(names, scores, differences)), dict(names['about'])
    except ValueError as error:
        raise DamagedFileError(f'{file} is damaged: write it again ({error})') from error


def compared_depth(saved: SavedScores, about: Mapping[str, Any]) -> int:
    """The k1 of the ranking that a query's scores were saved of.

    Parameters
    ----------
    saved : the scores of the query
    about : as in `read_saved_scores`
    """
    n_compared = len(saved.members)
    # Before version 0.4.0, the key was 'k1'.
    depth = about.get(LAST_DEPTH, about.get('k1', n_compared))
    return int(min(depth, n_compared))


def _queries(
    names: _Names, scores: NDArray[Any], differences: NDArray[Any]
) -> Iterator[SavedScores]:
    """The saved scores of each query. Raises ValueError if the arrays do not fit the names."""
    ends = np.cumsum([0, *names['scored']]).tolist()
    pair_ends = np.cumsum([0, *(len(members) ** 2 for members in names['members'])]).tolist()
    has_shapes = scores.shape == (ends[-1],) and differences.shape == (pair_ends[-1],)
    if not has_shapes or scores.dtype.kind != 'f':
        raise ValueError('its arrays do not fit its names')
    columns = zip(names['qids'], names['queries'], names['docids'], names['members'], strict=True)
    ranges = zip(columns, pairwise(ends), pairwise(pair_ends), strict=True)
    for (qid, query, docids, members), (start, end), (first, last) in ranges:
        if not 0 <= end - start <= len(docids) or not {*members} <= {*range(len(docids))}:
            raise ValueError(f"query '{qid}' has scores of unknown candidates")
        matrix = differences[first:last].reshape(len(members), len(members))
        rows = np.array(members, dtype=np.int64)
        yield SavedScores(qid, query, tuple(docids), scores[start:end], rows, matrix)


def _check_depth_independence(stage: Reranker) -> None:
    """Raise InputError for a stage whose scores are valid only for one depth."""
    why = ''
    if stage.score_share is not None:
        why = 'mixes its score with the score of the stage before'
    elif stage.compares and not isinstance(stage, DuoBertReranker):
        why = 'compares the candidates of a list'
    if why:
        raise InputError(
            f"'{stage.label}' {why}, so that its scores are right for one depth alone: no scores "
            'can be saved for others',
            parameters=('pairs',),
        )


class ScoreRecorder(Ranker, recorded_as='ScoreRecorder'):
    """A pointwise reranker, duoBERT, or both; keeps the `SavedScores` of each topic as 'scores'.

    `stages` are one or two; of two, the second is duoBERT, which compares pairs for the replay of
    further `depths` k0.

    Raises InputError for stages of another kind, and for those whose scores depend on how many
    candidates they read: none of these is right for a replay of fewer.
    """

    def __init__(self, stages: Sequence[Reranker], depths: Sequence[int] = ()) -> None:
        *before, last = stages
        self.pairwise = last if isinstance(last, DuoBertReranker) else None
        if before and self.pairwise is None:
            raise InputError('scores are saved of one stage, or of two whose last is duoBERT')
        for stage in stages:
            _check_depth_independence(stage)
        self.pointwise: Reranker | None = None
        if before:
            self.pointwise = before[-1]
        elif self.pairwise is None:
            self.pointwise = last
        self.parts = tuple(stages)
        self.depths = tuple(depths)
        self.name = '+'.join(stage.name for stage in stages)
        self.reads = stages[0].reads

    @property
    def reads_scores(self) -> bool:
        return self.parts[0].reads_scores

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        given = {topic.qid: (run or {}).get(topic.qid, NO_HITS) for topic in topics}
        new_run = given
        if self.pointwise:
            new_run = self.pointwise.rank(topics, given, None, trace.part(self.part_names[0]))
        saved = [
            self._pointwise_scores(topic, given[topic.qid], new_run[topic.qid]) for topic in topics
        ]
        if self.pairwise:
            saved, new_run = self._compared(self.pairwise, saved, new_run, trace)
        for topic_scores in saved:
            trace.keep('scores', topic_scores.qid, topic_scores)
        return new_run

    def _pointwise_scores(self, topic: Query, given: Ranking, reranked: Ranking) -> SavedScores:
        """A topic's scores before any pair is compared.

        Parameters
        ----------
        topic : the query
        given : its candidates
        reranked : these after the pointwise reranker, if there is one
        """
        scores: list[float] = []
        if self.pointwise:
            score_of = dict(zip(reranked.docids, reranked.scores, strict=True))
            scores = [score_of[docid] for docid in given.docids[: self.pointwise.reads]]
        return SavedScores(
            qid=topic.qid,
            query=topic.text,
            docids=given.docids,
            scores=np.array(scores, dtype=float),
            members=np.empty(0, dtype=np.int64),
            differences=np.empty((0, 0)),
        )

    def _compared(
        self, duo: DuoBertReranker, saved: Sequence[SavedScores], run: Run, trace: Trace
    ) -> tuple[list[SavedScores], Run]:
        """Compare all pairs that replays at the depths need; the first depth is this run's."""
        depths = [self.pointwise.reads if self.pointwise else 0, *self.depths]
        chosen = []
        groups = []
        pairs = []
        for topic in saved:
            members, wanted = needed_pairs(topic, depths, duo.reads)
            by_docid = {candidate.docid: candidate for candidate in run[topic.qid]}
            groups.append(
                Ranking.of(by_docid[topic.docids[position]] for position in members.tolist())
            )
            chosen.append(replace(topic, members=members))
            pairs.append(wanted)
        with duo.counted(groups, trace.part(self.part_names[-1])) as counting:
            matrices = counting.pair_differences(
                [topic.query for topic in saved], groups, pairs, trace.advance
            )
        compared = [
            replace(topic, differences=matrix)
            for topic, matrix in zip(chosen, matrices, strict=True)
        ]
        heads = [submatrix(topic, run[topic.qid].docids[: duo.reads]) for topic in compared]
        scores = [
            duo.aggregated(topic.query, head) for topic, head in zip(compared, heads, strict=True)
        ]
        return compared, duo.reordered(run, scores)

    def identity(self) -> Mapping[str, Any]:
        return {'replay_k0': list(self.depths), 'of': [stage.identity() for stage in self.parts]}
