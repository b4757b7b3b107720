"""First stages (RepBERT, Lucene's sparse techniques, several fused), and the passages' text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyserini_repbert.data.passages import PassageTexts
from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import open_by_extension
from pyserini_repbert.fusion.methods import FusionMethod
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.indexes.kind import kind_of
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.indexes.texts import texts_opener
from pyserini_repbert.interop.pyterrier.frames import (
    check_queries,
    excerpt_columns,
    hits_frame,
    pd,
    pt,
    rank_columns,
)
from pyserini_repbert.interop.pyterrier.parameters import Configured
from pyserini_repbert.pipeline.opening import join_rankers, open_searcher
from pyserini_repbert.pipeline.pipeline import Pipeline
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Candidate, Query, Ranker, Ranking
from pyserini_repbert.search.hybrid import as_ranker
from pyserini_repbert.trace import Notes

HITS = 1000  # of a query, as PyTerrier's own retrievers give


class Retriever(Configured):
    """Any first stage: a query frame in, its hits out, all queries searched together.

    Columns of the query frame stay; 'docno', 'score' and 'rank' are added. A query without hits has
    no rows. Hits of a collection are documents, which also have the passage that decided in 'text',
    'passage' (its number), 'start' and 'end' (its characters).

    Parameters
    ----------
    ranker : an open searcher, ours or Pyserini's, or the folder of a collection, the name of a
        sparse technique, a Lucene index or a class (`MODULE:CLASS@INDEX`)
    num_results : hits of a query
    filter : of a collection: search within the documents that match, in Lucene's syntax
    """

    _ranker: Ranker  # a fusion does not have one

    def __init__(self, ranker: Any, num_results: int = HITS, filter: str | None = None) -> None:
        if isinstance(ranker, (str, Path)):
            name = str(ranker)
            spec = PipelineSpec(sparse=(name,), filter=filter)
            if kind_of(name).finds_passages:
                spec = PipelineSpec(index=name, filter=filter)
            ranker = open_searcher(spec)
        elif filter is not None:
            ranker = search_within(ranker, filter)
        self._ranker = as_ranker(ranker)
        self.filter = filter
        self.num_results = num_results

    @property
    def ranker(self) -> Ranker:
        """The open searcher."""
        return self._ranker

    @property
    def ranked_by(self) -> tuple[str, ...]:
        """Names of the parts of a fusion, for columns 'rank_NAME'."""
        return ()

    @property
    def name(self) -> str:
        """Its name in a fusion: the encoder's, the sparse technique's or the index's."""
        return self.ranker.label

    def transform(self, inp: Any) -> Any:
        """The hits of each query, by (-score, docno).

        A row without a query, or a qid with two, is refused.
        """
        pt.validate.query_frame(inp, extra_columns=['query'])
        check_queries(inp, ['qid', 'query'])
        topics = [Query(str(number), str(query)) for number, query in enumerate(inp['query'])]
        notes = Notes()
        ranker = self.ranker
        ranked_by = self.ranked_by
        rankings = []
        parts = []
        if topics:
            run = ranker.rank(topics, None, self.num_results, notes)
            rankings = list(run.values())
            parts = [notes.parts[name] for name in ranked_by]
        inputs = []
        for topic in topics:
            inputs.append([part.run[topic.qid] for part in parts])
        columns = rank_columns(ranked_by, inputs, rankings)
        if ranker.has_excerpts:
            hits: list[Candidate] = []
            for topic, ranking in zip(topics, rankings, strict=True):
                hits += with_excerpts(ranker, topic, ranking, notes)
            columns |= excerpt_columns(hits)
        return hits_frame(inp, rankings, columns)

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """Passage texts, one for each docid, None if the index stores none."""
        return self.ranker.texts(docids)

    def fuse_rank_cutoff(self, k: int) -> Any:
        """This retriever with at most k hits, for PyTerrier's compiler.

        A fused retriever fuses as deeply as before, so that scores and ranks do not change.
        """
        if k >= self.num_results:
            return self
        return self._copied_with('num_results', k)


