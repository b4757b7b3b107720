"""What a user does to a collection: mirror a source, add, delete, compact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import numpy as np

from pyserini_repbert.collection.known_words import UnknownDocuments
from pyserini_repbert.collection.renaming import find_lost, find_renames
from pyserini_repbert.collection.rows import KnownDocument
from pyserini_repbert.collection.source_files import documents_of_files
from pyserini_repbert.collection.sources import ADDED, READERS, DocumentSource, SyncReport
from pyserini_repbert.collection.staging import WrittenCounts
from pyserini_repbert.collection.store import FOREVER
from pyserini_repbert.collection.writing import Writer
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.origins import name_in_corpus, possible_docids, stored_docid
from pyserini_repbert.data.passages import Corpus, GivenCorpus
from pyserini_repbert.data.unread_files import UnreadFiles
from pyserini_repbert.errors import InputError

_DOCUMENTS_AT_ONCE = 256
_CHARACTERS_AT_ONCE = 4_000_000
_SHOWN = 60


@dataclass(frozen=True)
class Changes:
    """What a command did to a collection."""

    added: int
    changed: int
    deleted: int
    unchanged: int
    encoded: int  # passages
    generation: int
    # Documents that only got another docid; they are neither added nor deleted.
    renamed: int = field(default=0, kw_only=True)
    # How many of the added ones are rows of tables.
    added_rows: int = field(default=0, kw_only=True)
    # Whether the command published it; where nothing changed, it is the generation before.
    is_published: bool
    # With which the docids of the source begin; '' if it has none.
    prefix: str = ''
    # Lines or files that could not be used.
    skipped: int = 0
    # Files that were not read.
    unread: UnreadFiles = field(default_factory=UnreadFiles, compare=False)
    # Whether an earlier release read the source last, and read files of some kinds otherwise.
    is_read_anew: bool = field(default=False, kw_only=True)
    # Whether only the main content of pages is read from now on; None: as before.
    main_content: bool | None = field(default=None, kw_only=True)
    # The encodings of files that are not in Unicode.
    encodings: Mapping[Path, str] = field(default_factory=dict, compare=False)
    # Which of the documents that were cut have words that the encoder does not know; None if no
    # text was cut, and if it knows all words.
    unknown: UnknownDocuments | None = field(default=None, kw_only=True, compare=False)

    @property
    def documents(self) -> dict[str, int]:
        """How many documents were 'added', 'changed', 'deleted', 'renamed' if any were, and left
        'unchanged'.
        """
        renamed = {'renamed': self.renamed} if self.renamed else {}
        return {
            'added': self.added,
            'changed': self.changed,
            'deleted': self.deleted,
            **renamed,
            'unchanged': self.unchanged,
        }

    def __str__(self) -> str:
        """'10 added, 5 changed, 3 deleted, 581 unchanged; encoded 97 passages into generation 8 of
        the index'
        """
        documents = ', '.join(f'{count} {what}' for what, count in self.documents.items())
        passages = 'passage' if self.encoded == 1 else 'passages'
        encoded = f'encoded {self.encoded} {passages}'
        return f'{documents}; {encoded} into generation {self.generation} of the index'


class _SeenNumbers:
    """A set of documents by their numbers, a byte each."""

    def __init__(self) -> None:
        self._is_seen = np.zeros(65_536, np.bool_)

    def add(self, docnos: Sequence[int]) -> None:
        """Add documents."""
        size = max(docnos, default=0) + 1
        if size > len(self._is_seen):
            more = np.zeros(size + len(self._is_seen), np.bool_)
            self._is_seen = np.concatenate([self._is_seen, more])
        self._is_seen[docnos] = True

    def __contains__(self, docno: int) -> bool:
        return docno < len(self._is_seen) and bool(self._is_seen[docno])


def sync_documents(
    writer: Writer,
    corpus: Corpus,
    source: DocumentSource,
    *,
    delete_most: bool = False,
    merge: bool = False,
    on_progress: Callable[[int], object] = int,
) -> Changes:
    """Bring a collection up to date with all documents of a source; other sources stay.

    Parameters
    ----------
    writer : of the collection
    corpus : all documents of the source
    source : which it is, with the prefix of its docids
    delete_most : also delete more than half of what the collection has of this source
    merge : merge Lucene's segments, so that no deleted document counts
    on_progress : called with the number of documents read since the last call

    Raises InputError if more than half would be deleted, and for a new source whose files have no
    document, and SourceConflictError for a document of another source. Nothing is published then,
    or if the documents cannot be read.
    """
    is_new = not writer.sources.find(source.name).is_known
    seen = _SeenNumbers()
    counts = _put(writer, corpus, source, seen, on_progress)
    _keep_unchanged(writer, source, seen, counts)
    if is_new:
        _check_not_empty(corpus, counts)
    kept = _kept_documents(writer, corpus)
    gone, n_before = _missing_documents(writer, source.number, seen, kept)
    staging = writer.staging
    renames = find_renames(staging.connection, staging.generation, source.number, gone)
    n_renamed = len(renames)
    n_deleted = len(gone) - n_renamed
    lost = find_lost(staging.connection, staging.generation, source.number, gone, renames=renames)
    before = writer.sources.find(source.name)
    if source.prefix != before.prefix:
        # All have other docids now.
        n_deleted = max(0, n_before - counts.total)
        lost = lost[:n_deleted]
    if 2 * len(lost) > n_before and not delete_most:
        loss = _Loss(lost, n_before, n_renamed=n_renamed, n_new=counts.added - n_renamed)
        raise _loss_error(source, loss)
    staging.remove(gone)
    writer.renames = renames
    writer.source = replace(source, report=SyncReport.of(corpus.unread))
    changes = _finish(writer, counts, deleted=n_deleted, merge=merge)
    main_content = source.reading.main_content
    has_other_content = before.is_known and main_content != before.reading.main_content
    changes = replace(
        changes,
        added=counts.added - n_renamed,
        renamed=n_renamed,
        main_content=main_content if has_other_content else None,
        is_read_anew=bool(source.reading.fmt) and 0 < source.readers < READERS,
    )
    return _with_reading(changes, corpus)


@dataclass(frozen=True)
class _Loss:
    """How much of a source is missing.

    Attributes
    ----------
    docids : of the documents that are lost
    n_before : how many documents there were
    n_renamed : how many documents only got another docid
    n_new : how many documents are new
    """

    docids: Sequence[str]
    n_before: int
    n_renamed: int
    n_new: int


def _loss_error(source: DocumentSource, loss: _Loss) -> InputError:
    """The error for a source that has lost most of its documents; it says from where."""
    besides = [f'most of them {_common_place(loss.docids)}']
    if loss.n_renamed:
        besides.append(f'{loss.n_renamed} others renamed')
    if loss.n_new:
        besides.append(f'{loss.n_new} new')
    return InputError(
        f'source {source.name} has lost {len(loss.docids)} of {loss.n_before} documents '
        f'({"; ".join(besides)}): check the source, whose disk may not be mounted, or allow the '
        'deletion of more than half; nothing was changed',
        parameters=('delete_most',),
    )


def _common_place(docids: Sequence[str]) -> str:
    """Where most documents were, by the first part of their docids, in words."""
    folders = Counter(docid.rpartition('/')[0].partition('/')[0] for docid in docids)
    ((folder, _),) = folders.most_common(1)
    if folder:
        return f"below '{folder[:_SHOWN]}/'"
    return f"like '{docids[0][:_SHOWN]}'"


def _with_reading(changes: Changes, corpus: Corpus) -> Changes:
    """Changes, with notes on how the corpus was read."""
    return replace(
        changes, skipped=corpus.skipped, unread=corpus.unread, encodings=corpus.encodings
    )


def add_documents(
    writer: Writer,
    corpus: Corpus,
    *,
    merge: bool = False,
    on_progress: Callable[[int], object] = int,
) -> Changes:
    """Add documents to a collection; one of the same docid that was added before is replaced.

    Parameters
    ----------
    writer : of the collection
    corpus : those to add
    merge : merge Lucene's segments, so that no deleted document counts
    on_progress : called with the number of documents read since the last call

    Raises InputError for files without a document, and SourceConflictError for a document of
    another source; nothing is published then.
    """
    source = writer.sources.find(ADDED)
    counts = _put(writer, corpus, source, _SeenNumbers(), on_progress)
    _check_not_empty(corpus, counts)
    changes = _finish(writer, counts, deleted=0, merge=merge)
    return _with_reading(changes, corpus)


def _check_not_empty(corpus: Corpus, counts: WrittenCounts) -> None:
    """Raises InputError for files that were read and have no document.

    What a program gives may be empty, and files that cannot be read are reported as such.
    """
    if counts.total or corpus.unread.broken or isinstance(corpus, GivenCorpus):
        return
    skipped = f'; {corpus.skipped} were skipped' if corpus.skipped else ''
    raise InputError(
        f'corpus {corpus.name} has no documents{skipped}: check that it is the right one; nothing '
        'was changed'
    )


def _finish(writer: Writer, counts: WrittenCounts, deleted: int, merge: bool) -> Changes:
    """Publish what was written, and return the changes.

    Parameters
    ----------
    writer : of the collection
    counts : of the documents that were written
    deleted : how many were deleted
    merge : merge Lucene's segments
    """
    if writer.must_cut_again:
        writer.staging.cut_again()
    manifest = writer.finish(merge=merge)
    return Changes(
        added=counts.added,
        added_rows=counts.added_rows,
        changed=counts.changed,
        deleted=deleted,
        unchanged=counts.unchanged,
        encoded=writer.encoder.count,
        generation=manifest.number,
        is_published=writer.has_published,
        prefix='' if writer.source is None else writer.source.prefix,
        unknown=writer.encoder.unknown or None,
    )


def delete_documents(writer: Writer, docids: Iterable[str], *, merge: bool = False) -> Changes:
    """Delete documents of any source; documents that are deleted already are passed over.

    Raises InputError for a docid that the collection never had, or that is not text; nothing is
    deleted then.
    """
    docnos = []
    stream = iter(dict.fromkeys(docids))
    while batch := list(islice(stream, _DOCUMENTS_AT_ONCE)):
        for docid in batch:
            if not isinstance(docid, str):
                raise InputError(f'docid {docid!r} is not text: put it in quotes')
        typed: list[str] = []
        for docid in batch:
            typed += possible_docids(docid)
        known = writer.staging.rows.find(typed)
        stored = [stored_docid(docid, known.__contains__) for docid in batch]
        batch = list(dict.fromkeys(stored))
        for docid in batch:
            if docid not in known:
                raise InputError(
                    f"the collection never had a document '{docid[:_SHOWN]}': check the docid; "
                    'nothing was deleted'
                )
            if known[docid].is_live:
                docnos.append(known[docid].docno)
    return _delete(writer, docnos, merge)


def delete_source(writer: Writer, source: DocumentSource, *, merge: bool = False) -> Changes:
    """Delete a source with all its documents, in one generation."""
    docnos, _ = _missing_documents(writer, source.number, _SeenNumbers(), kept=set())
    writer.removed = source
    return _delete(writer, docnos, merge)


def _delete(writer: Writer, docnos: Sequence[int], merge: bool) -> Changes:
    """Publish a generation without some documents, and say what that was.

    Parameters
    ----------
    writer : of the collection
    docnos : the numbers of the documents
    merge : merge Lucene's segments
    """
    writer.staging.remove(docnos)
    manifest = writer.finish(merge=merge)
    return Changes(
        added=0,
        changed=0,
        deleted=len(docnos),
        unchanged=manifest.documents,
        encoded=writer.encoder.count,
        generation=manifest.number,
        is_published=writer.has_published,
    )


def _put(
    writer: Writer,
    corpus: Corpus,
    source: DocumentSource,
    seen: _SeenNumbers,
    on_progress: Callable[[int], object],
) -> WrittenCounts:
    """Write documents; `seen` gets the numbers of those that the collection knows."""
    _check_owners(writer, corpus, source)
    writer.source = source
    counts = WrittenCounts()

    def meet(known: Sequence[KnownDocument]) -> None:
        writer.sources.check_owners(known, source)
        seen.add([document.docno for document in known])

    for batch in _batches(source.documents(corpus.documents())):
        writer.staging.put(batch, source.number, counts=counts, on_known=meet)
        on_progress(len(batch))
    writer.staging.flush()
    return counts


def _keep_unchanged(
    writer: Writer,
    source: DocumentSource,
    seen: _SeenNumbers,
    counts: WrittenCounts,
) -> None:
    """Count the documents of files that were not read, since they are as they were."""
    records = writer.file_records
    if records is None or not records.unchanged:
        return
    documents = documents_of_files(writer.staging.connection, source, records.unchanged)
    docnos = [docno for docno, _ in documents]
    seen.add(docnos)
    counts.unchanged += len(docnos)


def _check_owners(writer: Writer, corpus: Corpus, source: DocumentSource) -> None:
    """Read the docids of a corpus first, if one may belong to another source.

    Encoding takes longer than reading. Of a source that was synced before, few documents are new,
    and each is checked before it is encoded.
    """
    if not corpus.can_be_read_again or not writer.sources.is_new_beside_others(source):
        return
    for batch in _batches(source.documents(corpus.documents())):
        known = writer.staging.rows.find([document.docid for document in batch])
        writer.sources.check_owners(known.values(), source)


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Documents in batches of bounded size."""
    batch: list[Document] = []
    characters = 0
    for document in documents:
        batch.append(document)
        characters += len(document.text)
        if len(batch) >= _DOCUMENTS_AT_ONCE or characters >= _CHARACTERS_AT_ONCE:
            yield batch
            batch = []
            characters = 0
    if batch:
        yield batch


def _kept_documents(writer: Writer, corpus: Corpus) -> set[int]:
    """The documents, by their numbers, of files that are there, but cannot be read.

    A file that has lost its text was read: its documents are gone.
    """
    files = [file for file in corpus.unread if file.docid and not file.is_empty]
    names = [name_in_corpus(corpus.name, file.path) for file in files]
    return writer.staging.rows.numbers_of_files(names)


def _missing_documents(
    writer: Writer, source: int, seen: _SeenNumbers, kept: set[int]
) -> tuple[list[int], int]:
    """The documents of a source that were not seen, and how many the collection had of it.

    Parameters
    ----------
    writer : of the collection
    source : its number
    seen : the documents that it has now
    kept : documents that are not missing, though they were not seen
    """
    generation = writer.staging.generation
    rows = writer.staging.connection.execute(
        'SELECT docno, until FROM fields WHERE source = ? AND since < ? AND until >= ?',
        [source, generation, generation],
    )
    missing = []
    n_before = 0
    for docno, until in rows:
        n_before += 1
        if until == FOREVER and docno not in seen and docno not in kept:
            missing.append(docno)
    return missing, n_before
