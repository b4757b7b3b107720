"""Everything that ranks is a `Ranker`: read this file first.

A ranker takes topics (`Query`) and gives a `Run`, a `Ranking` of passages for each topic. A first
stage searches; a reranker gets the run of the stage before it and puts the best candidates into a
new order. Searchers, fusions, rerankers and whole pipelines implement one method, `Ranker._rank`.
`StoredTexts` is what a ranker knows of the texts of its hits. A `Searcher` is a first stage that
other projects call: `search` and `batch_search` are Pyserini's. `Reranker` (`rerank/base.py`) has
PyGaggle's `rerank`. While a ranker works, it reports to a `Trace`.
"""

from __future__ import annotations

import copy
import logging
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import repeat
from math import isnan, nan
from typing import Any, NamedTuple, Self, overload

from pyserini_repbert.errors import InputError, MismatchError, MissingResourceError
from pyserini_repbert.trace import SILENT, Notes, Trace

logger = logging.getLogger(__name__)

# `Ranker.reads` of a reranker that reads all candidates.
ALL = sys.maxsize


@dataclass(frozen=True, slots=True)
class Background:
    """What documents score that have nothing to do with a query.

    Attributes
    ----------
    score : of any one of them; nan if nobody knows it
    chance : what the best of them all has above it by chance; 0 if nobody knows it
    """

    score: float = nan
    chance: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether scores can be counted from it."""
        return not isnan(self.score)


UNKNOWN_BACKGROUND = Background()
# Of words and of weights of terms: a document without any of the query's has a score of 0.
NO_WORD = Background(0.0)


@dataclass(frozen=True, slots=True)
class Query:
    """A topic: its identifier and its text."""

    qid: str
    text: str


def _words_of(line: str) -> list[str]:
    """The words of a line, without the marks of a heading."""
    return re.findall(r'\w+', line)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A passage of a longer document.

    Attributes
    ----------
    number : of the passage in its document, from 0
    start, end : its characters in the document's text
    text : the passage, `document.text[start:end]`
    title : of the document, '' if it has none
    headings : the headings above its part, the highest first
    anchor : of the last of them, '#ports' without its sign; '' if it has none
    file : the path of the document's file in the corpus; '' if that is not known
    line : of the file at which that part begins, from 1; None if the format has no lines
    row : the number of its record in the file, from 1, where records have no lines; otherwise None
    part : of a passage that headings cut into parts, the characters of the document's text that
        answer the question; None: all of the passage
    url : where the document comes from, at the anchor; '' if that is not known. It is an address
        of the web, or of a file of this machine
    last_page : the printed page on which the passage ends, where nothing tells which of its pages
        answers; otherwise None
    """

    number: int
    start: int
    end: int
    text: str
    title: str = ''
    headings: tuple[str, ...] = ()
    anchor: str = ''
    file: str = ''
    line: int | None = None
    url: str = ''
    row: int | None = None
    part: tuple[int, int] | None = None
    last_page: int | None = None

    @property
    def shown_span(self) -> tuple[int, int]:
        """The characters of the document's text that answer: the part, or all."""
        return (self.start, self.end) if self.part is None else self.part

    @property
    def body_span(self) -> tuple[int, int]:
        """`shown_span` without a heading in front, which `headings` has, too."""
        start, end = self.shown_span
        first, _, rest = self.text[start - self.start : end - self.start].partition('\n')
        is_heading = bool(self.headings) and _words_of(first) == _words_of(self.headings[-1])
        if is_heading and rest.strip():
            return (end - len(rest.lstrip()), end)
        return (start, end)

    @property
    def shown_text(self) -> str:
        """What a hit shows: the part that answers the question, below its headings."""
        start, end = self.body_span
        return self.text[start - self.start : end - self.start]

    @property
    def model_input(self) -> str:
        """What a model reads: the title, then the passage."""
        return f'{self.title} {self.text}' if self.title else self.text


Excerpts = tuple[Excerpt, ...]


class WordWeight(NamedTuple):
    """A word, and what it adds to a score."""

    word: str
    weight: float


# Words or terms in the reason for a hit, as a line shows it.
REASON_TERMS = 5


