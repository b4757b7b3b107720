"""Sparse first stages on Lucene indexes: BM25, query likelihood, feedback, SDM; stored passages.

The searcher is Anserini's `SimpleSearcher`, the class that Pyserini's `LuceneSearcher` wraps; it is
used without importing Pyserini's encoders, so that a sparse search starts in a second.
"""

from __future__ import annotations

import json
import math
import re
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from pyserini_repbert.data.united_texts import UnitedText, unite_with_places
from pyserini_repbert.data.word_forms import WordForms
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.files import StrPath
from pyserini_repbert.lucene.document_queries import DocumentQueries
from pyserini_repbert.lucene.index_record import recorded_word_forms
from pyserini_repbert.lucene.json_values import ByteLists, HitsReader, java_list
from pyserini_repbert.lucene.jvm import (
    calling,
    java_calls,
    java_class,
    lift_clause_limit,
    quiet_java,
)
from pyserini_repbert.lucene.languages import ENGLISH
from pyserini_repbert.lucene.sparse_settings import (
    Rm3,
    Rocchio,
    Sdm,
    SparseSettings,
    default_settings,
)
from pyserini_repbert.ranking import (
    NO_HITS,
    NO_WORD,
    Background,
    Query,
    QueryRewriting,
    Ranking,
    Run,
    Searcher,
    WordWeight,
    by_score,
)
from pyserini_repbert.trace import Trace

_Value = TypeVar('_Value')
# Bounds the Java heap of a batch: Anserini holds the stored passage of every hit.
HITS_AT_ONCE = 100_000
_SHOWN = 60
# The words of so many last queries are kept, if they are few.
_LAST_QUERIES = 64
_FEW_WORDS = 1_000
# Queries of so many words never reach Lucene's limit, which takes some milliseconds to lift: the
# sequential dependence model makes three clauses of a word.
_FEW_CLAUSES = 300
# Words whose weights are kept.
_KEPT_WEIGHTS = 100_000
# Of scores by chance: the best is so many of their deviations above the mean
# (regressions/studies/small_folders.py).
_DEVIATIONS = 5
# Different words of a question. So many take one to ten seconds.
MAX_WORDS = 10_000
# How Lucene's explanation of a term's score begins.
_TERM_EXPLAINED = re.compile(r'weight\(contents:(.+) in \d+\)', re.DOTALL)
# The original text, in the raw JSON of an expanded or reweighted document.
PASSAGE_FIELD = 'passage'


