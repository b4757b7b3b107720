"""Saved scores of monoBERT and duoBERT, from which reranking is replayed without a model.

For each query: the first stage's candidates in their order with monoBERT's scores, and duoBERT's logit differences for
the pairs that were compared. A smaller k0 or k1, or another aggregation, then takes sorting only.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NotRequired

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict  # pydantic needs this one below Python 3.12

from pyserini_repbert.data.json_values import checked, parse_json
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.files import StrPath, atomic_file, existing_file
from pyserini_repbert.ranking import NO_HITS, Ranking
from pyserini_repbert.rerank.aggregation import aggregate_differences
from pyserini_repbert.rerank.base import ordered
from pyserini_repbert.rerank.duobert import sample_seed

_FORMAT = 1


class _Cost(TypedDict):
    stage: NotRequired[str]
    seconds: float
    inferences: int


class _About(TypedDict):
    costs: NotRequired[list[_Cost]]
    k1: NotRequired[int]


class _Names(TypedDict):
    """The JSON object in the array `names` of a file; `scored` and `members` tell the sizes of the other arrays."""

    format: int
    about: _About
    qids: list[str]
    queries: list[str]
    docids: list[list[str]]
    scored: list[int]
    members: list[list[int]]


@dataclass(frozen=True)
class SavedScores:
    """The saved scores of one query.

    Attributes
    ----------
    qid, query : the topic
    docids : the first stage's candidates, in their order
    scores : float64 (s,), monoBERT's log-probabilities of relevance for the first s candidates; (0,) without monoBERT
    members : int64 (m,), the candidates that duoBERT compared, by position in `docids`
    differences : float64 (m, m), duoBERT's logit differences of pairs of members, NaN where not compared
    """

    qid: str
    query: str
    docids: tuple[str, ...]
    scores: NDArray[np.float64]
    members: NDArray[np.int64]
    differences: NDArray[np.float64]


def best_of(saved: SavedScores, k0: int, k1: int) -> NDArray[np.int64]:
    """Positions of the k1 best of the first k0 candidates, best first, ties in their order; for k0 = 0 the first k1."""
    if not k0:
        return np.arange(min(k1, len(saved.docids)), dtype=np.int64)
    return np.argsort(-saved.scores[:k0], kind='stable')[:k1].astype(np.int64)


def needed_pairs(saved: SavedScores, depths: Sequence[int], k1: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The pairs to score so that every k0 in `depths` can be replayed with up to k1.

    Returns
    -------
    members int64 (m,), by position in `saved.docids`, and bool (m, m), True for pairs of members to score
    """
    groups = [best_of(saved, k0, k1) for k0 in depths]
    members = np.array(list(dict.fromkeys(int(position) for group in groups for position in group)), dtype=np.int64)
    place = {int(position): row for row, position in enumerate(members)}
    pairs = np.zeros((len(members), len(members)), dtype=bool)
    for group in groups:
        rows = [place[int(position)] for position in group]
        pairs[np.ix_(rows, rows)] = True
    np.fill_diagonal(pairs, False)
    return members, pairs


def submatrix(saved: SavedScores, positions: NDArray[np.int64]) -> NDArray[np.float64]:
    """The logit differences between the candidates at `positions`, int64 (n,): float64 (n, n), NaN where not compared.

    Raises InputError for a candidate that was not compared at all.
    """
    place = {int(position): row for row, position in enumerate(saved.members)}
    if missing := [saved.docids[position] for position in positions.tolist() if position not in place]:
        raise InputError(
            f"query '{saved.qid}': candidate '{missing[0]}' was not compared with the others: "
            'score again so that this k0 can be replayed',
            parameters=('replay_k0',),
        )
    rows = [place[int(position)] for position in positions]
    return saved.differences[np.ix_(rows, rows)]


