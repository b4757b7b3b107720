"""A folder of files as people have it: each is read by its own kind, or named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pyserini_repbert.collection.files.converting import CONVERTED, FileConverter
from pyserini_repbert.collection.files.file_kinds import KINDS, ConvertedKind, FileKind, OwnKind
from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.planned_files import Plan, PlannedFile
from pyserini_repbert.collection.files.stated_dates import (
    DATE,
    date_of_path,
    name_date,
    title_with_year,
)
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.file_records import FileContent, FileRecord, look_at
from pyserini_repbert.data.origins import name_in_corpus
from pyserini_repbert.data.passages import BadFiles, BadPassage, Corpus, OnError, Passage
from pyserini_repbert.data.seen_docids import SeenDocids
from pyserini_repbert.data.unread_files import UnreadableFile, UnreadFile, UnreadFiles, is_broken
from pyserini_repbert.errors import InputError

if TYPE_CHECKING:
    from pyserini_repbert.collection.files.mail_threads import MailThreads

# What a file raises that cannot be read: somebody may have removed it meanwhile.
_FILE_ERRORS = (UnreadableFile, InputError, OSError)
# Kinds whose rows may get their titles from a column.
_TABLES = frozenset(('table', 'parquet', 'workbook'))
_MAIL = 'mail'
_MOST_HELD = 16_000_000  # characters of the documents of a file
_Item = TypeVar('_Item', Passage, Document)
_Read = Callable[[FileKind, FileToRead], Iterator[tuple[str, _Item | BadPassage]]]


class FolderCorpus(Corpus):
    """A corpus of files of any kinds, in the order of their paths.

    Parameters
    ----------
    name : what the user called it
    plan : which files are read, and as what
    on_error, keep_empty : as in `Corpus`
    fields : text fields of records; empty: the usual ones
    title_column : of tables, that is the title of their rows; '': as the tables say
    is_alone : whether the corpus is one file: then one that cannot be read is an InputError
    bad_files : what to do with a file if a part of it cannot be read
    """

    def __init__(
        self,
        name: str,
        plan: Plan,
        on_error: OnError | str = OnError.REFUSE,
        keep_empty: bool = False,
        fields: tuple[str, ...] = (),
        title_column: str = '',
        is_alone: bool = False,
        bad_files: BadFiles | str = BadFiles.PART,
    ) -> None:
        super().__init__(name, on_error, keep_empty)
        self._bad_files = BadFiles(bad_files)
        self._files: Sequence[PlannedFile] = plan.files
        self._unread = plan.unread
        self.unread = UnreadFiles(plan.unread)
        self._failed: dict[Path, UnreadFile] = {}
        self._fields = fields
        self._title_column = title_column
        self._is_alone = is_alone

    def count_hint(self) -> int | None:
        """About how many documents there are; None for large .gz files."""
        total = 0
        for file in self._files:
            count = KINDS[file.kind].count_hint(file.path) if file.kind in KINDS else 1
            if count is None:
                return None
            total += count
        return self._part.share(total)

    def documents(self) -> Iterator[Document]:
        """The documents; only of files that can be read whole, unless parts of files are read."""
        if self._is_alone and self.records is not None:
            return self._documents_of_changed_file()
        if self._bad_files is BadFiles.PART:
            return super().documents()
        return self._documents_of_whole_files()

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        return self._read_files(lambda kind, file: kind.passages(file))

    def _read_documents(self) -> Iterator[tuple[str, Document | BadPassage]]:
        documents = self._read_files(self._documents_in)
        return (item for row, item in enumerate(documents) if self._part.takes(row))

    def _documents_in(
        self, kind: FileKind, file: FileToRead
    ) -> Iterator[tuple[str, Document | BadPassage]]:
        """The documents of a file, each with the file's path in the corpus.

        The document of a whole file, and each row of a table, gets the date of the path, unless it
        already has a date. It gets the year of the path in its title.
        """
        path = name_in_corpus(self.name, file.path)
        path_date = date_of_path(path)
        for location, item in kind.documents(file):
            if isinstance(item, Document):
                item = item.in_file(path)
                if item.docid == file.docid or _is_within(item, file):
                    item = _with_date_of_path(item, path_date)
                    item = replace(item, title=title_with_year(item.title, path))
            yield location, item

    def _read_files(self, read: _Read[_Item]) -> Iterator[tuple[str, _Item | BadPassage]]:
        """What the files hold, in their order; one that cannot be read is noted, or refused."""
        for kind, file in self._kinds_and_files(self._files):
            try:
                yield from read(kind, file)
                self._note(file, None)
            except _FILE_ERRORS as error:
                self._note(file, _unreadable(error))

    def _documents_of_changed_file(self) -> Iterator[Document]:
        """The documents of the file that is the whole corpus; none if it is as it was."""
        self.skipped = 0
        for planned in self._changed_files():
            way = self._way_of(planned)
            content = look_at(planned.path) if way else None
            n_documents = 0
            for document in super().documents():
                n_documents += 1
                yield document
            if content is not None and self.skipped == 0:
                record = FileRecord(content, way, planned.docid, n_documents)
                self._remember(self._file_to_read(planned), record)

    def _documents_of_whole_files(self) -> Iterator[Document]:
        for known in self._unread:
            if known.is_broken and self._bad_files is BadFiles.REFUSE:
                raise _refusal(known.path, known.reason)
        self.skipped = 0
        seen = SeenDocids()
        files = self._changed_files()
        if self.records is not None and files:
            for docid in self.records.docids_of_unchanged():
                seen.add(docid)
        for row, (kind, file) in enumerate(self._kinds_and_files(files)):
            yield from self._documents_of_whole_file(kind, file, self._way_of(files[row]), seen)

    def _documents_of_whole_file(
        self, kind: FileKind, file: FileToRead, way: str, seen: SeenDocids
    ) -> Iterator[Document]:
        """The documents of a file.

        Their content is remembered, or the reason why it cannot be read.
        """
        content = self._content_of(kind, file, way)
        n_documents = 0
        n_skipped = self.skipped
        problem: UnreadableFile | None = None
        try:
            for document in self._documents_of_file(kind, file, seen):
                n_documents += 1
                yield document
        except _FILE_ERRORS as error:
            problem = _unreadable(error)
        self._note(file, problem)
        is_whole = self.skipped == n_skipped and not (problem and is_broken(problem))
        if content is not None and is_whole:
            self._remember(file, FileRecord(content, way, file.docid, n_documents, problem))

    def _changed_files(self) -> Sequence[PlannedFile]:
        """The files that have to be read: all but those that are as they were."""
        if self.records is None:
            return self._files
        changed = []
        for file in self._files:
            name = name_in_corpus(self.name, file.path)
            way = self._way_of(file)
            record = self.records.find_unchanged(name, file.path, way=way, docid=file.docid)
            if record is None:
                changed.append(file)
            elif record.problem is not None:
                self._failed[file.path] = UnreadFile.of_error(file.path, file.docid, record.problem)
        self.unread = UnreadFiles([*self._unread, *self._failed.values()])
        return changed

    def _way_of(self, file: PlannedFile) -> str:
        """How a file is read; '' if nobody knows, as by a user's own reader."""
        if file.reader is not None:
            return ''
        way = ' '.join([file.kind, *self._fields])
        if file.kind == _MAIL:
            return f'{way} {self._threads.way_of(file.path)}'
        has_title = self._title_column and file.kind in _TABLES
        return f'{way} title={self._title_column}' if has_title else way

    def _content_of(self, kind: FileKind, file: FileToRead, way: str) -> FileContent | None:
        """The content of a file that is to be remembered; None for others."""
        if self.records is None or not way:
            return None
        try:
            return kind.content_of(file)
        except OSError:
            return None

    def _remember(self, file: FileToRead, record: FileRecord) -> None:
        if self.records is not None:
            self.records.add(name_in_corpus(self.name, file.path), file.path, record)

    def _documents_of_file(
        self, kind: FileKind, file: FileToRead, seen: SeenDocids
    ) -> Iterator[Document]:
        """The documents of a file. None is returned before all have been read.

        A file with much text is read twice, so that memory does not grow with it. Raises
        UnreadableFile for one with something that cannot be used.
        """
        documents = []
        size = 0
        left_out: set[str] = set()
        for document in self._usable_documents(kind, file, seen, left_out):
            size += len(document.text)
            if size <= _MOST_HELD:
                documents.append(document)
        if size <= _MOST_HELD:
            yield from documents
            return
        del documents
        for location, item in self._documents_in(kind, file):
            if location not in left_out and isinstance(item, Document):
                yield item

    def _usable_documents(
        self, kind: FileKind, file: FileToRead, seen: SeenDocids, left_out: set[str]
    ) -> Iterator[Document]:
        """The documents of a file that pass the checks; others are skipped if that was asked for.

        Parameters
        ----------
        kind : how the file is read
        file : to read
        seen : the docids of files before this one; gets those of this one
        left_out : gets the locations of skipped documents

        Raises UnreadableFile for the first that does not pass, unless it is skipped.
        """
        for location, item in self._documents_in(kind, file):
            if isinstance(item, BadPassage):
                problem: str | None = str(item)
            else:
                problem = self._problem(item)
                if problem is None and seen.add(item.docid):
                    problem = self._repetition(location, item)
                if problem is None:
                    yield item
                    continue
            if self.on_error is not OnError.SKIP:
                raise UnreadableFile(f'{_within_file(location, file)}{problem}')
            left_out.add(location)
            self._leave_out(location, str(problem))

    def _kinds_and_files(
        self, files: Sequence[PlannedFile]
    ) -> Iterator[tuple[FileKind, FileToRead]]:
        converted = [
            (planned.kind, self._file_to_read(planned))
            for planned in files
            if planned.kind in CONVERTED
        ]
        with FileConverter(converted, looks=self.records is not None) as converter:
            for planned in files:
                yield _kind_of(planned, converter), self._file_to_read(planned)

    def _file_to_read(self, planned: PlannedFile) -> FileToRead:
        return FileToRead(
            planned.path,
            planned.docid,
            self._fields,
            self._is_alone,
            self.encodings,
            title_column=self._title_column,
            answers_another=planned.kind == _MAIL and self._threads.answers_another(planned.path),
        )

    @cached_property
    def _threads(self) -> MailThreads:
        """Which mails answer others; of a corpus that has a mail."""
        from pyserini_repbert.collection.files.mail_threads import MailThreads

        mails = [file.path for file in self._files if file.kind == _MAIL]
        files = {name_in_corpus(self.name, path): path for path in mails}
        return MailThreads.of_files(files, self.records)

    def _note(self, file: FileToRead, error: UnreadableFile | None) -> None:
        """Note that a file could not be read, or, without an error, that it could."""
        path = file.path
        if error is not None and self._is_alone:
            raise InputError(f'{path} cannot be read: {error}') from error
        failed = {known: item for known, item in self._failed.items() if known != path}
        if error is not None:
            failed[path] = UnreadFile.of_error(path, file.docid, error)
            if failed[path].is_broken and self._bad_files is BadFiles.REFUSE:
                raise _refusal(path, str(error)) from error
        if failed != self._failed:
            self._failed = failed
            self.unread = UnreadFiles([*self._unread, *failed.values()])


