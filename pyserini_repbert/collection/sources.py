"""Sources: where the documents of a collection come from. A document belongs to one of them.

A source has a name, and may have a prefix, with which the docids of its documents begin. What the
next generation says of a source is stored when it is published.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyserini_repbert.collection.digests import digest_sources
from pyserini_repbert.collection.rows import KnownDocument
from pyserini_repbert.collection.source_links import LinkTemplate
from pyserini_repbert.collection.store import FOREVER
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.passages import Corpus
from pyserini_repbert.data.readings import Reading
from pyserini_repbert.data.unread_files import UnreadFiles
from pyserini_repbert.data.values import has_surrogates, identifier_problem
from pyserini_repbert.errors import InputError, MismatchError, SourceConflictError
from pyserini_repbert.files import StrPath

logger = logging.getLogger(__name__)

ADDED = 'add'  # the source of documents that were added, not synced
GIVEN = 'python'  # the source of documents that were synced from Python
# The version of this release's readers: texts change where it does. 2: Markdown without its marks;
# 3: reStructuredText, AsciiDoc and Org without theirs, HTML in blocks; 4: the alternative texts of
# pictures; 5: text that looks like a mark, all parts of mail, cells of Excel as written;
# 6: all cells of Word's tables, and tables within them; 7: all texts of mail, LaTeX without
# its marks, PDF in the order of its columns, what a browser shows of HTML; 8: titles of rows, all
# words of EPUB; 9: the sender of mail in its title, and the days that files state; 10: rows of
# workbooks, text that Word hides by a style it extends, the year of a path in the title; 11: the
# month or year of a path as a date; 12: replies without their quotes of mails that a folder has,
# a column `Date` as the field `date`, no document of an empty note, titles of
# rows from a column that repeats less.
READERS = 12
# The separator between the format of a source and the version of the readers.
_VERSION = ';'
# What the rows of a source are in, which its removal deletes; `sources` is among them.
_TABLES = (
    'sources',
    'source_prefixes',
    'source_paths',
    'source_formats',
    'source_links',
    'source_syncs',
    'source_readers',
    'source_files',
)
_MOST_FILES = 1_000
_SHOWN = 80  # characters of a docid


@dataclass(frozen=True)
class SyncReport:
    """What a sync says of a source, for those who look later.

    Attributes
    ----------
    unread : the files that were not read, in one line; '' for none
    files : the path and the reason of each file whose reader failed, at most 1,000
    """

    unread: str
    files: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, unread: UnreadFiles) -> SyncReport:
        """The report of files that were not read."""
        broken = [(str(file.path), file.reason) for file in unread if file.is_broken]
        # Half of a surrogate pair, as paths may have, is not a character.
        text = json.dumps([str(unread), broken[:_MOST_FILES]])
        return cls.parsed(text.encode('utf-8', 'replace').decode())

    @classmethod
    def parsed(cls, text: str) -> SyncReport:
        """The report that a collection stores. Raises ValueError for anything else."""
        try:
            unread, files = json.loads(text)
            return cls(str(unread), tuple((str(path), str(reason)) for path, reason in files))
        except (TypeError, RecursionError) as error:
            raise ValueError(str(error)) from error

    def rendered(self) -> str:
        """What a collection stores, as JSON."""
        return json.dumps([self.unread, self.files])


@dataclass(frozen=True)
class DocumentSource:
    """Where documents come from.

    Attributes
    ----------
    number : in the collection
    name : a corpus by its path or its name; 'add'
    prefix : with which the docids of its documents begin; '' if it has none
    is_known : whether a generation was published with it
    path : another path of the same corpus, to be remembered; '' for none
    reading : how its files are read (`Corpus.reading`)
    link : the prefix or the template of its files' addresses; '' if it has none
    readers : the version of the readers that read it last; 0 before the first sync
    report : what its last sync says; None: the stored value does not change
    """

    number: int
    name: str
    prefix: str = ''
    is_known: bool = False
    path: str = ''
    reading: Reading = field(default_factory=Reading)
    link: str = ''
    readers: int = 0
    report: SyncReport | None = None

    def documents(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Documents of the corpus under the docids that they have in the collection."""
        for document in documents:
            if self.prefix:
                document = replace(document, docid=self.prefix + document.docid)
            yield document


def reading_of(stored: str) -> Reading:
    """How the files of a source are read, of what a collection stores with a version."""
    return Reading.parsed(stored.partition(_VERSION)[0])