def replay(
    saved: SavedScores,
    k0: int,
    k1: int = 0,
    method: str = 'sum',
    samples: int | None = None,
    seed: int = 0,
    drop_rest: bool = False,
) -> Ranking:
    """The ranking that monoBERT on k0 candidates and duoBERT on the k1 best of them give; 0 leaves a stage out.

    Without monoBERT, candidates keep their order and get the scores -1, -2, … before duoBERT.

    Parameters
    ----------
    method, samples, seed : of the aggregation, as of `aggregate`
    drop_rest : drop the candidates that a stage does not rerank, instead of ranking them below

    Raises
    ------
    InputError
        where the score of a candidate or a pair is needed that was not saved
    """
    if min(k0, len(saved.docids)) > len(saved.scores):
        raise InputError(f"query '{saved.qid}': k0={k0} is asked for, {len(saved.scores)} candidates have scores")
    incoming = Ranking(saved.docids, (-float(place) for place in range(1, len(saved.docids) + 1)))
    scored = ordered(incoming[:k0], saved.scores[:k0])
    ranking = scored.above(NO_HITS if drop_rest and k0 else incoming[k0:])
    if not k1:
        return ranking
    position = {docid: place for place, docid in enumerate(saved.docids)}
    head = ranking[:k1]
    differences = submatrix(saved, np.array([position[docid] for docid in head.docids], dtype=np.int64))
    if np.isnan(differences[~np.eye(len(head), dtype=bool)]).any() and method != 'sample':
        raise InputError(
            f"query '{saved.qid}': not all pairs of k0={k0}, k1={k1} were compared: score again so that k0={k0} can be "
            'replayed',
            parameters=('replay_k0',),
        )
    new = aggregate_differences(differences, method, samples, sample_seed(seed, saved.query))
    return ordered(head, new).above(NO_HITS if drop_rest else ranking[k1:])


def write_saved_scores(path: StrPath, queries: Sequence[SavedScores], about: Mapping[str, Any]) -> None:
    """Write saved scores to a .npz file, atomically; `about` says how they were made, in JSON."""
    names = {
        'format': _FORMAT,
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
    """The saved scores in a file, and `about` as it was written.

    Raises
    ------
    InputError
        for a file that does not exist, or is of another kind or format
    DamagedFileError
        for a file whose parts do not fit together
    """
    file = existing_file(path, 'file of saved scores')
    try:
        with warnings.catch_warnings(action='ignore'), np.load(file, allow_pickle=False) as arrays:
            content = parse_json(arrays['names'].tobytes())
            scores, differences = np.asarray(arrays['scores']), np.asarray(arrays['differences'])
    except Exception as error:  # numpy and zipfile raise nearly anything for a file that is no .npz
        raise InputError(
            f'{file} holds no saved scores: the rerank command writes them', parameters=('pairs',)
        ) from error
    damaged = f'{file} is damaged: write it again'
    if isinstance(content, dict) and content.get('format') != _FORMAT:
        raise InputError(f'{file} has format {content.get("format")!r}, this version reads {_FORMAT}: write it again')
    try:
        names = checked(_Names, content)
    except ValueError as error:
        raise DamagedFileError(f'{damaged} ({error})') from error
    if len({len(names[key]) for key in ('qids', 'queries', 'docids', 'scored', 'members')}) != 1:
        raise DamagedFileError(f'{damaged} (its lists differ in length)')
    sizes = [(scored, len(members)) for scored, members in zip(names['scored'], names['members'], strict=True)]
    shapes = (sum(n for n, _ in sizes),), (sum(m * m for _, m in sizes),)
    if (scores.shape, differences.shape) != shapes or {scores.dtype, differences.dtype} != {np.dtype(np.float64)}:
        raise DamagedFileError(f'{damaged} (its arrays do not fit its names)')
    queries, start, pair_start = [], 0, 0
    columns = zip(names['qids'], names['queries'], names['docids'], names['members'], sizes, strict=True)
    for qid, query, docids, members, (n, m) in columns:
        if (
            not 0 <= n <= len(docids)
            or len({*members}) != m
            or not all(0 <= member < len(docids) for member in members)
        ):
            raise DamagedFileError(f"{damaged} (query '{qid}' has scores of candidates that it has not)")
        matrix = differences[pair_start : pair_start + m * m].reshape(m, m)
        places = np.array(members, dtype=np.int64)
        queries.append(SavedScores(qid, query, tuple(docids), scores[start : start + n], places, matrix))
        start, pair_start = start + n, pair_start + m * m
    return queries, dict(names['about'])
