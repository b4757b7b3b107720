"""Everything that ranks is a `Ranker`: read this file first.

A ranker takes topics (`Query`) and gives a `Run`, a `Ranking` of passages for each topic. A first
stage searches; a reranker gets the run of the stage before it and puts the best candidates into a
new order. Searchers, fusions, rerankers and whole pipelines implement one method, `Ranker._rank`.
How other projects call a ranker (Pyserini's `search`, PyGaggle's `rerank`) is derived from it here.
While a ranker works, it reports to a `Trace`.
"""

from __future__ import annotations

import copy
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple, Self, overload

from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.trace import SILENT, Notes, Trace

ALL = sys.maxsize  # `reads` of a reranker that reads all candidates


@dataclass(frozen=True, slots=True)
class Query:
    """A topic: its identifier and its text."""

    qid: str
    text: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage in a ranking.

    `text` is None until a stage needs it; the higher the score, the better.
    """

    docid: str
    score: float = 0.0
    text: str | None = None


@dataclass(frozen=True, slots=True, init=False)
class Ranking(Sequence[Candidate]):
    """One query's hits, best first: the one form of a ranking from search to output.

    It is stored by column, so that fusing or evaluating seven million hits takes seconds; as a
    sequence, its items are candidates.

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
        self,
        docids: Iterable[str] = (),
        scores: Iterable[float] = (),
        texts: Iterable[str | None] = (),
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
        return map(Candidate, self.docids, self.scores, self.texts or repeat(None))

    @overload
    def __getitem__(self, place: int) -> Candidate: ...

    @overload
    def __getitem__(self, place: slice) -> Ranking: ...

    def __getitem__(self, place: int | slice) -> Candidate | Ranking:
        if isinstance(place, slice):
            return Ranking(self.docids[place], self.scores[place], self.texts[place])
        return Candidate(
            self.docids[place], self.scores[place], self.texts[place] if self.texts else None
        )

    def with_texts(self, texts: Mapping[str, str | None]) -> Ranking:
        """The same hits with texts by docid; a hit that has one keeps it."""
        known = zip(self.docids, self.texts or repeat(None), strict=False)
        return Ranking(
            self.docids,
            self.scores,
            [texts.get(docid) if text is None else text for docid, text in known],
        )

    def without_texts(self) -> Ranking:
        """The same hits without texts."""
        return Ranking(self.docids, self.scores) if self.texts else self

    def distinct(self) -> Ranking:
        """The hits without duplicates: of each docid, the best."""
        first = {docid: place for place, docid in reversed(list(enumerate(self.docids)))}
        if len(first) == len(self.docids):
            return self
        order = sorted(first.values())
        return self.taken(order, map(self.scores.__getitem__, order))

    def above(self, rest: Ranking) -> Ranking:
        """These hits, then those of `rest` in order, with the last score here minus 1, 2, … as
        their scores.
        """
        if not self.docids or not rest.docids:
            return self if self.docids else rest
        below = tuple(self.scores[-1] - place for place in range(1, len(rest) + 1))
        texts: tuple[str | None, ...] = ()
        if self.texts or rest.texts:
            texts = (self.texts or (None,) * len(self)) + (rest.texts or (None,) * len(rest))
        return Ranking(self.docids + rest.docids, self.scores + below, texts)

    def taken(self, order: Sequence[int], scores: Iterable[float]) -> Ranking:
        """The hits at the places `order`, in that order, with these scores, which must not
        increase.
        """
        docids = self.docids
        texts = self.texts
        return Ranking(
            [docids[place] for place in order],
            scores,
            [texts[place] for place in order] if texts else (),
        )


Run = dict[str, Ranking]  # by qid, in the order of the topics

NO_HITS = Ranking()


def by_score(docids: Sequence[str], scores: Sequence[float]) -> Ranking:
    """Hits ordered by descending score, ties by ascending docid: the order of searchers and of
    fusion.
    """
    pairs = sorted(zip(scores, docids, strict=True), key=lambda pair: (-pair[0], pair[1]))
    return Ranking((docid for _, docid in pairs), (score for score, _ in pairs))


class Batch(NamedTuple):
    """Topics that are ranked together, with the run to rerank, under a number."""

    number: int
    topics: Sequence[Query]
    run: Run | None


