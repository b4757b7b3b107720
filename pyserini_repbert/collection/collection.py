"""A collection of documents that change: one folder with all rankings of them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.generation import Generation, open_generation, read_known
from pyserini_repbert.collection.identity import KnownCollection
from pyserini_repbert.collection.model_options import check_options, names_model
from pyserini_repbert.collection.settings import (
    Defaults,
    EncoderSource,
    TextEmbedding,
    WantedSettings,
)
from pyserini_repbert.collection.shards import PassageShard
from pyserini_repbert.collection.source_files import open_file_records
from pyserini_repbert.collection.syncing import (
    Changes,
    add_documents,
    delete_documents,
    delete_source,
    sync_documents,
)
from pyserini_repbert.collection.writing import Writer
from pyserini_repbert.data.passages import BadFiles, Corpus, corpus_of
from pyserini_repbert.data.readings import Reading
from pyserini_repbert.errors import InputError, PyseriniRepbertError
from pyserini_repbert.extension import loaded
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.manifest import is_collection
from pyserini_repbert.models.precision import Precision
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.record import Model
from pyserini_repbert.search.aggregation import PassageAggregation

if TYPE_CHECKING:
    from pyserini_repbert.collection.opened_searches import OpenedSearches, OwnSearch
    from pyserini_repbert.collection.searching import CollectionSearcher
    from pyserini_repbert.encode.text_encoder import TextDocumentEncoder
    from pyserini_repbert.rerank.base import Reranker
    from pyserini_repbert.search.dense import QueryEncoder

logger = logging.getLogger(__name__)

# Modules of search import PyTorch, which writing needs only to encode.


class Collection:
    """Documents with everything that ranks them, in one folder that is kept up to date.

    Open it with `Collection.open`, as a context or until `close`:

        with Collection.open('mine', encoder='minilm') as collection:
            collection.sync([{'id': 'a', 'text': 'Slugs avoid copper.', 'title': 'Slugs'}])
            print(collection.search('keep snails off salad'))

    A reader sees one generation, `generation`, which does not change while others write. After this
    object has written, its generation is the new one. `refresh` takes the newest generation of
    another writer. An object that has read or written a collection keeps to it. If the folder has
    since been removed, or replaced by another collection or an earlier state, searching, refreshing
    and writing raise LostCollectionError. Open the folder again then.

    Attributes
    ----------
    folder : where the collection is
    source : its encoders, opened when they are needed
    expected : the collection that the folder must hold; None: any; if there is none, a new one is
        created
    """

    def __init__(
        self,
        folder: StrPath,
        source: EncoderSource,
        wanted: WantedSettings,
    ) -> None:
        self.folder = Path(folder)
        self.source = source
        self._wanted = wanted
        self.expected: KnownCollection | None = None
        self._generation: Generation | None = None

    @classmethod
    def open(
        cls,
        folder: StrPath,
        encoder: str | os.PathLike[str] | TextDocumentEncoder | None = None,
        *,
        device: str = 'cpu',
        precision: Precision | str | None = None,
        batch_tokens: int | None = None,
        truncate_dim: int | None = None,
        passage_tokens: int | None = None,
        overlap: int | None = None,
        language: str | None = None,
        sparse: Any = None,
        dtype: str | None = None,
        embedding: TextEmbedding | None = None,
        **further: Any,
    ) -> Self:
        """Open a collection, or name a new one: its folder is made when it is first written.

        Settings are needed once. They are stored, and None means what is stored.

        Parameters
        ----------
        folder : of the collection
        encoder : a catalog name, a checkpoint folder, or a document encoder; default: 'minilm',
            or 'e5-small' for documents that 'minilm' does not know, where it is installed
        device : where the encoder runs: 'cpu', 'cuda', 'mps'
        precision : that the encoder runs in; default: 'float32'
        batch_tokens : padded tokens that the encoder reads together; default: by device
        truncate_dim : keep the first values of each vector, so many (Matryoshka); default: all
        passage_tokens : wordpieces of a passage; default: 200
        overlap : wordpieces of a passage that the next one repeats; default: a fifth of a
            passage
        language : of the documents, for Lucene's analyzer: 'en', 'de', …; default: the language of
            the first documents, if it has an analyzer and is clear, otherwise 'en'
        sparse : 'bm25'; 'none' for a collection without Lucene; or, instead of BM25, a learned
            sparse model: a `SparseEncoder` folder, an EPIC checkpoint's folder or catalog name, or
            an opened encoder of term weights; default: 'bm25'
        dtype : in which vectors are stored: 'float32', 'float16' or 'int8'; default: 'float32'
        embedding : encodes passages in the encoder's place, as
            `pipeline.ray_texts.ClusterEmbedding` does; default: the encoder itself
        further : models whose output extensions store beside dense vectors, such as
            `multi_vector`, a late-interaction model: a `MultiVectorEncoder` folder, or an opened
            encoder; or 'none'; default: 'none'

        Raises InputError for a model that no extension stores.
        """
        named_encoder = os.fspath(encoder) if isinstance(encoder, os.PathLike) else encoder
        models = {
            option: _without_path(model) for option, model in {'sparse': sparse, **further}.items()
        }
        check_options(models)
        names = {}
        for option, model in models.items():
            if model is not None:
                names[option] = model if isinstance(model, str) else str(model.name)
        source = EncoderSource(
            named_encoder,
            device,
            precision,
            batch_tokens,
            truncate_dim,
            {option: model for option, model in models.items() if names_model(option, model)},
            embedding,
        )
        wanted = WantedSettings(
            passage_tokens=passage_tokens,
            overlap=overlap,
            language=language,
            dtype=dtype,
            models=names,
        )
        return cls(folder, source, wanted)

    def sync(
        self,
        documents: StrPath | Iterable[Any],
        source: str | None = None,
        *,
        prefix: str | None = None,
        url_prefix: str | None = None,
        corpus_name: StrPath | None = None,
        delete_most: bool = False,
        merge: bool = False,
        rebuild: bool = False,
        strict: bool = False,
        checksum: bool = False,
        on_progress: Callable[[int], object] = int,
        on_encoded: Callable[[Sequence[str]], object] = len,
    ) -> Changes:
        """Bring the collection up to date with all documents of a source.

        New documents are added, and changed documents replaced. Documents that the source no longer
        has are deleted. Documents of other sources stay. Only new passages are encoded.

        A document belongs to one source. A prefix keeps the documents of two sources apart that
        have the same docids. How the files of a source are read is stored with it, and so is that
        only the main content of pages is read. Files that are not read are `Changes.unread`. If any
        part of a file cannot be read, the file is skipped and its documents do not change. A file
        of a folder is not opened if its size and its times are as before.

        Parameters
        ----------
        documents : a file or folder, or any name of a corpus; or documents themselves: mappings
            with `id`, `text`, an optional `title`, and fields; pairs of a docid and a text; a
            DataFrame; a `Corpus`
        source : what the source is called; default: the path without links, or 'python'
        prefix : the beginning of the docids of the source's documents, such as 'notes/'; it is
            stored; default: the stored one, or none
        url_prefix : where the files of the source are shown, such as 'https://docs.example.org/',
            or an address with `{path}` and `{anchor}`; it is stored, and hits have the address as
            `url`; '' removes it; default: the stored one, or addresses of `file:`
        corpus_name : the path or name of a `Corpus` that is open; default: its name
        delete_most : also delete more than half of the source's documents
        merge : merge Lucene's segments, so that BM25 scores as in a new index
        rebuild : let the settings of `open` and the prefix replace those stored, and redo what
            depends on them
        strict : raise InputError for the first file of a folder that cannot be read as a whole
        checksum : compare the content of each file, whatever its size and times say
        on_progress : called with the number of documents read since the last call
        on_encoded : called with the passages encoded since the last call, as the encoder reads them

        Raises InputError for documents that cannot be read, or a source that has lost most of them;
        SourceConflictError for a docid that belongs to another source; MismatchError for settings
        that differ from those stored; BusyError while another process writes. Nothing is changed
        then.
        """
        corpus = open_documents(documents)
        named = documents if corpus_name is None else corpus_name
        defaults = self._defaults_for(corpus)
        with self.open_writer(rebuild, defaults=defaults) as writer:
            writer.encoder.on_encoded = on_encoded
            known = writer.sources.of_documents(named, source)
            before = known.reading
            if rebuild:
                before = Reading(main_content=before.main_content, title_column=before.title_column)
            corpus = corpus.as_stored(before)
            known = replace(known, reading=corpus.reading)
            known = writer.sources.linked(known, url_prefix)
            known = writer.sources.prefixed(known, prefix, replaces=rebuild)
            files = _whole_files(corpus, strict)
            writer.file_records = open_file_records(
                writer.connection, known, checksum=checksum, reads_all=rebuild
            )
            files.records = writer.file_records
            changes = sync_documents(
                writer,
                files,
                known,
                delete_most=delete_most,
                merge=merge,
                on_progress=on_progress,
            )
        self.read_written(changes.is_published)
        return changes

    def add(
        self,
        documents: StrPath | Iterable[Any],
        *,
        merge: bool = False,
        strict: bool = False,
        on_progress: Callable[[int], object] = int,
    ) -> Changes:
        """Add documents. Added ones of the same docids are replaced; nothing is deleted.

        Parameters
        ----------
        documents : a file, a folder, a name of a corpus, or documents themselves, as in `sync`
        merge : merge Lucene's segments, so that BM25 scores as in a new index
        strict : raise InputError for the first file of a folder that cannot be read as a whole
        on_progress : called with the number of documents read since the last call

        Raises InputError for documents that cannot be read; SourceConflictError for a docid of a
        source that is synced; MismatchError for settings that differ from those stored; BusyError
        while another process writes. Nothing is changed then.
        """
        corpus = _whole_files(open_documents(documents), strict)
        with self.open_writer(defaults=self._defaults_for(corpus)) as writer:
            changes = add_documents(writer, corpus, merge=merge, on_progress=on_progress)
        self.read_written(changes.is_published)
        return changes

    def delete(self, docids: str | Iterable[str], *, merge: bool = False) -> Changes:
        """Delete documents of any source; documents that are deleted already are passed over.

        Raises InputError for a docid that the collection never had; nothing is deleted then.
        """
        self.check_exists()
        names = [docids] if isinstance(docids, str) else docids
        with self.open_writer() as writer:
            changes = delete_documents(writer, names, merge=merge)
        self.read_written(changes.is_published)
        return changes

    def delete_source(self, source: StrPath, *, merge: bool = False) -> Changes:
        """Delete a source with all its documents; a later sync of its files adds them again.

        The corpus itself stays as it is. Everything stored about the source is deleted, such as its
        prefix and its addresses.

        Parameters
        ----------
        source : its name, or a path to its file or folder
        merge : merge Lucene's segments, so that BM25 scores as in a new index

        Raises InputError, which lists the sources, for one that the collection does not have;
        BusyError while another process writes. Nothing is deleted then.
        """
        self.check_exists()
        with self.open_writer() as writer:
            known = writer.sources.known(os.fspath(source))
            changes = delete_source(writer, known, merge=merge)
        self.read_written(changes.is_published)
        return changes

    def compact(self) -> Changes:
        """Remove deleted documents from all files, which frees their disk space.

        Nothing is encoded. Lucene's segments are merged. This removes what extensions keep and a
        search does not need: a trial, and the shards from before a switch to one.
        """
        self.check_exists()
        with self.open_writer() as writer:
            for part in loaded('in_collections'):
                part.before_compacting(self.folder)
            manifest = writer.finish(merge=True, compact=True)
            changes = Changes(
                added=0,
                changed=0,
                deleted=0,
                unchanged=manifest.documents,
                encoded=0,
                generation=manifest.number,
                is_published=writer.has_published,
            )
        self.read_written(changes.is_published)
        return changes

    def search(
        self,
        query: Any,
        k: int = 10,
        filter: str | None = None,
        rankings: Sequence[str] = (),
        hits: int | None = None,
        **of_extensions: Any,
    ) -> Any:
        """The k best documents for a question, as candidates with their best passages.

        Parameters
        ----------
        query : the question
        k : how many
        filter : search within the documents that match, in Lucene's syntax (`collection.filters`)
        rankings : those that are fused, as `searcher` takes them, instead of the collection's own
            search and its rerankers
        hits : another name of k, as commands and HTTP have it
        of_extensions : what extensions say of the hits of a question, as `confidence=True` says the
            `probability` of each

        The collection is searched as it learned from judgments, or as it was set, if that is in
        use; a reranker that is set reads the best documents. What extensions say of the question
        are attributes of the list.

        For a DataFrame with the columns `qid` and `query`, a DataFrame with the columns `qid`,
        `docid`, `rank`, `score`, `text`, `passage`, `start` and `end`: the best passage, its number
        in the document, and the characters at which it begins and ends.

        Raises InputError for a question without text, for a filter that cannot be read or names a
        field that no document has, for an argument that no extension takes, and if an extension
        cannot give what is asked for.
        """
        k = k if hits is None else hits
        if rankings:
            with closing(self.searcher(rankings=rankings)) as named:
                searcher = named.within(DocumentFilter(filter))
                return self._answer(searcher, {}, query, k, of_extensions)
        own = self._own_search()
        searcher = own.searcher.within(DocumentFilter(filter))
        rerankers = self._searches.rerankers(own.learned)
        return self._answer(searcher, rerankers, query, k, of_extensions)

    def _answer(
        self,
        searcher: CollectionSearcher,
        rerankers: Mapping[str, Reranker],
        query: Any,
        k: int,
        of_extensions: Mapping[str, Any],
    ) -> Any:
        """What `search` returns.

        Parameters
        ----------
        searcher : open
        rerankers : behind it, by their stages
        query, k, of_extensions : as in `search`
        """
        from pyserini_repbert.collection.answers import answer_frame, answer_question

        if of_extensions:
            from pyserini_repbert.search.with_arguments import search_of_arguments

            search = search_of_arguments(searcher, of_extensions, rerankers=rerankers)
            if isinstance(query, str) and search is not None:
                return search(query, k)
        answer = answer_question if isinstance(query, str) else answer_frame
        return answer(searcher, list(rerankers.values()), query, k)

    def more_like(
        self, docid: str, k: int = 10, filter: str | None = None, hits: int | None = None
    ) -> list[Candidate]:
        """The k documents that are most like one of the collection, with their nearest passages.

        Parameters
        ----------
        docid : of the document, which is not among the hits; it need not match the filter
        k, filter : as in `search`
        hits : another name of k

        Raises MissingResourceError for an unknown docid, and InputError for a filter that
        cannot be read or names a field that no document has.
        """
        k = k if hits is None else hits
        searcher = self._own_search().searcher
        return searcher.within(DocumentFilter(filter)).more_like(docid, k)

    def _own_search(self) -> OwnSearch:
        """The search of the generation that this object reads, as the collection learned."""
        self.check_folder()
        return self._searches.own(self.generation)

    @cached_property
    def _searches(self) -> OpenedSearches:
        # What only writes imports no search.
        from pyserini_repbert.collection.opened_searches import OpenedSearches

        return OpenedSearches(self.source)

    def searcher(
        self,
        rankings: Sequence[str] = (),
        aggregate: PassageAggregation | str = PassageAggregation.MAX,
        query_encoder: QueryEncoder | None = None,
        **more: Any,
    ) -> CollectionSearcher:
        """A ranker of the newest generation, for pipelines and other projects; close it.

        Parameters
        ----------
        rankings : among 'dense', 'bm25', 'sparse' (term weights), 'multi' (token vectors) and
            'rescored', the ones that the collection has; default: 'rescored' with token vectors,
            otherwise all
        aggregate : how passages' scores become a document's score: 'max', 'first', 'mean', 'top3'
        query_encoder : default: opened by the name that the collection has
        more : attributes of `FusionSettings`, or `alpha`; default: `rankings.default_fusion`, which
            interpolates above the background, with 0.6 for the stronger of two rankings; and a scan
            by its name, such as `ann=True`, which finds passages by their vectors without exact
            search

        A searcher whose rankings and fusion are not named is as the collection learned from
        judgments, or as it was set, if that is in use. A reranker that is set is not part of it:
        `search` and `pipeline.open_pipeline` have it.

        Raises InputError for a folder that is not a collection, or that cannot be scanned so,
        MismatchError for another encoder.
        """
        from pyserini_repbert.collection.searching import SearchSettings
        from pyserini_repbert.search.scans import asked_scan, scans

        fusion = {name: value for name, value in more.items() if name not in scans()}
        scan = asked_scan({name: value for name, value in more.items() if name in scans()})
        asked = SearchSettings(rankings=rankings, aggregation=aggregate, scan=scan)
        self.check_folder()
        generation = open_generation(self.folder, self._opened_shards)
        try:
            return self._searches.open(generation, asked, fusion, query_encoder)
        except BaseException:
            generation.close()
            raise

    @property
    def generation(self) -> Generation:
        """The generation that this object reads.

        Raises InputError for a folder that is not a collection.
        """
        if self._generation is None:
            self._generation = open_generation(self.folder)
        return self._generation

    @property
    def models(self) -> tuple[Model, ...]:
        """The checkpoints that this object has encoded with; empty if it has opened none."""
        return self.source.models

    def refresh(self) -> bool:
        """Switch to the newest generation. Returns whether it has changed.

        The generation before is closed. Shards that both have stay open.
        """
        self.check_folder()
        before = self._generation
        newest = open_generation(self.folder, self._opened_shards)
        if before is not None and before.sha256 == newest.sha256:
            newest.close()
            return False
        self._close_searches()
        self._generation = newest
        if before is not None:
            before.close()
        return True

    def read_written(self, is_published: bool = True) -> None:
        """Read the newest generation; if this object has published it, tell extensions."""
        self.refresh()
        if not is_published:
            return
        for part in loaded('in_collections'):
            try:
                part.after_publication(self)
            except (PyseriniRepbertError, OSError) as error:
                number = self.generation.number
                logger.warning('generation %d of %s is published: %s', number, self.folder, error)

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self.generation)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the generation; the collection can be used again."""
        self._close_searches()
        if self._generation is not None:
            self._generation.close()
            self._generation = None

    @property
    def _opened_shards(self) -> dict[str, PassageShard]:
        """The shards of the generation that this object reads, which others share."""
        return {} if self._generation is None else self._generation.opened_shards

    def _close_searches(self) -> None:
        if '_searches' in vars(self):
            self._searches.close()

    def open_writer(
        self,
        rebuild: bool = False,
        spare: Sequence[Path] = (),
        defaults: Defaults | None = None,
    ) -> Writer:
        """What writes the collection, by the settings of `open`; it holds the writer's lock.

        Parameters
        ----------
        rebuild, spare, defaults : as in `Writer`
        """
        return Writer(
            self.folder,
            source=self.source,
            wanted=self._wanted,
            rebuild=rebuild,
            expected=self._known(),
            spare=spare,
            defaults=defaults,
        )

    def _defaults_for(self, corpus: Corpus) -> Defaults | None:
        """What fits the documents of a new collection; None for one that is there."""
        if self._known() is not None or is_collection(self.folder):
            return None
        from pyserini_repbert.collection.defaults import defaults_for

        return defaults_for(
            _whole_files(corpus, strict=False),
            needs_encoder=self.source.name is None,
            needs_language=self._wanted.language is None,
        )

    def _known(self) -> KnownCollection | None:
        """The collection that the folder has to hold; None: any."""
        if self.expected is not None or self._generation is None:
            return self.expected
        return self._generation.known

    def check_folder(self) -> None:
        """Raises LostCollectionError if the folder is not what this object has opened."""
        known = self._known()
        if known is not None:
            known.check(read_known(self.folder))

    def check_exists(self) -> None:
        """Raises InputError for a folder that is not a collection: none is made."""
        if self._known() is None and not is_collection(self.folder):
            raise InputError(
                f'folder {self.folder} holds no collection: build one with `index sync`, or check '
                'the path'
            )


def _without_path(model: Any) -> Any:
    """A model as a user gives it, a path as text."""
    return os.fspath(model) if isinstance(model, os.PathLike) else model


def open_documents(documents: StrPath | Iterable[Any]) -> Corpus:
    """A corpus of what a user gives: a path or a name, or documents themselves."""
    if isinstance(documents, (str, os.PathLike)):
        return open_corpus(documents, keep_empty=True)
    return corpus_of(documents)


def _whole_files(corpus: Corpus, strict: bool) -> Corpus:
    """A corpus that reads each file of a folder as a whole, or not at all.

    With `strict`, a file that cannot be read is an InputError.
    """
    if corpus.by_file is None:
        return corpus
    return corpus.by_file(BadFiles.REFUSE if strict else BadFiles.KEEP)
