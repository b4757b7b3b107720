"""The frozen values that flow between stages: a query, a candidate, a ranking of candidates for a query."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import overload


@dataclass(frozen=True, slots=True)
class Query:
    """A topic: its identifier and its text."""

    qid: str
    text: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage in a ranking. `text` is None until a stage needs it; the higher the score, the better."""

    docid: str
    score: float = 0.0
    text: str | None = None


_ASSIGN = tuple(vars(Candidate)[name].__set__ for name in ('docid', 'score', 'text'))


@dataclass(frozen=True, slots=True, init=False)
class Ranking(Sequence[Candidate]):
    """One query's hits, best first: the one form of a ranking from search to output.

    It is stored by column, so that fusing or evaluating seven million hits takes seconds; as a sequence, its items are
    candidates.

    Attributes
    ----------
    docids : distinct
    scores : one for each docid, never increasing
    texts : one for each docid, None where a text is not known; () until texts are needed
    """

    docids: tuple[str, ...]
    scores: tuple[float, ...]
    texts: tuple[str | None, ...]

    def __init__(
        self, docids: Iterable[str] = (), scores: Iterable[float] = (), texts: Iterable[str | None] = ()
    ) -> None:
        object.__setattr__(self, 'docids', tuple(docids))
        object.__setattr__(self, 'scores', tuple(scores))
        object.__setattr__(self, 'texts', tuple(texts))

    @classmethod
    def of(cls, candidates: Iterable[Candidate]) -> Ranking:
        """The ranking of these candidates, in their order; a Ranking is returned as it is."""
        if isinstance(candidates, Ranking):
            return candidates
        items = list(candidates)
        texts = [item.text for item in items]
        known = () if texts.count(None) == len(texts) else texts
        return cls([item.docid for item in items], [item.score for item in items], known)

    def __len__(self) -> int:
        return len(self.docids)

    def __iter__(self) -> Iterator[Candidate]:
        made = list(map(Candidate.__new__, repeat(Candidate, len(self.docids))))
        columns = (self.docids, self.scores, self.texts or repeat(None))
        for assign, values in zip(_ASSIGN, columns, strict=True):  # half the time of calling `Candidate` for each
            deque(map(assign, made, values), maxlen=0)
        return iter(made)

    @overload
    def __getitem__(self, place: int) -> Candidate: ...

    @overload
    def __getitem__(self, place: slice) -> Ranking: ...

    def __getitem__(self, place: int | slice) -> Candidate | Ranking:
        if isinstance(place, slice):
            return Ranking(self.docids[place], self.scores[place], self.texts[place])
        return Candidate(self.docids[place], self.scores[place], self.texts[place] if self.texts else None)

    def with_texts(self, texts: Mapping[str, str | None]) -> Ranking:
        """The same hits with texts by docid; a hit that has one keeps it."""
        own = self.texts or repeat(None)
        filled = (texts.get(docid) if text is None else text for docid, text in zip(self.docids, own, strict=False))
        return Ranking(self.docids, self.scores, filled)

    def distinct(self) -> Ranking:
        """The hits without duplicates: of each docid, the best."""
        first = {docid: place for place, docid in reversed(list(enumerate(self.docids)))}
        if len(first) == len(self.docids):
            return self
        order = sorted(first.values())
        return self.taken(order, map(self.scores.__getitem__, order))

    def above(self, rest: Ranking) -> Ranking:
        """These hits, then those of `rest` in order, with the last score here minus 1, 2, … as their scores."""
        if not self.docids or not rest.docids:
            return self if self.docids else rest
        below = tuple(self.scores[-1] - place for place in range(1, len(rest) + 1))
        texts: tuple[str | None, ...] = ()
        if self.texts or rest.texts:
            texts = (self.texts or (None,) * len(self)) + (rest.texts or (None,) * len(rest))
        return Ranking(self.docids + rest.docids, self.scores + below, texts)

    def taken(self, order: Sequence[int], scores: Iterable[float]) -> Ranking:
        """The hits at the places `order`, in that order, with these scores, which must not increase."""
        docids, texts = self.docids, self.texts
        return Ranking([docids[place] for place in order], scores, [texts[place] for place in order] if texts else ())


Run = dict[str, Ranking]  # by qid, in the order of the topics

NO_HITS = Ranking()


def hits_of(run: Run) -> dict[str, list[Candidate]]:
    """A run as Pyserini's searchers give it: hits by qid, in lists that are the caller's."""
    return {qid: list(ranking) for qid, ranking in run.items()}


def by_score(docids: Sequence[str], scores: Sequence[float]) -> Ranking:
    """Hits ordered by descending score, ties by ascending docid: the order of searchers and of fusion."""
    pairs = sorted(zip(scores, docids, strict=True), key=lambda pair: (-pair[0], pair[1]))
    return Ranking((docid for _, docid in pairs), (score for score, _ in pairs))
