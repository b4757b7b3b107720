"""The files of a source as its last sync read them, so that the next sync opens only changed ones.

They are written in the transaction that ends a sync: a killed one leaves the records of the sync
before.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from pyserini_repbert import __version__
from pyserini_repbert.collection.sources import READERS, DocumentSource
from pyserini_repbert.collection.store import FOREVER
from pyserini_repbert.data.file_records import FileContent, FileRecord, FileRecords, FileState
from pyserini_repbert.data.unread_files import UnreadableFile
from pyserini_repbert.record import package_versions

# Packages that read files: another version may read them otherwise.
_PACKAGES = (
    'mammoth',
    'markdown-it-py',
    'markitdown',
    'openpyxl',
    'pandas',
    'pdfminer.six',
    'pyarrow',
    'pypandoc_binary',
    'pypdfium2',
    'python-pptx',
    'selectolax',
    'xlrd',
)


def installed_versions() -> str:
    """The versions of all that reads files."""
    versions = [f'readers {READERS}', __version__]
    for package, version in package_versions(_PACKAGES).items():
        versions.append(f'{package} {version}')
    return ', '.join(versions)


def open_file_records(
    connection: sqlite3.Connection,
    source: DocumentSource,
    *,
    checksum: bool = False,
    reads_all: bool = False,
) -> FileRecords:
    """The records of a source's files, for its next sync.

    Parameters
    ----------
    connection : of the collection's writer
    source : which it is, as it will be stored
    checksum : look at the content of all files, whatever their times say
    reads_all : read all files
    """

    def docids_of(files: set[str]) -> Iterator[str]:
        for _, docid in documents_of_files(connection, source, files):
            yield docid

    known = {} if reads_all else _read_records(connection, source)
    return FileRecords(known, docids_of, checksum)


def _read_records(connection: sqlite3.Connection, source: DocumentSource) -> dict[str, FileRecord]:
    """What the last sync of a source noted of its files, by their paths in the corpus.

    Nothing where another release, other readers or another prefix made its documents. Files are
    left out whose documents are not as many as they had: others have deleted some.
    """
    row = connection.execute(
        'SELECT versions FROM source_readers JOIN source_syncs USING (source, synced) '
        'WHERE source = ?',
        [source.number],
    ).fetchone()
    if row is None or row[0] != _versions_of(source):
        return {}
    n_documents = dict(
        connection.execute(
            'SELECT file, COUNT(*) FROM origins JOIN fields USING (docno) '
            f'WHERE source = ? AND origins.until = {FOREVER} AND fields.until = {FOREVER} '
            'GROUP BY file',
            [source.number],
        ).fetchall()
    )
    rows = connection.execute(
        'SELECT file, size, modified, changed, inode, is_settled, digest, way, docid, documents, '
        'reason, reason_group FROM source_files WHERE source = ?',
        [source.number],
    )
    records = {}
    for file, size, modified, changed, inode, settled, digest, *read in rows:
        way, docid, documents, reason, group = read
        if documents != n_documents.get(file, 0):
            continue
        content = FileContent(FileState(size, modified, changed, inode), bool(settled), digest)
        problem = None if reason is None else UnreadableFile(reason, group)
        records[file] = FileRecord(content, way, docid, documents, problem)
    return records


def store_file_records(
    connection: sqlite3.Connection, source: DocumentSource, records: FileRecords
) -> None:
    """Write the records of a source's files; within the transaction that stores the source."""
    execute = connection.execute
    execute(
        'INSERT OR REPLACE INTO source_readers '
        'SELECT source, ?, synced FROM source_syncs WHERE source = ?',
        [_versions_of(source), source.number],
    )
    if records.current == records.known:
        return
    execute('DELETE FROM source_files WHERE source = ?', [source.number])
    for file, record in records.current.items():
        content = record.content
        problem = record.problem
        execute(
            'INSERT INTO source_files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
            [
                source.number,
                file,
                content.state.size,
                content.state.modified,
                content.state.changed,
                content.state.inode,
                content.is_settled,
                content.digest,
                record.way,
                record.docid,
                record.documents,
                None if problem is None else str(problem),
                None if problem is None else problem.group,
            ],
        )


def documents_of_files(
    connection: sqlite3.Connection, source: DocumentSource, files: set[str]
) -> Iterator[tuple[int, str]]:
    """The number of each document of a source's files, and its docid in the corpus."""
    rows = connection.execute(
        'SELECT docno, docid, file FROM origins JOIN fields USING (docno) '
        'JOIN documents USING (docno) '
        f'WHERE source = ? AND origins.until = {FOREVER} AND fields.until = {FOREVER}',
        [source.number],
    )
    for docno, docid, file in rows:
        if file in files:
            yield docno, docid.removeprefix(source.prefix)


def _versions_of(source: DocumentSource) -> str:
    """What the documents of a source depend on besides its files."""
    return f'{installed_versions()}; {source.prefix}'