class ReasonKind(StrEnum):
    """What a ranking tells about a document: words of the question with what each adds to the score
    (BM25), the same for a model's terms or tokens, or the sentence nearest to the question
    (vectors).
    """

    WORDS = 'words'
    TERMS = 'terms'
    TOKENS = 'tokens'
    SENTENCE = 'sentence'


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a ranking ranks a document where it does.

    Attributes
    ----------
    kind : of the explanation
    ranking : its name
    words : with what each adds to the score, the greatest first; of a sentence, with how much its
        score is less without the word
    sentence : of vectors; '' for others
    start, end : where the sentence is: characters of the document's text
    """

    kind: ReasonKind
    ranking: str
    words: tuple[WordWeight, ...]
    sentence: str = ''
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage, or a document, in a ranking.

    `text` is None until a stage needs it; the higher the score, the better. A document of a
    collection has the passages that fit the query best in `excerpts`, the best first; its `text` is
    then that passage, after the title.
    """

    docid: str
    score: float = 0.0
    text: str | None = None
    excerpts: Excerpts = ()

    @property
    def added(self) -> Mapping[str, Any]:
        """What an extension says of the hit, by name: other programs take it as metadata."""
        return {}

    @property
    def title(self) -> str:
        """Of a document of a collection, its title; '' if it has none."""
        return self.excerpts[0].title if self.excerpts else ''

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings above the passage that fits the query best, the highest first."""
        return self.excerpts[0].headings if self.excerpts else ()

    @property
    def line(self) -> int | None:
        """The line of the file at which that passage begins, from 1; None without lines."""
        return self.excerpts[0].line if self.excerpts else None

    @property
    def url(self) -> str:
        """Where the document comes from, at that passage; '' if that has no address."""
        return self.excerpts[0].url if self.excerpts else ''


@dataclass(frozen=True, slots=True, init=False)
class Ranking(Sequence[Candidate]):
    """One query's hits, best first: the one form of a ranking from search to output.

    It is stored by column, so that fusing or evaluating seven million hits takes seconds; as a
    sequence, its items are candidates.

    Attributes
    ----------
    docids : distinct
    scores : one for each docid, never increasing
    texts : one for each docid, None if the text is unknown; () until texts are needed
    excerpts : of documents: the best passages of each; () for passages, and until they are needed
    background : the scores of documents that have nothing to do with the query: `NO_WORD`, or by
        the vectors' scores over a sample of their index
    """

    docids: tuple[str, ...]
    scores: tuple[float, ...]
    texts: tuple[str | None, ...]
    excerpts: tuple[Excerpts, ...]
    # The same hits of a run file are the same ranking.
    background: Background = field(compare=False, repr=False)

    def __init__(
        self,
        docids: Iterable[str] = (),
        scores: Iterable[float] = (),
        texts: Iterable[str | None] = (),
        excerpts: Iterable[Excerpts] = (),
        background: Background = UNKNOWN_BACKGROUND,
    ) -> None:
        object.__setattr__(self, 'docids', tuple(docids))
        object.__setattr__(self, 'scores', tuple(scores))
        object.__setattr__(self, 'texts', tuple(texts))
        object.__setattr__(self, 'excerpts', tuple(excerpts))
        object.__setattr__(self, 'background', background)

    @classmethod
    def of(cls, candidates: Iterable[Candidate]) -> Ranking:
        """The ranking of these candidates, in their order. A Ranking is returned unchanged."""
        if isinstance(candidates, Ranking):
            return candidates
        items = list(candidates)
        docids = [item.docid for item in items]
        scores = [item.score for item in items]
        texts = [item.text for item in items]
        excerpts = [item.excerpts for item in items]
        has_texts = any(text is not None for text in texts)
        return cls(docids, scores, texts if has_texts else (), excerpts if any(excerpts) else ())

    def __len__(self) -> int:
        return len(self.docids)

    def __iter__(self) -> Iterator[Candidate]:
        texts = self.texts or repeat(None)
        return map(Candidate, self.docids, self.scores, texts, self.excerpts or repeat(()))

    @overload
    def __getitem__(self, row: int) -> Candidate: ...

    @overload
    def __getitem__(self, row: slice) -> Ranking: ...

    def __getitem__(self, row: int | slice) -> Candidate | Ranking:
        if isinstance(row, slice):
            return Ranking(
                self.docids[row],
                self.scores[row],
                self.texts[row],
                self.excerpts[row],
                self.background,
            )
        text = self.texts[row] if self.texts else None
        excerpts = self.excerpts[row] if self.excerpts else ()
        return Candidate(self.docids[row], self.scores[row], text, excerpts)

    def with_texts(self, texts: Mapping[str, str | None]) -> Ranking:
        """The same hits with texts by docid; a hit that has one keeps it."""
        filled: list[str | None] = []
        for docid, text in zip(self.docids, self.texts or repeat(None), strict=False):
            if text is None:
                text = texts.get(docid)
            filled.append(text)
        return Ranking(self.docids, self.scores, filled, self.excerpts, self.background)

    def with_excerpts(self, excerpts: Mapping[str, Excerpts]) -> Ranking:
        """The same documents with their best passages by docid.

        The first of them becomes the text. A document without passages has ''; one that is not
        named keeps its text.
        """
        texts: list[str | None] = []
        passages_of_hits: list[Excerpts] = []
        for hit in self:
            passages = excerpts.get(hit.docid)
            if passages is None:
                texts.append(hit.text)
                passages_of_hits.append(hit.excerpts)
            else:
                texts.append(passages[0].model_input if passages else '')
                passages_of_hits.append(passages)
        return Ranking(self.docids, self.scores, texts, passages_of_hits, self.background)

    def without_texts(self) -> Ranking:
        """The same hits without texts and passages."""
        if not self.texts and not self.excerpts:
            return self
        return Ranking(self.docids, self.scores, background=self.background)

    def with_background(self, background: Background) -> Ranking:
        """The same hits, whose scores count from this one."""
        return Ranking(self.docids, self.scores, self.texts, self.excerpts, background)

    def without(self, docid: str) -> Ranking:
        """The hits except one; all of them if it is not among them."""
        if docid not in self.docids:
            return self
        rows = [row for row, other in enumerate(self.docids) if other != docid]
        return self.select_rows(rows, [self.scores[row] for row in rows])

    def distinct(self) -> Ranking:
        """The hits without duplicates: of each docid, the best."""
        first_rows: dict[str, int] = {}
        for row, docid in enumerate(self.docids):
            first_rows.setdefault(docid, row)
        if len(first_rows) == len(self.docids):
            return self
        rows = list(first_rows.values())
        return self.select_rows(rows, [self.scores[row] for row in rows])

    def append_below(self, rest: Ranking) -> Ranking:
        """These hits, then the hits of `rest` in their order.

        The hits of `rest` get new scores: the last score here minus 1, minus 2, and so on.
        """
        if not self.docids:
            return rest
        if not rest.docids:
            return self
        lowest = self.scores[-1]
        scores = tuple(lowest - step for step in range(1, len(rest) + 1))
        texts: tuple[str | None, ...] = ()
        if self.texts or rest.texts:
            texts = (self.texts or (None,) * len(self)) + (rest.texts or (None,) * len(rest))
        excerpts: tuple[Excerpts, ...] = ()
        if self.excerpts or rest.excerpts:
            excerpts = (self.excerpts or ((),) * len(self)) + (rest.excerpts or ((),) * len(rest))
        docids = self.docids + rest.docids
        return Ranking(docids, self.scores + scores, texts, excerpts, self.background)

    def select_rows(self, rows: Sequence[int], scores: Iterable[float]) -> Ranking:
        """The hits of these rows, from 0, in the order of `rows`.

        They get these scores, which must not increase.
        """
        docids = [self.docids[row] for row in rows]
        texts = [self.texts[row] for row in rows] if self.texts else ()
        excerpts = [self.excerpts[row] for row in rows] if self.excerpts else ()
        return Ranking(docids, scores, texts, excerpts, self.background)


# Rankings by qid, in the order of the topics.
Run = dict[str, Ranking]

NO_HITS = Ranking()


def by_score(docids: Sequence[str], scores: Sequence[float]) -> Ranking:
    """Hits by descending score, ties by ascending docid, as in searchers and fusion."""
    pairs = sorted(zip(scores, docids, strict=True), key=lambda pair: (-pair[0], pair[1]))
    return Ranking((docid for _, docid in pairs), (score for score, _ in pairs))


# Of these docids, those of documents that a ranking cannot judge.
Unjudged = Callable[[Sequence[str]], frozenset[str]]


class Batch(NamedTuple):
    """Topics that are ranked together, with the run to rerank, under a number."""

    number: int
    topics: Sequence[Query]
    run: Run | None


class RankedBatch(NamedTuple):
    """What became of a `Batch`: all hits of its topics, and what the ranker reported."""

    number: int
    run: Run
    notes: Notes


class StoredTexts:
    """What a ranker stores of the passages, or documents, that it finds; by default nothing.

    Attributes
    ----------
    has_excerpts : whether its hits are documents, whose texts are their best passages for a query
    """

    has_excerpts: bool = False

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """The passages that it stores, None for each that it lacks."""
        return [None] * len(docids)

    def with_stored_texts(self, query: str, ranking: Ranking, n_excerpts: int = 1) -> Ranking:
        """The hits with the texts that it stores; without, where its index stores none.

        Parameters
        ----------
        query : its text: of a document, the passages that fit it best are taken
        ranking : of this query
        n_excerpts : how many passages of each document
        """
        try:
            texts = self.texts(ranking.docids)
        except MismatchError:
            return ranking
        texts_by_docid = dict(zip(ranking.docids, texts, strict=True))
        return ranking.with_texts(texts_by_docid)

    def with_shown_texts(self, query: str, ranking: Ranking) -> Ranking:
        """The hits with the texts that a person is shown: of a document, the passage that answers.

        A reranker reads the texts of `with_stored_texts`.

        Parameters
        ----------
        query : its text
        ranking : of this query
        """
        return self.with_stored_texts(query, ranking)


class QueryRewriting(ABC):
    """Rewrites questions, each ranking's in its own way, before they are searched for.

    Attributes
    ----------
    name : as the user calls it
    rewrites_words : whether rankings of words search for something else than the question
    """

    name: str
    rewrites_words: bool

    @abstractmethod
    def identity(self) -> Mapping[str, Any]:
        """All that decides what becomes of a question, for records."""

    @abstractmethod
    def prepare(self, topics: Sequence[Query], trace: Trace = SILENT) -> None:
        """Make what rankings need to know of questions; `trace` gets progress and cost."""

    @abstractmethod
    def words(self, question: str) -> str:
        """The text that rankings of words search for."""

    @abstractmethod
    def query_encoder(self, encoder: Any) -> Any:
        """A query encoder, with Pyserini's interface, that dense rankings have instead of
        `encoder`.
        """


class Ranker(StoredTexts, ABC):
    """Everything that ranks.

    A subclass implements `_rank`, and keeps or replaces the methods with defaults. Derive a first
    stage from `Searcher`, and what reranks from `Reranker`.

    Attributes
    ----------
    name : as the catalog or the user calls it
    reads : how many candidates of a run it reads, `ALL` for all of them; None: a first stage, which
        takes no run
    parts : the rankers that it is made of, in their order
    threads : CPU threads, or queries that Lucene answers at a time; 1 leaves the libraries' own
        settings
    n_excerpts : how many passages of a document a reranker reads
    reads_scores : whether a reranker reads the scores of a run, beside its order and its texts
    takes_feedback : whether its attribute `feedback` moves a query's vector
    remove_duplicates : of a docid that a ranking has twice, keep the best hit
    recorded_as : what records and messages call a ranker of this class, `class X(Ranker,
        recorded_as='…')`; the name of a class that says nothing. It stays when a class is renamed
    """

    recorded_as: str
    name: str = ''
    reads: int | None = None
    parts: tuple[Ranker, ...] = ()
    threads: int = 1
    remove_duplicates: bool = False
    n_excerpts: int = 1
    takes_feedback: bool = False

    @property
    def reads_scores(self) -> bool:
        return False

    def __init_subclass__(cls, recorded_as: str | None = None, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        cls.recorded_as = recorded_as or cls.__name__

    def rank(
        self,
        topics: Sequence[Query],
        run: Run | None = None,
        k: int | None = 1000,
        trace: Trace = SILENT,
    ) -> Run:
        """A ranking for every topic, in their order; empty if nothing is found.

        Parameters
        ----------
        topics : with distinct qids
        run : of the stage before, for a reranker
        k : how deep a ranking is at most; None: all hits
        trace : gets progress, costs and runs

        Raises InputError for a qid that comes twice, a k out of range, a first stage with a run, or
        a reranker without.
        """
        self._check_call(topics, run, k)
        rankings = self._rank(topics, run, k, trace)
        complete_run: Run = {}
        for topic in topics:
            ranking = rankings.get(topic.qid, NO_HITS)
            if self.remove_duplicates:
                ranking = ranking.distinct()
            if k is not None and len(ranking) > k:
                ranking = ranking[:k]
            complete_run[topic.qid] = ranking
        trace.ranked(complete_run)
        return complete_run

    def _check_call(self, topics: Sequence[Query], run: Run | None, k: int | None) -> None:
        """Raises the errors of `rank`."""
        seen: set[str] = set()
        for topic in topics:
            if topic.qid in seen:
                raise InputError(f"qid '{topic.qid}' was given twice: give every query its own qid")
            seen.add(topic.qid)
        searches = self.reads is None
        # A reranker may be asked for 0 hits.
        least = int(searches)
        if self.threads < 1 or (k is not None and k < least):
            raise InputError(f'k={k}, threads={self.threads}: expected at least 1')
        if searches and run is not None:
            raise InputError(f"'{self.label}' searches, and takes no run")
        if not searches and run is None:
            raise InputError(f"'{self.label}' reranks: give it the run of a first stage")

    @abstractmethod
    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        """The run of `rank`, whose arguments are checked.

        Rankings are ordered by (-score, docid); topics may come in any order.
        """

    @property
    def label(self) -> str:
        """Its name in messages and reports."""
        return self.name or self.recorded_as

    @property
    def part_names(self) -> list[str]:
        """The names of its parts, under which they are traced: their labels.

        A label that is taken gets the part's number: 'bm25', 'bm25#2'.
        """
        return distinct_names([part.label for part in self.parts])

    def planned(self, lengths: Sequence[int]) -> list[int]:
        """The query-document pairs to come for runs of these lengths.

        They decide where batches are cut, and the size of the progress bar.
        """
        totals = [0] * len(lengths)
        for part in self.parts:
            counts = part.planned(lengths)
            totals = [total + count for total, count in zip(totals, counts, strict=True)]
        return totals

    def identity(self) -> Mapping[str, Any]:
        """All that decides its rankings, apart from topics and run.

        Records and resuming compare it.
        """
        identity = {'ranker': self.recorded_as, 'name': self.name}
        if not self.parts:
            return identity
        return {**identity, 'parts': [part.identity() for part in self.parts]}

    def stream(self, batches: Iterable[Batch], trace: Trace = SILENT) -> Iterator[RankedBatch]:
        """Rank batches, and yield each when it is done."""
        for number, topics, run in batches:
            notes = Notes(trace)
            new_run = self.rank(topics, run, None, notes)
            yield RankedBatch(number, new_run, notes)

    def warnings(self, query: str) -> list[str]:
        """What to tell a user about a query, such as that an analyzer leaves no word of it."""
        warnings = []
        for part in self.parts:
            warnings += part.warnings(query)
        return warnings

    def reasons(self, query: str, docids: Sequence[str]) -> dict[str, tuple[Reason, ...]]:
        """Why its parts rank documents for a query as they do, by docid, as far as they tell."""
        reasons: dict[str, tuple[Reason, ...]] = {}
        for part in self.parts:
            for docid, own in part.reasons(query, docids).items():
                reasons[docid] = (*reasons.get(docid, ()), *own)
        return reasons

    def leaves(self) -> Iterator[Ranker]:
        """The rankers without parts that it is made of, in their order; itself if it has none."""
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
        """A copy with other attributes (threads, reads, …).

        It shares models and indexes with this ranker. Raises InputError for an attribute that this
        ranker does not have.
        """
        for name in changes:
            if not hasattr(self, name):
                raise InputError(
                    f"{type(self).__name__} has no setting '{name}': give one of its attributes, "
                    "such as 'threads' or 'reads'"
                )
        other = copy.copy(self)
        vars(other).update(changes)
        return other

    def by_documents(self) -> Self:
        """The same search with documents as queries: the text of a topic is the docid of one.

        A document is not among its own hits. An unknown one, or one without text, has no hits.
        Raises InputError for a ranker that takes questions only.
        """
        if not self.parts:
            raise InputError(
                f"'{self.label}' takes a question: rankings of vectors and of words find what is "
                'like a document'
            )
        return self.with_settings(parts=tuple(part.by_documents() for part in self.parts))

    def with_rewriting(self, rewriting: QueryRewriting) -> Self:
        """The same search for what a rewriting makes of a question.

        By default, a ranking without parts searches for the original question.
        """
        if not self.parts:
            return self
        return self.with_settings(
            parts=tuple(part.with_rewriting(rewriting) for part in self.parts)
        )

    def holds(self, docid: str) -> bool:
        """Whether it searches a document of this docid."""
        return any(part.holds(docid) for part in self.parts)

    @property
    def gives_document_scores(self) -> bool:
        """Whether `document_scores` gives the scores of documents below a ranking's last hit."""
        return False

    def document_scores(
        self, topic: Query, docids: Sequence[str], hits: Ranking
    ) -> list[float | None]:
        """The scores of documents in the whole ranking of a topic, however deep it was searched.

        Parameters
        ----------
        topic : the query
        docids : of the documents; one that the whole ranking lacks has None
        hits : the first hits of the topic, whose scores are known
        """
        raise NotImplementedError(f"'{self.label}' gives no scores of single documents")

    def unjudged(self, topic: Query) -> Unjudged | None:
        """Tells documents whose score for a topic says nothing about them; None: there are none.

        Words, for example, do not find a document whose language is not the question's.
        """
        return None


