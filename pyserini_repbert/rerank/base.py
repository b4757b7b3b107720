"""The contract of rerankers: a query and candidates in, the same candidates in a new order out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.ranking import Candidate, reordered

Progress = Callable[[int], object]


@dataclass(slots=True)
class Work:
    """What a reranker has done since it was made, counted as it goes.

    Attributes
    ----------
    inferences : model inputs
    tokens : in them, padding not counted
    candidates : candidates that were scored
    truncated : candidates whose text was cut
    stored : candidates that were scored by a vector of an index, whose text was not read
    """

    inferences: int = 0
    tokens: int = 0
    candidates: int = 0
    truncated: int = 0
    stored: int = 0


class Reranker(ABC):
    """Gives candidates new scores.

    Subclasses implement `score_lists`; this class owns the checks of its input, the order of the result (descending
    score; equal scores keep the order of the stage before) and the rule that nothing given to it is changed.

    Attributes
    ----------
    needs_text : whether candidates without text are refused
    precision : what its model runs in: 'float32', 'bfloat16', 'float16', 'int8'; None where it does not say
    work : what it has done so far, or None where it does not count
    """

    needs_text = True
    precision: str | None = None
    work: Work | None = None

    @abstractmethod
    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Sequence[Candidate]], on_progress: Progress | None = None
    ) -> list[NDArray[np.floating]]:
        """Scores for the candidates of each query, float (n,) each; a score does not depend on what else is there,
        unless the model compares candidates.

        `on_progress` is called with the number of model inputs done since the last call.
        """

    def identity(self) -> Mapping[str, object]:
        """What decides its scores: a rerank is resumed only with the same. Subclasses add their settings."""
        known = ('name', 'weights_sha256')
        return {'reranker': type(self).__name__} | {key: getattr(self, key) for key in known if hasattr(self, key)}

    def inferences(self, n: int) -> int:
        """How many model inputs a list of `n` candidates takes."""
        return n

    def rerank(self, query: str, candidates: Sequence[Candidate], k: int | None = None) -> list[Candidate]:
        """The candidates with their new scores, best first, ties in their old order; only the k best where k is given.

        Raises
        ------
        InputError
            for a candidate without text (where the model needs it), or a docid that comes twice
        """
        return self.rerank_many([query], [candidates], k)[0]

    def rerank_many(
        self,
        queries: Sequence[str],
        lists: Sequence[Sequence[Candidate]],
        k: int | None = None,
        on_progress: Progress | None = None,
    ) -> list[list[Candidate]]:
        """`rerank` for many queries at once: texts of equal length share a batch, whatever query they belong to."""
        if len(queries) != len(lists):
            raise InputError(f'{len(queries)} queries and {len(lists)} lists of candidates: give one list a query')
        if k is not None and k < 0:
            raise InputError(f'k={k} was asked for, expected 0 or more')
        for query, candidates in zip(queries, lists, strict=True):
            self._check(query, candidates)
        reranked = []
        for candidates, scores in zip(lists, self.score_lists(queries, lists, on_progress), strict=True):
            reranked.append(rescored(candidates, scores)[:k])
        return reranked

    def _check(self, query: str, candidates: Sequence[Candidate]) -> None:
        seen: set[str] = set()
        for candidate in candidates:
            if candidate.docid in seen:
                raise InputError(f"candidate '{candidate.docid}' comes twice for query {query[:40]!r}: give it once")
            if self.needs_text and candidate.text is None:
                raise InputError(
                    f"candidate '{candidate.docid}' has no text: "
                    'name the corpus or an index that stores its passages (--corpus, --index)'
                )
            seen.add(candidate.docid)


def rescored(candidates: Sequence[Candidate], scores: NDArray[np.floating]) -> list[Candidate]:
    """New candidates with these scores, best first, ties as they came. DamagedFileError for one that is not finite."""
    if not np.isfinite(scores).all():
        docid = candidates[int(np.flatnonzero(~np.isfinite(scores))[0])].docid
        raise DamagedFileError(f"the score of candidate '{docid}' is not finite: check the checkpoint")
    return reordered(Candidate(old.docid, new, old.text) for old, new in zip(candidates, scores.tolist(), strict=True))