def search_within(ranker: Any, filter: str) -> Ranker:
    """The open search of a collection, or one of its rankings, among the documents that a filter
    lets through.

    Raises InputError for another ranker, and for a filter that cannot be read.
    """
    if not hasattr(ranker, 'within'):
        name = getattr(ranker, 'name', type(ranker).__name__)
        raise InputError(
            f"filter is for a collection, and '{name}' is not a collection: leave it out"
        )
    within: Ranker = ranker.within(open_by_extension('filter', filter))
    return within


def with_excerpts(ranker: Ranker, topic: Query, ranking: Ranking, notes: Notes) -> Ranking:
    """Documents with the passages that decided.

    Parameters
    ----------
    ranker : a collection's, or a pipeline of one
    topic, ranking : a query and its hits
    notes : what the ranker reported
    """
    if isinstance(ranker, Pipeline):
        return ranker.with_decisive_texts(topic, ranking, notes)
    return ranker.with_stored_texts(topic.text, ranking)


class RepBertRetriever(Retriever):
    """RepBERT: the passages with the greatest inner product.

    Parameters
    ----------
    index : folder or catalog name of an index, or of a collection, whose documents are ranked by
        their passages; `Retriever` takes an open searcher
    encoder : catalog name or checkpoint folder; default: the one that the index was built with
    device : where queries are encoded and vectors multiplied
    threads : CPU threads; 1 leaves PyTorch's own setting
    filter : of a collection: search within the documents that match, in Lucene's syntax
    """

    def __init__(
        self,
        index: str | Path,
        encoder: str | Path | None = None,
        num_results: int = HITS,
        device: str = 'cpu',
        threads: int = 1,
        filter: str | None = None,
    ) -> None:
        self.index = index
        self.encoder = encoder
        self.filter = filter
        self.device = device
        self.num_results = num_results
        self.threads = threads
        checkpoint = None if encoder is None else str(encoder)
        spec = PipelineSpec(index=str(index), encoder=checkpoint, filter=filter)
        if 'rankings' in kind_of(str(index)).takes:
            spec = spec.model_copy(update={'rankings': ('dense',)})
        searcher = open_searcher(spec, Machine(devices=(device,)))
        self._ranker = searcher.with_settings(name=Path(searcher.name).name, threads=threads)


class LuceneRetriever(Retriever):
    """Sparse search in a Lucene index: BM25, query likelihood, RM3, SDM, or EPIC's impacts.

    Starts a Java virtual machine with Anserini's jars; a process has only one, so Terrier's own
    retrievers need another process.

    Parameters
    ----------
    spec : 'TECHNIQUE' ('bm25', 'bm25+rm3', …), 'TECHNIQUE@INDEX', or the folder of a Lucene index
    index : a Lucene index for the technique
    download, device : as in `pipeline.spec.Machine`
    threads : queries that Lucene answers at a time
    language : of an index that does not say its own: 'de', for its analyzer; None: 'en'
    """

    def __init__(
        self,
        spec: str | Path,
        index: str | Path | None = None,
        num_results: int = HITS,
        threads: int = 1,
        download: bool = False,
        device: str = 'cpu',
        language: str | None = None,
    ) -> None:
        self.spec = spec
        self.index = index
        self.download = download
        self.device = device
        self.num_results = num_results
        self.threads = threads
        self.language = language
        name = Path(str(spec).partition('@')[0]).name
        technique = str(spec) if index is None else f'{spec}@{index}'
        named = PipelineSpec(sparse=(technique,), language=language)
        searcher = open_searcher(named, Machine(devices=(device,), download=download))
        self._ranker = searcher.with_settings(name=name, threads=threads)