class Searcher(Ranker):
    """A first stage, as other projects call it: a question in, hits out.

    `search` and `batch_search` have the form of Pyserini's searchers.
    """

    def search(self, query: str, k: int = 10) -> list[Candidate]:
        """The k best hits of a query, as Pyserini's searchers give them.

        The hits have texts where the ranker stores them. What `warnings` says is logged. Raises
        InputError for a query without text.
        """
        check_question(query)
        run = self.rank([Query('0', query)], None, k)
        for warning in self.warnings(query):
            logger.warning('%s', warning)
        return list(self.with_shown_texts(query, run['0']))

    def more_like(self, docid: str, k: int = 10) -> list[Candidate]:
        """The k documents, or passages, that are most like one of those that are searched.

        Raises MissingResourceError for an unknown docid, and InputError for a ranker that
        takes questions only.
        """
        searcher = self.by_documents()
        self.check_document(docid)
        run = searcher.rank([Query('0', docid)], None, k)
        return list(searcher.with_stored_texts(docid, run['0']))

    def check_document(self, docid: str) -> None:
        """Raises MissingResourceError for an unknown docid."""
        if not self.holds(docid):
            raise MissingResourceError(f"there is no document '{docid[:200]}' in {self.label}")

    def batch_search(
        self, queries: Sequence[str], qids: Sequence[str], k: int = 10, threads: int = 1
    ) -> dict[str, list[Candidate]]:
        """The k best hits of each query, as Pyserini's searchers give them.

        Parameters
        ----------
        queries, qids : as many of each
        k : hits of each query
        threads : CPU threads, or queries that Lucene answers at a time

        Returns the hits by qid, in the order of `qids`.
        """
        run = self.with_settings(threads=threads).rank(topics_of(queries, qids), None, k)
        return {qid: list(ranking) for qid, ranking in run.items()}