class LuceneSparseSearcher(Searcher, recorded_as='LuceneSparseSearcher'):
    """Searches a Lucene index with the settings given at construction.

    A question of more than `MAX_WORDS` different words has no hits, and `warnings` says so.

    Threads may share a searcher: their calls wait for each other, and `batch_search(threads=…)`
    searches in parallel. `index` is the index's folder, `size` how many passages it holds.

    Parameters
    ----------
    index : an index folder, or the name of a prebuilt index of Pyserini
    settings : the scoring function and query expansion; default: BM25 with the k1 and b in the
        index's record (DeepCT's has them), otherwise 0.9 and 0.4
    download : fetch a prebuilt index that is missing, instead of raising MissingResourceError

    Raises MismatchError if feedback needs what the index does not store, or another version of
    Lucene wrote the index.

    Attributes
    ----------
    rewriting : gives the words that are searched for instead of a question's; None: these
    word_share : how much each place of a word in the searched text counts
    word_forms : the form of words in the index and in questions
    """

    rewriting: QueryRewriting | None = None
    word_share: float = 1.0

    def __init__(
        self, index: StrPath, settings: SparseSettings | None = None, download: bool = False
    ) -> None:
        self.index = index_folder(index, download)
        self.settings = settings or default_settings(self.index)
        self.name = self.index.name
        self.word_forms = recorded_word_forms(self.index)
        self._filter: Any = None
        self._document_queries: DocumentQueries | None = None
        with java_calls():
            quiet_java()
            searcher = java_class('io.anserini.search.SimpleSearcher')
            # Java resolves a relative path in the folder in which it started.
            self._open_index = _OpenIndex(calling(searcher, str(self.index.absolute())))
            self._analyze = java_class('io.anserini.analysis.AnalyzerUtils').analyze
            self._generator = _sdm_generator(self.settings.sdm)
            self.size = int(self._java.get_total_num_docs())
            self._configure()
            self._analyzer = self._java.get_analyzer()

    def _configure(self) -> None:
        """Tell Anserini's searcher the settings, which copies of this searcher may have changed."""
        settings = self.settings
        before = self._open_index.settings
        if before is not None and before.rm3:
            self._java.unset_rm3()
        if before is not None and before.rocchio:
            self._java.unset_rocchio()
        if before is not None and before.language != settings.language:
            raise ValueError('an open index keeps its language')
        self._open_index.settings = settings
        if before is None and settings.language != ENGLISH:
            self._java.set_language(settings.language)
        if settings.model == 'bm25':
            self._java.set_bm25(float(settings.k1), float(settings.b))
        else:
            self._java.set_qld(float(settings.mu))
        self._set_feedback(settings)

    def _set_feedback(self, settings: SparseSettings) -> None:
        """Tell Anserini's searcher how queries are expanded."""
        if settings.rm3 or settings.rocchio:
            lift_clause_limit()
        if settings.rm3:
            rm3 = settings.rm3 if isinstance(settings.rm3, Rm3) else Rm3()
            self._java.set_rm3(
                self._feedback_source('RM3'),
                rm3.fb_terms,
                rm3.fb_docs,
                float(rm3.original_query_weight),
                False,
                # Anserini's filter keeps only terms of Latin letters without accents.
                settings.language == ENGLISH,
            )
        if settings.rocchio:
            rocchio = settings.rocchio if isinstance(settings.rocchio, Rocchio) else Rocchio()
            self._java.set_rocchio(
                self._feedback_source('Rocchio'),
                rocchio.top_fb_terms,
                rocchio.top_fb_docs,
                rocchio.bottom_fb_terms,
                rocchio.bottom_fb_docs,
                float(rocchio.alpha),
                float(rocchio.beta),
                float(rocchio.gamma),
                False,
                rocchio.use_negative,
            )

    @property
    def language(self) -> str:
        """The language of its analyzer."""
        return self.settings.language

    def warnings(self, query: str) -> list[str]:
        """That the analyzer leaves no term of a query, or too many, if so."""
        if self._document_queries is not None:
            return self._warnings_of_document(self._document_queries, query)
        with java_calls():
            n_words = self._n_words(query)
        if n_words > MAX_WORDS:
            return [
                f"Lucene finds nothing for '{query[:_SHOWN]}…': it has {n_words:,} different "
                f'words, at most {MAX_WORDS:,} are searched: shorten it'
            ]
        if n_words:
            return []
        return [
            f"Lucene finds nothing for '{query}': the analyzer of language "
            f"'{self.language}' leaves no word of it"
        ]

    def _warnings_of_document(self, queries: DocumentQueries, docid: str) -> list[str]:
        """That no other document has a term of one, if so."""
        with java_calls():
            if self._document_query(queries, docid) is not None:
                return []
        return [f"Lucene finds nothing like '{docid}': no other document has a word of it"]

    def _feedback_source(self, feedback: str) -> str | None:
        """The collection class that reads raw passages; None for an index with vectors.

        `feedback` is what needs them. Raises MismatchError for an index with neither.
        """
        if self.size == 0 or self._java.reader.termVectors().get(0) is not None:
            return None
        raw = self._java.doc_raw(0)
        if raw is not None and raw.lstrip().startswith('{'):
            return 'JsonCollection'
        raise MismatchError(
            f'index {self.index} has neither document vectors nor raw JSON, which {feedback} '
            'needs: build it with them'
        )

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        """As in `Ranker`. Raises MismatchError if SDM needs positions and the index has none."""
        if self._document_queries is None:
            asked = []
            for topic in topics:
                asked.append(Query(topic.qid, self._form_of(self._searched_text(topic.text))))
            topics = asked
        with java_calls():
            if self._open_index.settings != self.settings:
                self._configure()
            depth = self.size if k is None else min(k, self.size)
            return self._hits(topics, depth)

    def _searched_text(self, query: str) -> str:
        """What is searched for instead of a question."""
        return query if self.rewriting is None else self.rewriting.words(query)

    def _form_of(self, query: str) -> str:
        """A question in the form in which the index has words."""
        return self.word_forms.of(query, self.language)

    def among(self, docids: Sequence[str]) -> Self:
        """The same search among some documents: a term query of their ids filters its hits.

        Each takes some 6 to 20 microseconds once. Feedback and the sequential dependence model are
        left out.
        """
        with java_calls():
            filter_query = java_class('org.apache.lucene.search.TermInSetQuery')
            ids = self._open_index.byte_lists.make(docids)
            return self.with_settings(settings=self._bag_of_words, _filter=filter_query('id', ids))

    def by_documents(self) -> Self:
        """As in `Ranker`: a document's query has its best terms by tf-idf, see `DocumentQueries`.

        Feedback and the sequential dependence model are left out.
        """
        with java_calls():
            queries = DocumentQueries(self._java.reader, self._analyzer)
        return self.with_settings(
            settings=self._bag_of_words, _document_queries=queries, _generator=None
        )

    def with_rewriting(self, rewriting: QueryRewriting) -> Self:
        return self.with_settings(rewriting=rewriting) if rewriting.rewrites_words else self

    @property
    def _bag_of_words(self) -> SparseSettings:
        """The settings without feedback and without the sequential dependence model."""
        return replace(self.settings, rm3=False, rocchio=False, sdm=False)

    def holds(self, docid: str) -> bool:
        with java_calls():
            return DocumentQueries(self._java.reader, self._analyzer).number_of(docid) >= 0

    def _document_query(self, queries: DocumentQueries, docid: str) -> Any:
        """The query of a document; None if it is not here, or no other has a term of it."""
        number = queries.number_of(docid)
        if number < 0:
            return None
        if queries.has_vector(number):
            return queries.of_vector(number)
        if queries.has_vectors():
            # Its text has no terms: stopwords, or punctuation.
            return None
        (text,) = self.texts([docid])
        return None if text is None else queries.of_text(self._form_of(text))

    def _hits_like(self, queries: DocumentQueries, docid: str, k: int) -> Ranking:
        """The hits of a document, except for itself."""
        query = self._document_query(queries, docid)
        if query is None:
            return NO_HITS
        term = java_class('org.apache.lucene.index.Term')('id', docid)
        itself = java_class('org.apache.lucene.search.TermQuery')(term)
        return self._hits_of_query(query, k, besides=itself)

    def _filtered_hits(self, topic: Query, k: int) -> Ranking:
        """The hits of a topic among the documents of `among`."""
        return self._hits_of_query(self._lucene_query(topic.text), k)

    def _lucene_query(self, text: str) -> Any:
        """Lucene's query of a text: a bag of words."""
        words = java_class('io.anserini.search.query.BagOfWordsQueryGenerator')()
        field = 'contents' if self.word_share == 1 else self._weighted_field
        return words.buildQuery(field, self._analyzer, text)

    @property
    def _weighted_field(self) -> Any:
        """The searched field with its weight, as Java's map."""
        return self._open_index.weighted_field(self.word_share)

    def word_weights(self, query: str, docids: Sequence[str]) -> dict[str, list[WordWeight]]:
        """What each word of a question adds to BM25's score of documents, by docid, as Lucene
        explains it.

        The greatest weights come first. A document that does not exist, or has no word of the
        question, is left out. Of a document as the question (`by_documents`), the words are stems.

        Parameters
        ----------
        query : a question
        docids : of the documents
        """
        if self._document_queries is None:
            query = self._searched_text(query)
        found = {}
        with java_calls():
            if self._document_queries is None and not 0 < self._n_words(query) <= MAX_WORDS:
                return {}
            queries = self._document_queries or DocumentQueries(self._java.reader, self._analyzer)
            asked = self._explained_query(query)
            if asked is None:
                return {}
            similarity = java_class('org.apache.lucene.search.similarities.BM25Similarity')
            searcher = java_class('org.apache.lucene.search.IndexSearcher')(self._java.reader)
            searcher.setSimilarity(similarity(float(self.settings.k1), float(self.settings.b)))
            word_of = {} if self._document_queries else self._words_of_terms(query)
            for docid in docids:
                number = queries.number_of(docid)
                if number < 0:
                    continue
                weights = []
                for term, weight in _term_weights(calling(searcher.explain, asked, number)):
                    weights.append(WordWeight(word_of.get(term, term), weight))
                if weights:
                    found[docid] = sorted(weights, key=lambda own: -own.weight)
        return found

    def _explained_query(self, query: str) -> Any:
        """Lucene's query of a question, or of a document; None for one without terms."""
        if self._document_queries is not None:
            return self._document_query(self._document_queries, query)
        return self._lucene_query(self._form_of(query))

    def _words_of_terms(self, query: str) -> dict[str, str]:
        """The first word of a question that gives each term."""
        from pyserini_repbert.lucene.analysis import analyzer_of

        words: dict[str, str] = {}
        united = UnitedText(query)
        if self.word_forms is WordForms.UNITED:
            united = unite_with_places(query, self.language)
        for token in analyzer_of(self.language).tokens(united.form):
            start, end = united.written_span(token.start, token.end)
            words.setdefault(token.term, query[start:end])
        return words

    def _hits_of_query(self, query: Any, k: int, besides: Any = None) -> Ranking:
        """The hits of Lucene's query, among the documents of `among`.

        `besides` is a query whose hits are left out.
        """
        occur = java_class('org.apache.lucene.search.BooleanClause$Occur')
        builder = java_class('org.apache.lucene.search.BooleanQuery$Builder')()
        builder.add(query, occur.MUST)
        if self._filter is not None:
            builder.add(self._filter, occur.FILTER)
        if besides is not None:
            builder.add(besides, occur.MUST_NOT)
        return _ranking(calling(self._java.search, builder.build(), k)).with_background(NO_WORD)

    def _hits(self, topics: Sequence[Query], k: int) -> Run:
        """The hits of the topics that have terms in the index's language, and not too many."""
        queries = self._document_queries
        if queries is not None and k:
            return {topic.qid: self._hits_like(queries, topic.text, k) for topic in topics}
        asked = []
        backgrounds = {}
        for topic in topics:
            if k and 0 < self._n_words(topic.text) <= MAX_WORDS:
                asked.append(topic)
                backgrounds[topic.qid] = self._background(topic.text)
        run = self._hits_of_words(asked, k)
        return {qid: hits.with_background(backgrounds[qid]) for qid, hits in run.items()}

    def _hits_of_words(self, topics: Sequence[Query], k: int) -> Run:
        """The hits of topics that have terms."""
        if self._filter is not None:
            return {topic.qid: self._filtered_hits(topic, k) for topic in topics}
        if len(topics) == 1:
            topic = topics[0]
            if self.word_share == 1:
                hits = calling(self._java.search, *self._generators, topic.text, k)
            else:
                hits = calling(self._java.search_fields, topic.text, self._weighted_field, k)
            return {topic.qid: _ranking(hits)}
        run: Run = {}
        step = max(self.threads, HITS_AT_ONCE // max(k, 1))
        for start in range(0, len(topics), step):
            run |= self._batch_hits(topics[start : start + step], k)
        return run

    @property
    def _generators(self) -> tuple[Any, ...]:
        """What makes queries of questions, as an argument of Anserini; empty for its default."""
        return () if self._generator is None else (self._generator,)

    def _batch_hits(self, topics: Sequence[Query], k: int) -> Run:
        """The hits of topics that Lucene searches at once."""
        texts = java_list(topic.text for topic in topics)
        qids = java_list(topic.qid for topic in topics)
        if self.word_share == 1:
            hits = calling(self._java.batch_search, *self._generators, texts, qids, k, self.threads)
        else:
            search = self._java.batch_search_fields
            hits = calling(search, texts, qids, k, self.threads, self._weighted_field)
        run: Run = {}
        for qid, own in calling(self._open_index.hits_reader.read, hits).items():
            docids = [hit['docid'] for hit in own]
            # JSON has the digits that tell float32 from its neighbours.
            scores = np.array([hit['score'] for hit in own], np.float32).tolist()
            run[qid] = by_score(docids, scores)
        return run

    def _n_words(self, query: str) -> int:
        """How many different words the analyzer leaves; it drops stopwords and punctuation."""
        return len(set(self._words(query)))

    def _words(self, query: str) -> Sequence[str]:
        """The words that the analyzer leaves. They are kept for the last queries."""
        if not query.strip():
            return ()
        last_queries = self._open_index.words
        words = last_queries.get(query)
        if words is None:
            with java_calls():
                form = self._form_of(query)
                words = tuple(self._analyze(self._analyzer, form).toArray())
            if len(words) > _FEW_CLAUSES:
                lift_clause_limit()
            if len(words) <= _FEW_WORDS:
                _keep(last_queries, query, words, most=_LAST_QUERIES)
        return words

    def greatest_score(self, query: str) -> float:
        """More than BM25 gives any document: the sum of the weights (idf) of a query's words."""
        weights = self._counted_weights(self._searched_text(query))
        return sum(counts * weight for weight, counts in weights)

    def _background(self, text: str) -> Background:
        """The background of a searched text's words.

        A word of weight w is in a document by chance with a probability of exp(-w), and adds
        w / (1 + k1) to the score of one of usual length. The best score by chance is some
        deviations above the mean, but not above that of all words together.
        """
        if self.settings.model != 'bm25' or self.settings != self._bag_of_words:
            return NO_WORD
        mean = 0.0
        variance = 0.0
        greatest = 0.0
        for weight, counts in self._counted_weights(text):
            score = counts * weight / (1 + self.settings.k1)
            probability = math.exp(-weight)
            mean += probability * score
            variance += probability * (1 - probability) * score**2
            greatest += score
        return Background(0.0, min(mean + _DEVIATIONS * math.sqrt(variance), greatest))

    def _counted_weights(self, text: str) -> Iterator[tuple[float, float]]:
        """The weight (idf) of each word of a searched text, and how much the word counts."""
        known = self._open_index.weights
        for word, times in Counter(self._words(text)).items():
            weight = known.get(word)
            if weight is None:
                weight = self._weight(word)
                _keep(known, word, weight, most=_KEPT_WEIGHTS)
            yield weight, times * self.word_share

    def _weight(self, word: str) -> float:
        """The weight (idf) of an analyzed word."""
        index = self._open_index
        with java_calls():
            documents = int(index.reader.docFreq(index.term_class('contents', word)))
        return math.log(1 + (self.size - documents + 0.5) / (documents + 0.5))

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """The stored passages in the order of `docids`; None for a docid that the index lacks.

        Raises MismatchError when the index stores no text at all.
        """
        with java_calls():
            distinct = java_list(dict.fromkeys(docids))
            stored = calling(self._java.batch_get_docs, distinct, self.threads)
            texts: dict[str, str | None] = {}
            for entry in stored.entrySet().toArray():
                texts[str(entry.getKey())] = _stored_text(entry.getValue())
        if texts and all(text is None for text in texts.values()):
            raise MismatchError(
                f'index {self.index} stores no passages: build it with raw text, or give a corpus'
            )
        return [texts.get(docid) for docid in docids]

    def raws(self, docids: Sequence[str]) -> list[str | None]:
        """The raw documents as given to Lucene, in the order of `docids`.

        None for a docid that the index lacks.
        """
        with java_calls():
            # For few docids, this is faster than a thread pool.
            return [calling(self._java.doc_raw, docid) for docid in docids]

    def passages(self) -> Iterator[tuple[str, str | None]]:
        """(docid, stored passage or None) of the whole index, in Lucene's order."""
        for number in range(self.size):
            with java_calls():
                document = calling(self._java.doc, number)
                passage = str(document.get('id')), _stored_text(document)
            yield passage

    def close(self) -> None:
        """Close the index; later calls raise InputError."""
        if not isinstance(self._java, _Closed):
            with java_calls():
                self._java.close()
            self._open_index.close(self.index)

    @property
    def _java(self) -> Any:
        return self._open_index.java


@dataclass
class _OpenIndex:
    """Anserini's searcher, which copies of a searcher share: closing one closes all."""

    java: Any
    settings: SparseSettings | None = None  # those that it has been told
    words: dict[str, Sequence[str]] = field(default_factory=dict)  # of the last queries
    weights: dict[str, float] = field(default_factory=dict)  # idf, of words that were asked
    weighted_fields: dict[float, Any] = field(default_factory=dict)  # by the weight
    byte_lists: ByteLists = field(default_factory=ByteLists)
    hits_reader: HitsReader = field(default_factory=HitsReader)

    @cached_property
    def reader(self) -> Any:
        """Lucene's, kept: asking Java for it takes as long as counting a word's documents."""
        return self.java.reader

    def weighted_field(self, share: float) -> Any:
        """The searched field with a weight, as Java's map."""
        if share not in self.weighted_fields:
            # pyjnius reads the methods of this class in a third of the time that HashMap takes.
            self.weighted_fields[share] = java_class('java.util.Map').of('contents', share)
        return self.weighted_fields[share]

    @cached_property
    def term_class(self) -> Any:
        """Lucene's `Term`."""
        return java_class('org.apache.lucene.index.Term')

    def close(self, folder: Path) -> None:
        """Let every later call raise InputError."""
        self.java = _Closed(folder)
        vars(self).pop('reader', None)


class _Closed:
    """Replaces Anserini's searcher, which after closing returns no texts and raises no error."""

    def __init__(self, index: Path) -> None:
        self._index = index

    def __getattr__(self, name: str) -> Any:
        raise InputError(f'Lucene index {self._index} was closed: open it again')


def index_folder(index: StrPath, download: bool = False) -> Path:
    """The folder of a Lucene index, from its path or a prebuilt index's name.

    Raises the searcher's errors.
    """
    folder = Path(index)
    # One look: a second one may see a folder that is made meanwhile.
    mode = _mode_of(folder)
    if mode is not None and stat.S_ISDIR(mode):
        if not any(folder.glob('segments_*')):
            raise InputError(
                f'folder {folder} holds no Lucene index: build one with `index lucene`'
            )
        return folder
    if mode is not None:
        raise InputError(f'{folder} is a file, the folder of a Lucene index was expected')
    if folder.name != str(index):
        raise InputError(f'there is no folder {folder}: check the path of the Lucene index')
    from pyserini_repbert.lucene.pyserini_names import prebuilt_index

    return prebuilt_index(str(index), download)


def _mode_of(path: Path) -> int | None:
    """What a path is, as `os.stat` says it; None if nothing is."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


def _keep(known: dict[str, _Value], key: str, value: _Value, most: int) -> None:
    """Keep a value in a dictionary of at most so many, which begins again when it is full."""
    if len(known) >= most:
        known.clear()
    known[key] = value


def _sdm_generator(sdm: Sdm | bool) -> Any:
    """What makes queries of the sequential dependence model; None without it."""
    if not sdm:
        return None
    weights = sdm if isinstance(sdm, Sdm) else Sdm()
    generator = java_class('io.anserini.search.query.SdmQueryGenerator')
    return generator(float(weights.terms), float(weights.ordered), float(weights.unordered))


def _ranking(hits: Any) -> Ranking:
    all_hits = list(hits)
    return by_score([hit.docid for hit in all_hits], [hit.score for hit in all_hits])


def _term_weights(explained: Any) -> list[WordWeight]:
    """The query's terms that a document has, with what each adds, from Lucene's explanation."""
    if not explained.isMatch():
        return []
    named = _TERM_EXPLAINED.match(explained.getDescription())
    if named:
        return [WordWeight(named.group(1), float(explained.getValue().floatValue()))]
    weights = []
    for part in explained.getDetails():
        weights += _term_weights(part)
    return weights


def _stored_text(document: Any) -> str | None:
    """A document's passage.

    It is `passage`, `contents` or `text` of its raw JSON, otherwise stored contents, otherwise raw
    text.
    """
    raw = document.get('raw')
    if raw is not None and raw.lstrip().startswith('{'):
        text = _text_of_json(raw)
        if text is not None:
            return text
    contents = document.get('contents')
    stored = raw if contents is None else contents
    return None if stored is None else str(stored)


def _text_of_json(raw: str) -> str | None:
    try:
        record = json.loads(raw)
    except ValueError:
        return None
    for name in (PASSAGE_FIELD, 'contents', 'text'):
        text = record.get(name)
        if isinstance(text, str):
            return text
    return None
