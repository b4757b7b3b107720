"""The k best documents of several whole rankings, from the first hits of each.

This is the threshold algorithm (Fagin, Lotem and Naor, "Optimal aggregation algorithms for
middleware", 2003, https://doi.org/10.1016/S0022-0000(03)00026-6). It is for fusions whose scores
depend on a document and on the best hit of each ranking alone, as with `Normalization.MAX`, or on
the ranking's background as well, which is known before any hit (`Normalization.BACKGROUND`).

A ranking may not be able to judge a document, such as words one in another language. Then the
document has there at least the mean share of the other rankings.

A document that one ranking found gets its scores in the others, too. A document that no ranking
found has, in each, at most the score of the last hit. Where the fusion of these last scores is
below the score of the k-th document, no document is missing; otherwise the rankings have to be
deeper.

Where even 1,000 hits prove nothing, because all scores are nearly alike, the k best documents among
these hits are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import fsum, inf
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.ordering import rank_by_score
from pyserini_repbert.fusion.fusing import scaled
from pyserini_repbert.fusion.methods import Normalization
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.ranking import NO_WORD, Background, Ranking, Unjudged

# How much deeper the second search goes, and how deep at most.
_DEEPER = 4
_DEEPEST = 1000
# So many questions begin deep after `_FAILURES` in a row that had to be searched twice.
_REMEMBERED = 16
_FAILURES = 2


def first_depth(k: int) -> int:
    """How many hits of each ranking are searched at first, for k fused hits.

    They are enough for nearly all questions of text collections.
    """
    return 2 * k + 40


def second_depth(k: int) -> int:
    """How many hits of each ranking are searched where `first_depth` proves nothing."""
    first = first_depth(k)
    return max(first, min(_DEEPER * first, _DEEPEST))


def next_depth(depth: int, k: int) -> int | None:
    """How many hits are searched after so many, which proved nothing; None: no more.

    The last ones are for hundreds of documents of one text, which have the same score.
    """
    for deeper in (second_depth(k), _DEEPEST):
        if deeper > depth:
            return deeper
    return None


class BeginningDepth:
    """How deep questions begin: deep for a while if they would otherwise be searched twice.

    This changes no ranking, only its cost.
    """

    def __init__(self) -> None:
        self._n_deep = 0
        self._n_failures = 0

    def choose(self, k: int) -> int:
        """How many hits of each ranking are searched for the next questions."""
        if self._n_deep == 0:
            return first_depth(k)
        self._n_deep -= 1
        return second_depth(k)

    def learn(self, was_enough: bool) -> None:
        """Learn whether the first depth proved the rankings of most questions."""
        if was_enough:
            self._n_failures = 0
            return
        self._n_failures += 1
        if self._n_failures >= _FAILURES:
            self._n_deep = _REMEMBERED
            # The next failure is enough.
            self._n_failures = _FAILURES - 1


@dataclass(frozen=True)
class FirstHits:
    """The first hits of one ranking.

    Attributes
    ----------
    docids : of the hits, best first
    is_whole : whether the ranking has no others
    scores_of : gives the scores of documents in the whole ranking, None of one that it lacks
    background : whose score adds nothing, as a document that the ranking lacks
    unjudged : tells documents that the ranking cannot judge; None: it judges all
    """

    docids: Sequence[str]
    is_whole: bool
    scores_of: Callable[[Sequence[str]], Sequence[float | None]]
    background: Background = NO_WORD
    unjudged: Unjudged | None = None

    @classmethod
    def of_ranking(
        cls, ranking: Ranking, settings: FusionSettings, unjudged: Unjudged | None
    ) -> Self:
        """All hits of a ranking that has no others, by these settings of a fusion."""
        score_of = dict(zip(ranking.docids, ranking.scores, strict=True))
        background = settings.background_of(ranking)
        return cls(
            ranking.docids,
            is_whole=True,
            scores_of=lambda docids: [score_of.get(docid) for docid in docids],
            background=background,
            unjudged=unjudged,
        )

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """The scores of the hits, float64 (hits,)."""
        return np.array(self.scores_of(self.docids), np.float64)

    @cached_property
    def best(self) -> float:
        """The score of the best hit; the background without hits."""
        return float(self.scores.max()) if self.docids else self.background.score

    @property
    def lacking(self) -> float:
        """The score that adds nothing: the background, or where no hit has more, less than any."""
        no_more = self.background.score
        return no_more if self.best > no_more else -inf

    @cached_property
    def greatest_unseen(self) -> float:
        """The greatest score that a document may have that is not among the hits."""
        return self.lacking if self.is_whole else float(self.scores.min())

    def column(self, row_of: Mapping[str, int]) -> NDArray[np.float64]:
        """The scores of documents that have these rows, float64 (rows,); nan of those that are not
        among the hits.
        """
        scores = np.full(len(row_of), np.nan)
        scores[[row_of[docid] for docid in self.docids]] = self.scores
        return scores

    def are_unjudged(self, docids: Sequence[str]) -> NDArray[np.bool_]:
        """Whether the ranking cannot judge each of these documents, bool (documents,)."""
        if self.unjudged is None:
            return np.zeros(len(docids), np.bool_)
        unjudged = self.unjudged(docids)
        return np.fromiter((docid in unjudged for docid in docids), np.bool_, len(docids))

    def look_up(self, docids: Sequence[str]) -> list[float]:
        """The scores of documents that are not among the hits; `lacking` of one that the ranking
        lacks.
        """
        found = self.scores_of(docids)
        return [self.lacking if score is None else score for score in found]


@dataclass(frozen=True)
class FusedHits:
    """The k best documents that some ranking found, and whether they are the best of all."""

    ranking: Ranking
    is_proven: bool


def fuse_first_hits(
    parts: Sequence[FirstHits], settings: FusionSettings, k: int | None
) -> FusedHits:
    """The k best documents that some ranking found, by their scores in all rankings.

    Parameters
    ----------
    parts : the first hits of each ranking
    settings : of the fusion
    k : how many documents; None: all
    """
    candidates = _Candidates(parts, settings)
    for number in range(len(parts)):
        # Each ranking that has scored all leaves fewer documents for the next one.
        if k is not None:
            candidates.keep_possible(k)
        candidates.complete(number)
    columns = []
    are_unjudged = []
    for part, column, mask in zip(parts, candidates.columns, candidates.are_unjudged, strict=True):
        # The last row is for a document that no ranking found. It is computed like the others, so
        # rounding cannot make it less than such a document's.
        columns.append(np.append(column, part.greatest_unseen))
        are_unjudged.append(np.append(mask, part.unjudged is not None))
    totals = _fused_scores(parts, columns, are_unjudged, settings)
    ranking = rank_by_score(candidates.docids, totals[:-1], k)
    is_whole = all(part.is_whole for part in parts)
    # A document of an equal score could come first by its docid.
    is_proven = len(ranking) == k and ranking.scores[-1] > totals[-1]
    return FusedHits(ranking, is_whole or is_proven)


class _Candidates:
    """The hits of all rankings, with their scores in each, as far as these are known.

    Parameters
    ----------
    parts : the first hits of each ranking
    settings : of the fusion

    Attributes
    ----------
    docids : an object array (n,)
    columns : of each ranking, float64 (n,); nan of a document whose score is not known
    are_unjudged : of each ranking, bool (n,): whether it cannot judge a document
    """

    def __init__(self, parts: Sequence[FirstHits], settings: FusionSettings) -> None:
        self._parts = parts
        self._settings = settings
        docids = list(dict.fromkeys(chain.from_iterable(part.docids for part in parts)))
        row_of = {docid: row for row, docid in enumerate(docids)}
        self.docids = np.array(docids, dtype=object)
        self.columns = [part.column(row_of) for part in parts]
        self.are_unjudged = [part.are_unjudged(docids) for part in parts]

    def keep_possible(self, k: int) -> None:
        """Leave out the documents that cannot be among the k best of them."""
        if len(self.docids) <= k:
            return
        least = []
        greatest = []
        for part, column in zip(self._parts, self.columns, strict=True):
            is_unknown = np.isnan(column)
            least.append(np.where(is_unknown, part.lacking, column))
            greatest.append(np.where(is_unknown, part.greatest_unseen, column))
        at_least = np.partition(self._fused(least), -k)[-k]
        rows = np.flatnonzero(self._fused(greatest) >= at_least)
        self.docids = self.docids[rows]
        self.columns = [column[rows] for column in self.columns]
        self.are_unjudged = [mask[rows] for mask in self.are_unjudged]

    def _fused(self, columns: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """The fused scores of the documents by these scores, float64 (n,)."""
        return _fused_scores(self._parts, columns, self.are_unjudged, self._settings)

    def complete(self, number: int) -> None:
        """Ask a ranking, by its number, for the scores that are not known."""
        column = self.columns[number]
        rows = np.flatnonzero(np.isnan(column))
        if len(rows):
            column[rows] = self._parts[number].look_up(self.docids[rows].tolist())


def _fused_scores(
    parts: Sequence[FirstHits],
    columns: Sequence[NDArray[np.float64]],
    are_unjudged: Sequence[NDArray[np.bool_]],
    settings: FusionSettings,
) -> NDArray[np.float64]:
    """The fused scores of documents, float64 (documents,).

    Parameters
    ----------
    parts : the first hits of each ranking
    columns : the documents' scores in each
    are_unjudged : whether each ranking cannot judge a document
    settings : of the fusion
    """
    weights = settings.weights_for(len(parts))
    shares = []
    for part, column in zip(parts, columns, strict=True):
        # The best hit may not be among the documents.
        scores = np.append(column, part.best)
        shares.append(scaled(scores, Normalization(settings.normalize), part.background)[:-1])
    if any(mask.any() for mask in are_unjudged):
        shares = _judged_by_others(shares, are_unjudged, weights)
    weighted = [weight * share for weight, share in zip(weights, shares, strict=True)]
    if len(weighted) == 2:
        # A sum of two is rounded once, as by `fsum`.
        total: NDArray[np.float64] = weighted[0] + weighted[1]
        return total
    rows = zip(*(values.tolist() for values in weighted), strict=True)
    return np.array([fsum(row) for row in rows], np.float64)


def _judged_by_others(
    shares: Sequence[NDArray[np.float64]],
    are_unjudged: Sequence[NDArray[np.bool_]],
    weights: Sequence[float],
) -> list[NDArray[np.float64]]:
    """Shares of the best scores, where a ranking that cannot judge a document gives it at least the
    mean share of those that can.
    """
    total = np.zeros_like(shares[0])
    total_weight = np.zeros_like(shares[0])
    for share, mask, weight in zip(shares, are_unjudged, weights, strict=True):
        total += np.where(mask, 0.0, weight * share)
        total_weight += np.where(mask, 0.0, weight)
    mean = np.divide(total, total_weight, out=np.zeros_like(total), where=total_weight > 0)
    judged = []
    for share, mask in zip(shares, are_unjudged, strict=True):
        judged.append(np.where(mask, np.maximum(share, mean), share))
    return judged