def with_best_passages(
    topics: Sequence[Query], run: Run, *, source: Ranker, reranker: Ranker
) -> Run:
    """The run of these topics, with the passages of the documents that a reranker reads.

    Parameters
    ----------
    topics, run : topics and their hits
    source : gives the passages that fit a query best
    reranker : says how many documents it reads, and how many passages of each
    """
    run_with_passages = {}
    for topic in topics:
        ranking = run[topic.qid]
        head = source.with_stored_texts(topic.text, ranking[: reranker.reads], reranker.n_excerpts)
        excerpts = dict(zip(head.docids, head.excerpts, strict=True))
        run_with_passages[topic.qid] = ranking.with_excerpts(excerpts)
    return run_with_passages


def check_question(text: str) -> None:
    """Raises InputError for a question without text; a topic of a file may be empty."""
    if not text.strip():
        raise InputError('the query is empty: give a question')


def normal_form(text: str) -> str:
    """A topic's text in folded case, its words separated by single spaces.

    Topics with the same normal form are the same question.
    """
    return ' '.join(text.casefold().split())


def topics_of(queries: Sequence[str], qids: Sequence[str]) -> list[Query]:
    """Topics of texts and qids. Raises InputError if there are not as many qids as queries."""
    if len(queries) != len(qids):
        raise InputError(
            f'{len(queries)} queries and {len(qids)} qids were given: each query needs its own'
        )
    return list(map(Query, qids, queries))


def distinct_names(names: Sequence[str]) -> list[str]:
    """The names; one that is taken gets its number in the list: 'bm25', 'bm25#2'."""
    distinct: list[str] = []
    for number, name in enumerate(names, 1):
        if name in names[: number - 1]:
            name = f'{name}#{number}'
        distinct.append(name)
    return distinct
