"""The contract of rerankers: a query and candidates in, the same candidates in a new order out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.ranking import Candidate, Ranking

Progress = Callable[[int], object]
NO_TEXT = 'has no text: name the corpus or an index that stores its passages'


@dataclass(slots=True)
class Work:
    """What a reranker has done since it was made, counted as it works.

    Attributes
    ----------
    inferences : model inputs
    tokens : tokens of these inputs, padding not counted
    candidates : candidates that were scored
    truncated : candidates whose text was cut
    stored : candidates that were scored with a vector from an index, without reading their text
    """

    inferences: int = 0
    tokens: int = 0
    candidates: int = 0
    truncated: int = 0
    stored: int = 0


class Reranker(ABC):
    """Gives candidates new scores.

    Subclasses implement `score_lists`; this class checks input, orders the result (by descending score; candidates of
    equal score keep their order) and guarantees that nothing given to it is changed.

    Attributes
    ----------
    needs_text : whether candidates without text are refused
    precision : of its model: 'float32', 'bfloat16', 'float16', 'int8'; None if it is not known
    work : what it has done so far; None if it does not count
    """

    needs_text = True
    precision: str | None = None
    work: Work | None = None

    @abstractmethod
    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Ranking], on_progress: Progress | None = None
    ) -> list[NDArray[np.floating]]:
        """Scores for the candidates of each query, float (n,) each.

        A score does not depend on the other candidates, unless the model compares them. `on_progress` is called with
        the number of inputs done since the last call: `inferences(n)` in all for a list of n candidates.
        """

    def identity(self) -> Mapping[str, object]:
        """All that scores depend on: reranking is resumed only if it is the same. Subclasses add their settings."""
        known = ('name', 'weights_sha256')
        return {'reranker': type(self).__name__} | {key: getattr(self, key) for key in known if hasattr(self, key)}

    def inferences(self, n: int) -> int:
        """How many inputs a list of `n` candidates takes; a vector from an index counts as one."""
        return n

    def rerank(self, query: str, candidates: Sequence[Candidate], k: int | None = None) -> list[Candidate]:
        """The candidates with new scores, best first, ties in their old order; all, or the k best.

        Raises
        ------
        InputError
            for a candidate without text (where the model needs it), a docid that comes twice, or a negative k
        DamagedFileError
            where the model's scores are not finite
        """
        return self.rerank_many([query], [candidates], k)[0]

    def rerank_many(
        self,
        queries: Sequence[str],
        lists: Sequence[Sequence[Candidate]],
        k: int | None = None,
        on_progress: Progress | None = None,
    ) -> list[list[Candidate]]:
        """`rerank` for many queries at once: inputs of similar length share a batch, whatever their query.

        `on_progress` is called with the number of inputs done since the last call. Raises what `rerank` raises, and
        InputError if there are not as many lists as queries.
        """
        if k is not None and k < 0:
            raise InputError(f'k={k} was asked for, expected 0 or more')
        return [list(ranking[:k]) for ranking in self.reranked(queries, list(map(Ranking.of, lists)), on_progress)]

    def reranked(
        self, queries: Sequence[str], rankings: Sequence[Ranking], on_progress: Progress | None = None
    ) -> list[Ranking]:
        """A new ranking of each query's candidates. Parameters and errors are those of `rerank_many`."""
        if len(queries) != len(rankings):
            raise InputError(f'{len(queries)} queries and {len(rankings)} lists of candidates: give one list a query')
        for query, ranking in zip(queries, rankings, strict=True):
            self.check(query, ranking)
        scored = zip(rankings, self.score_lists(queries, rankings, on_progress), strict=True)
        return [rescored(ranking, scores) for ranking, scores in scored]

    def check(self, query: str, ranking: Ranking) -> None:
        """Raises InputError for a candidate without text (where the model needs it), or a docid that comes twice."""
        if len(set(ranking.docids)) < len(ranking):
            twice = next(docid for place, docid in enumerate(ranking.docids) if docid in ranking.docids[:place])
            raise InputError(f"candidate '{twice}' comes twice for query {query[:40]!r}: give it once")
        if self.needs_text and len(ranking) and (not ranking.texts or None in ranking.texts):
            absent = next(candidate.docid for candidate in ranking if candidate.text is None)
            raise InputError(f"candidate '{absent}' {NO_TEXT}", parameters=('corpus', 'index'))


def rescored(ranking: Ranking, scores: NDArray[np.floating]) -> Ranking:
    """`ordered`, if all scores are finite. Raises DamagedFileError, naming the candidate, for one that is not."""
    if not np.isfinite(scores).all():
        docid = ranking.docids[int(np.flatnonzero(~np.isfinite(scores))[0])]
        raise DamagedFileError(f"the score of candidate '{docid}' is not finite: check the checkpoint")
    return ordered(ranking, scores)


def ordered(ranking: Ranking, scores: NDArray[np.floating]) -> Ranking:
    """The candidates with these scores, (n,), in descending order; ties keep their order."""
    order = np.argsort(-scores, kind='stable')
    return ranking.taken(order.tolist(), scores[order].tolist())