class Sources:
    """The sources of a collection, for its writer."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def find(self, name: str) -> DocumentSource:
        """The source of a name; a new one gets a number.

        Raises InputError for a name that is not in UTF-8, as a folder's may be.
        """
        if has_surrogates(name):
            raise InputError(
                f'the name of source {name[:_SHOWN]!r} is not in UTF-8: give another name',
                parameters=('source=NAME',),
            )
        row = self._connection.execute(
            "SELECT source, COALESCE(prefix, ''), COALESCE(format, ''), COALESCE(link, '') "
            'FROM sources LEFT JOIN source_prefixes USING (source) '
            'LEFT JOIN source_formats USING (source) '
            'LEFT JOIN source_links USING (source) WHERE name = ?',
            [name],
        ).fetchone()
        if row is not None:
            number, prefix, stored, link = row
            version = stored.partition(_VERSION)[2]
            return DocumentSource(
                number,
                name,
                prefix,
                is_known=True,
                reading=reading_of(stored),
                link=link,
                readers=int(version) if version.isdecimal() else 1,
            )
        return DocumentSource(self._new_number(), name)

    def _new_number(self) -> int:
        """A number that no source has, not even a removed one whose documents a reader may still
        see.
        """
        (number,) = self._connection.execute(
            'SELECT MAX(COALESCE((SELECT MAX(source) FROM sources), 0), COALESCE('
            f'(SELECT MAX(source) FROM fields WHERE until < {FOREVER}), 0))'
        ).fetchone()
        return int(number) + 1

    def known(self, name: str) -> DocumentSource:
        """The source of a name, or of a path to its file or folder, which need not be there.

        Raises InputError, which lists the sources, for a source that the collection does not have.
        """
        source = self.find(name)
        if name and not source.is_known:
            source = self.find(self._same_place(str(Path(name).resolve())))
        if source.is_known:
            return source
        rows = self._connection.execute('SELECT name FROM sources ORDER BY source')
        names = ', '.join(f"'{other}'" for (other,) in rows)
        raise InputError(
            f"the collection has no source '{name[:_SHOWN]}': name one of its sources "
            f'({names or "it has none"}); nothing was deleted'
        )

    def of_documents(
        self, documents: StrPath | Iterable[Any], name: str | None = None
    ) -> DocumentSource:
        """The source of documents that a user gives.

        Parameters
        ----------
        documents : a path or a name, or documents themselves
        name : what the user calls it; default: its path without links, or its name
        """
        if name == ADDED:
            raise InputError(
                f"source '{ADDED}' has the documents that `index add` and HTTP bring: give another "
                'name'
            )
        if isinstance(documents, Corpus):
            documents = documents.name
        if name is not None:
            return self.find(name)
        if not isinstance(documents, (str, os.PathLike)):
            return self.find(GIVEN)
        path = Path(documents)
        if not path.exists():
            return self.find(str(documents))
        return self._at_path(str(path.resolve()), os.path.abspath(path))

    def _at_path(self, name: str, path: str) -> DocumentSource:
        """The source of a file or folder; that it has another path is said once.

        Parameters
        ----------
        name : its path without links
        path : its path as the user gave it, absolute
        """
        source = self.find(self._same_place(name))
        known = self._connection.execute(
            'SELECT 1 FROM source_paths WHERE source = ? AND path = ?', [source.number, path]
        )
        if path == source.name or known.fetchone():
            return source
        if source.is_known:
            logger.warning(
                "%s is another path of the source '%s': its documents are synced; name a source to "
                'sync it separately',
                path,
                source.name,
            )
        return replace(source, path=path)

    def _same_place(self, name: str) -> str:
        """The source with another name at a path, for example if a disk is mounted twice."""
        rows = self._connection.execute('SELECT name FROM sources ORDER BY source')
        names = [other for (other,) in rows]
        if name in names:
            return name
        for other in names:
            if os.path.isabs(other) and _is_same_file(other, name):
                return str(other)
        return name

    def prefixed(
        self, source: DocumentSource, prefix: str | None, replaces: bool
    ) -> DocumentSource:
        """A source with the prefix that a user gives.

        Parameters
        ----------
        source : with the prefix that it has
        prefix : None: the one that it has
        replaces : whether another prefix replaces the one of the stored documents

        Raises InputError for a prefix with which no docid begins, and MismatchError for one that
        differs from the source's.
        """
        if prefix is None or prefix == source.prefix:
            return source
        problem = identifier_problem(prefix) if prefix else None
        if problem:
            raise InputError(f'the prefix {prefix[:_SHOWN]!r} {problem}: give one such as notes/')
        if not replaces and self._has_documents(source):
            stored = f"the prefix '{source.prefix}'" if source.prefix else 'no prefix'
            raise MismatchError(
                f"source '{source.name}' has {stored}, '{prefix}' was given: leave it out, or give "
                'all its documents other docids',
                parameters=('rebuild',),
            )
        return replace(source, prefix=prefix)

    def linked(self, source: DocumentSource, link: str | None) -> DocumentSource:
        """A source with the addresses of its files that a user gives.

        Parameters
        ----------
        source : with those that it has
        link : a prefix or a template; '' for none; None: what it has

        Raises InputError as `LinkTemplate.parsed`.
        """
        if link is None:
            return source
        if link:
            LinkTemplate.parsed(link)
        return replace(source, link=link)

    def store(self, source: DocumentSource) -> None:
        """Write what a source is; within a transaction of the caller."""
        execute = self._connection.execute
        execute('INSERT OR IGNORE INTO sources VALUES (?, ?)', [source.number, source.name])
        execute('DELETE FROM source_prefixes WHERE source = ?', [source.number])
        if source.prefix:
            execute('INSERT INTO source_prefixes VALUES (?, ?)', [source.number, source.prefix])
        execute('DELETE FROM source_formats WHERE source = ?', [source.number])
        if source.reading.fmt:
            stored = f'{source.reading.rendered()}{_VERSION}{READERS}'
            execute('INSERT INTO source_formats VALUES (?, ?)', [source.number, stored])
        execute('DELETE FROM source_links WHERE source = ?', [source.number])
        if source.link:
            execute('INSERT INTO source_links VALUES (?, ?)', [source.number, source.link])
        if source.report is not None:
            now = datetime.now(UTC).isoformat(timespec='seconds')
            execute(
                'INSERT OR REPLACE INTO source_syncs VALUES (?, ?, ?)',
                [source.number, now, source.report.rendered()],
            )
        if source.path:
            execute(
                'INSERT OR REPLACE INTO source_paths VALUES (?, ?)', [source.path, source.number]
            )

    def remove(self, source: DocumentSource) -> None:
        """Delete all that is stored of a source; within a transaction of the caller."""
        for table in _TABLES:
            self._connection.execute(f'DELETE FROM {table} WHERE source = ?', [source.number])

    def digest_after(self, change: Callable[[], object]) -> str:
        """The digest of all sources, as it will be after `change`, which is undone."""
        self._connection.execute('BEGIN IMMEDIATE')
        try:
            change()
            return digest_sources(self._connection)
        finally:
            self._connection.execute('ROLLBACK')

    def is_new_beside_others(self, source: DocumentSource) -> bool:
        """Whether any docid of a source may belong to another source."""
        if source.name == ADDED:
            return True
        rows = self._connection.execute(f'SELECT 1 FROM fields WHERE until = {FOREVER} LIMIT 1')
        return not source.is_known and rows.fetchone() is not None

    def check_owners(self, known: Iterable[KnownDocument], source: DocumentSource) -> None:
        """Raises SourceConflictError for the first document that belongs to another source.

        Parameters
        ----------
        known : what the collection has of the docids
        source : which has documents of these docids
        """
        for document in known:
            if document.is_live and document.source != source.number:
                raise self._conflict(document, source)

    def _conflict(self, document: KnownDocument, source: DocumentSource) -> SourceConflictError:
        row = self._connection.execute(
            'SELECT name FROM sources WHERE source = ?', [document.source]
        ).fetchone()
        owner = row[0]
        problem = f"document '{document.docid[:_SHOWN]}' belongs to source '{owner}', and "
        if source.name == ADDED:
            return SourceConflictError(
                f"{problem}source '{ADDED}' would replace it: give another docid, or change the "
                'document in its source; nothing was written'
            )
        if owner == ADDED:
            return SourceConflictError(
                f"{problem}source '{source.name}' has this docid, too: give the docids of the "
                'source a prefix, or delete the document; nothing was written',
                parameters=('prefix=NAME/',),
            )
        return SourceConflictError(
            f"{problem}source '{source.name}' has this docid, too: give the docids of one source "
            'a prefix, or name the first source if both are the same; nothing was '
            'written',
            parameters=('prefix=NAME/', f'source={owner}'),
        )

    def _has_documents(self, source: DocumentSource) -> bool:
        row = self._connection.execute(
            f'SELECT 1 FROM fields WHERE source = ? AND until = {FOREVER} LIMIT 1', [source.number]
        )
        return row.fetchone() is not None


def _is_same_file(path: str, other: str) -> bool:
    """Whether two paths lead to one file or folder, which is there."""
    return os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)