class HybridRetriever(Retriever):
    """Several retrievers run at the same time, their rankings fused: queries are encoded while
    Lucene searches. If a parameter of a retriever is set, the next search uses it.

    Parameters
    ----------
    retrievers : of RepBERT or Lucene, in the order of fusion
    method, alpha, rrf_k : as in `fusion.fuse`, None for its defaults
    depth : hits of each retriever that are fused; default: `num_results`, at least 1000 unless
        method is 'interleave'
    provenance : a column 'rank_NAME' for each retriever: the hit's rank there, from 0; missing if
        it lacks the hit
    """

    def __init__(
        self,
        retrievers: Sequence[Retriever],
        method: FusionMethod | str = FusionMethod.INTERLEAVE,
        num_results: int = HITS,
        alpha: float | None = None,
        rrf_k: float | None = None,
        depth: int | None = None,
        provenance: bool = False,
        threads: int = 1,
    ) -> None:
        self.method = FusionMethod(method)
        self.retrievers = tuple(retrievers)
        self.num_results = num_results
        self.alpha = alpha
        self.rrf_k = rrf_k
        self.threads = threads
        self.depth = depth or FusionSettings(method).depth_for(num_results)
        self.provenance = provenance
        self._spec = PipelineSpec.of(
            {'fusion': str(self.method), 'alpha': alpha, 'rrf_k': rrf_k, 'depth': self.depth}
        )
        # What cannot be fused is refused at once.
        self._named_parts()
        self._fused()

    @property
    def ranker(self) -> Ranker:
        """The fusion of what the retrievers search now."""
        return self._fused()

    @property
    def ranked_by(self) -> tuple[str, ...]:
        """Names of the retrievers, with `provenance`. Raises InputError if two are the same."""
        return self._named_parts()

    def _fused(self) -> Ranker:
        rankers = [retriever.ranker for retriever in self.retrievers]
        fusion: Any = join_rankers(self._spec, rankers).first
        ranker: Ranker = fusion.with_settings(threads=self.threads)
        return ranker

    def _named_parts(self) -> tuple[str, ...]:
        if not self.provenance:
            return ()
        names = tuple(retriever.name for retriever in self.retrievers)
        if len(set(names)) < len(names):
            raise InputError(
                f'retrievers are called {", ".join(names)}: their ranks need names that differ'
            )
        return names


class PassageText(Configured):
    """Adds the column 'text' by 'docno', None for a docno that the index or corpus lacks.

    Parameters
    ----------
    index : a dense or EPIC bundle with text, a Lucene index, the name of one, or a retriever of
        this package
    corpus : instead of an index: a file, a folder, ir_datasets:ID, or a collection of the catalog;
        read once for each frame
    corpus_format, fields, download : as in `indexes.texts.texts_opener`
    """

    def __init__(
        self,
        index: str | Path | PassageTexts | None = None,
        corpus: str | Path | None = None,
        corpus_format: str = 'auto',
        fields: Sequence[str] = (),
        download: bool = False,
    ) -> None:
        self.index = index
        self.corpus = corpus
        self.download = download
        self.corpus_format = corpus_format
        self.fields = tuple(fields)
        if index is None or isinstance(index, (str, Path)) or corpus is not None:
            self._open: Callable[[list[str]], PassageTexts] = texts_opener(
                str(corpus) if corpus else None,
                str(index) if index else None,
                corpus_format,
                fields,
                download,
            )
        else:
            self._open = lambda _: index

    def transform(self, inp: Any) -> Any:
        """The frame with 'text'. Raises InputValidationError for a frame without 'docno'."""
        pt.validate.columns(inp, includes=['docno'])
        docids = list(map(str, inp['docno']))
        distinct = list(dict.fromkeys(docids))
        text_of: dict[str, str | None] = {}
        if distinct:
            text_of = dict(zip(distinct, self._open(distinct).texts(distinct), strict=True))
        texts = [text_of[docid] for docid in docids]
        return inp.assign(text=pd.Series(texts, index=inp.index, dtype=object))
