"""A folder of files as people have it: each is read by its own kind, or named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.file_kinds import KINDS, DocumentsKind, FileKind, OwnKind
from pyserini_repbert.data.file_to_read import FileToRead
from pyserini_repbert.data.office_documents import OfficeReader
from pyserini_repbert.data.passages import BadPassage, Corpus, OnError, Passage
from pyserini_repbert.data.planned_files import Plan, PlannedFile
from pyserini_repbert.data.unread_files import (
    FileGroup,
    UnreadableFile,
    UnreadFile,
    UnreadFiles,
)
from pyserini_repbert.errors import InputError

_Item = TypeVar('_Item', Passage, Document)
_Read = Callable[[FileKind, FileToRead], Iterator[tuple[str, _Item | BadPassage]]]


class FolderCorpus(Corpus):
    """A corpus of files of any kinds, in the order of their paths.

    Parameters
    ----------
    name : what the user called it
    plan : which files are read, and as what
    on_error, keep_empty : as of `Corpus`
    fields : text fields of records; empty: the usual ones
    is_alone : whether the corpus is one file: then one that cannot be read is an InputError
    """

    def __init__(
        self,
        name: str,
        plan: Plan,
        on_error: OnError | str = OnError.REFUSE,
        keep_empty: bool = False,
        fields: tuple[str, ...] = (),
        is_alone: bool = False,
    ) -> None:
        super().__init__(name, on_error, keep_empty)
        self._files: Sequence[PlannedFile] = plan.files
        self._unread = plan.unread
        self.unread = UnreadFiles(plan.unread)
        self._failed: dict[Path, UnreadFile] = {}
        self._fields = fields
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

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        return self._read_files(lambda kind, file: kind.passages(file))

    def _read_documents(self) -> Iterator[tuple[str, Document | BadPassage]]:
        documents = self._read_files(lambda kind, file: kind.documents(file))
        return (item for row, item in enumerate(documents) if self._part.takes(row))

    def _read_files(self, read: _Read[_Item]) -> Iterator[tuple[str, _Item | BadPassage]]:
        """What the files hold, in their order; one that cannot be read is noted, or refused."""
        with OfficeReader() as office:
            for planned in self._files:
                kind = _kind_of(planned, office)
                file = FileToRead(planned.path, planned.docid, self._fields, self._is_alone)
                try:
                    yield from read(kind, file)
                    self._note(file, None)
                except UnreadableFile as error:
                    self._note(file, error)

    def _note(self, file: FileToRead, error: UnreadableFile | None) -> None:
        """Note that a file could not be read, or, without an error, that it could."""
        path = file.path
        if error is not None and self._is_alone:
            raise InputError(f'{path} cannot be read: {error}') from error
        failed = {known: item for known, item in self._failed.items() if known != path}
        if error is not None:
            group = FileGroup.of_suffix(path, error.group)
            failed[path] = UnreadFile(path, group, str(error), file.docid)
        if failed != self._failed:
            self._failed = failed
            self.unread = UnreadFiles([*self._unread, *failed.values()])


def _kind_of(file: PlannedFile, office: OfficeReader) -> FileKind:
    if file.reader is not None:
        return OwnKind(file.reader)
    if file.kind == 'office':
        return DocumentsKind(office.documents)
    return KINDS[file.kind]