def _with_date_of_path(document: Document, path_date: str) -> Document:
    """The document with a field `date`: its own, in any case of letters, or that of its path."""
    fields = name_date(document.fields)
    if path_date and DATE not in fields:
        fields = {**fields, DATE: path_date}
    return replace(document, fields=fields)


def _is_within(document: Document, file: FileToRead) -> bool:
    """Whether a document is one of several of a file in a folder, such as a row of a table."""
    return not file.is_alone and document.docid.startswith(f'{file.docid}#')


def _unreadable(error: Exception) -> UnreadableFile:
    """The error of a file that cannot be read."""
    if isinstance(error, UnreadableFile):
        return error
    return UnreadableFile(str(error.strerror if isinstance(error, OSError) else error))


def _refusal(path: Path, reason: str) -> InputError:
    return InputError(
        f'{path} cannot be read: {reason}: fix or remove it, or let its documents stay as they '
        'are, without strict'
    )


def _within_file(location: str, file: FileToRead) -> str:
    """'line 3: ' for a location 'a.jsonl:3'; '' for one without a line."""
    line = location.removeprefix(f'{file.path}:')
    return f'line {line}: ' if line.isdecimal() else ''


def _kind_of(file: PlannedFile, converter: FileConverter) -> FileKind:
    if file.reader is not None:
        return OwnKind(file.reader)
    if file.kind in CONVERTED:
        return ConvertedKind(converter)
    return KINDS[file.kind]