class Ranker(ABC):
    """Everything that ranks.

    A subclass implements `_rank`, and keeps or replaces the methods with defaults.

    Attributes
    ----------
    name : as the catalog or the user calls it
    reads : how many candidates of a run it reads, `ALL` for all of them; None: a first stage, which
        takes no run
    parts : the rankers that it is made of, in their order
    threads : CPU threads, or queries that Lucene answers at a time; 1 leaves the libraries' own
        settings
    remove_duplicates : of a docid that a ranking has twice, keep the best hit
    """

    name: str = ''
    reads: int | None = None
    parts: tuple[Ranker, ...] = ()
    threads: int = 1
    remove_duplicates: bool = False

    def rank(
        self,
        topics: Sequence[Query],
        run: Run | None = None,
        k: int | None = 1000,
        trace: Trace = SILENT,
    ) -> Run:
        """A ranking for every topic, in their order, at most `k` deep (None: all); empty where
        nothing is found.

        Raises InputError for a qid that comes twice, a k out of range, a first stage with a run, or
        a reranker without.
        """
        for qid, count in Counter(topic.qid for topic in topics).most_common(1):
            if count > 1:
                raise InputError(f"qid '{qid}' was given twice: give every query a qid of its own")
        if self.threads < 1 or (k is not None and k < (1 if self.reads is None else 0)):
            raise InputError(f'k={k}, threads={self.threads}: expected at least 1')
        if (self.reads is None) != (run is None):
            takes = (
                'searches, and takes no run'
                if run is not None
                else 'reranks: give it the run of a first stage'
            )
            raise InputError(f"'{self.label}' {takes}")
        rankings = self._rank(topics, run, k, trace)
        ranked = {topic.qid: rankings.get(topic.qid, NO_HITS) for topic in topics}
        if self.remove_duplicates:
            ranked = {qid: ranking.distinct() for qid, ranking in ranked.items()}
        ranked = {
            qid: ranking if k is None or len(ranking) <= k else ranking[:k]
            for qid, ranking in ranked.items()
        }
        trace.ranked(ranked)
        return ranked

    @abstractmethod
    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        """The run of `rank`, whose arguments are checked: rankings by (-score, docid), topics in
        any order.
        """

    @property
    def label(self) -> str:
        """Its name in messages and reports."""
        return self.name or type(self).__name__

    def planned(self, lengths: Sequence[int]) -> list[int]:
        """The query-document pairs to come for runs of these lengths: they cut batches and size
        the progress bar.
        """
        of_parts = [part.planned(lengths) for part in self.parts]
        return [sum(counts) for counts in zip([0] * len(lengths), *of_parts, strict=True)]

    def identity(self) -> Mapping[str, Any]:
        """All that decides its rankings, apart from topics and run: records and resuming compare
        it.
        """
        parts = {'parts': [part.identity() for part in self.parts]} if self.parts else {}
        return {'ranker': type(self).__name__, 'name': self.name, **parts}

    def stream(
        self, batches: Iterable[Batch], trace: Trace = SILENT
    ) -> Iterator[tuple[int, Run, Notes]]:
        """The number, run (all hits) and notes of each batch, as it is done."""
        for number, topics, run in batches:
            notes = Notes(trace)
            yield number, self.rank(topics, run, None, notes), notes

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """The passages that it stores, None for each that it lacks."""
        return [None] * len(docids)

    def leaves(self) -> Iterator[Ranker]:
        """The rankers without parts that it is made of, in their order: itself if it has no
        parts.
        """
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()

    def close(self) -> None:
        """Release what its parts hold open."""
        for leaf in self.leaves():
            if leaf is not self:
                leaf.close()

    def with_settings(self, **changes: Any) -> Self:
        """A copy with other attributes (threads, reads, …) that shares models and indexes with
        this ranker.
        """
        other = copy.copy(self)
        vars(other).update(changes)
        return other

    def search(self, query: str, k: int = 10) -> list[Candidate]:
        """The k best hits of a query, as Pyserini's searchers give them, with texts where it stores
        them.

        Raises InputError for a query without text.
        """
        check_question(query)
        return self.shown(self.rank([Query('0', query)], None, k)['0'])

    def shown(self, ranking: Ranking) -> list[Candidate]:
        """The hits with the passages that it stores; without, where its index stores none."""
        try:
            texts = self.texts(ranking.docids)
        except MismatchError:
            return list(ranking)
        return list(ranking.with_texts(dict(zip(ranking.docids, texts, strict=True))))

    def batch_search(
        self, queries: Sequence[str], qids: Sequence[str], k: int = 10, threads: int = 1
    ) -> dict[str, list[Candidate]]:
        """The k best hits of each query, by qid in the order of `qids`, as Pyserini's searchers
        give them.
        """
        run = self.with_settings(threads=threads).rank(topics_of(queries, qids), None, k)
        return {qid: list(ranking) for qid, ranking in run.items()}

    def rerank(
        self, query: str, candidates: Sequence[Candidate], k: int | None = None
    ) -> list[Candidate]:
        """All candidates in a new order, best first, or the k best; what is given is not
        changed.
        """
        whole = self.with_settings(reads=ALL)
        return list(whole.rank([Query('0', query)], {'0': Ranking.of(candidates)}, k)['0'])


def check_question(text: str) -> None:
    """Raises InputError for a question without text; a topic of a file may be empty."""
    if not text.strip():
        raise InputError('the query is empty: give a question')


def topics_of(queries: Sequence[str], qids: Sequence[str]) -> list[Query]:
    """Topics of texts and qids. Raises InputError where there are not as many qids as queries."""
    if len(queries) != len(qids):
        raise InputError(
            f'{len(queries)} queries and {len(qids)} qids were given: each query needs its own'
        )
    return list(map(Query, qids, queries))
