"""Which files of a folder are read, and as what; all others are named with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyserini_repbert.collection.files.office_documents import can_read_office
from pyserini_repbert.collection.files.pandoc_documents import can_read_pandoc
from pyserini_repbert.collection.files.reader_process import INSTALL
from pyserini_repbert.data.file_selection import FileSelection, select_files
from pyserini_repbert.data.first_bytes import guess_lines, is_manual, is_text
from pyserini_repbert.data.origins import docid_of_path
from pyserini_repbert.data.own_readers import OwnReader, installed_readers
from pyserini_repbert.data.record_kinds import kind_of_records
from pyserini_repbert.data.suffixes import (
    ASCIIDOC,
    COMMA_SEPARATED,
    LOGS,
    MAIL,
    MAILBOXES,
    MARKDOWN,
    NOTEBOOKS,
    OFFICE,
    OPEN_DOCUMENTS,
    ORG,
    PAGES,
    PARQUET,
    PLAIN_TEXT,
    RECORDS,
    RESTRUCTURED,
    SOURCES,
    TYPESET,
    WORKBOOKS,
    has_suffix,
    has_suffix_or_packed,
    is_read,
    is_readme,
    without_suffix,
)
from pyserini_repbert.data.unread_files import (
    NO_READER,
    READMES,
    FileGroup,
    UnreadableFile,
    UnreadFile,
)
from pyserini_repbert.errors import InputError

# Suffixes that say all of how a file is read. Those files may be packed, with .gz behind.
_PACKED_KINDS = {
    MARKDOWN: 'text',
    RESTRUCTURED: 'rst',
    ASCIIDOC: 'adoc',
    ORG: 'org',
    COMMA_SEPARATED: 'table',
    SOURCES: 'source',
    PAGES: 'html',
    MAIL: 'mail',
    MAILBOXES: 'mailbox',
    NOTEBOOKS: 'notebook',
    TYPESET: 'pandoc',
    LOGS: 'log',
}
_OTHER_KINDS = {
    PARQUET: 'parquet',
    OFFICE: 'office',
    WORKBOOKS: 'workbook',
    OPEN_DOCUMENTS: 'pandoc',
}
_CAN_READ: Mapping[str, Callable[[], bool]] = {
    'office': can_read_office,
    'workbook': can_read_office,
    'pandoc': can_read_pandoc,
}
_OWN = 'own'
# Of a page, and of one whose main content alone is read.
_PAGE_KINDS = ('html', 'main-content')


@dataclass(frozen=True)
class PlannedFile:
    """A file that is read.

    Attributes
    ----------
    path : of the file
    docid : of the file
    kind : a name of `file_kinds.KINDS`, 'office', 'workbook', 'pandoc', or 'own'
    reader : the user's own, if the kind is 'own'
    """

    path: Path
    docid: str
    kind: str
    reader: OwnReader | None = None


@dataclass(frozen=True)
class Plan:
    """How the files of a corpus are read.

    Attributes
    ----------
    files : those that are read
    unread : those that are not
    text_kind : as what .txt files are read; '' if there are none
    """

    files: Sequence[PlannedFile]
    unread: Sequence[UnreadFile] = ()
    text_kind: str = ''


@dataclass
class _Planning:
    """A plan that is being made.

    Attributes
    ----------
    readers : a user's own, by suffix
    fields : the text fields of records that are asked for
    text_kind : as what .txt files are read
    main_content : whether only the main content of a page is read
    is_strict : whether a file of records that holds none is read as if it did: its error is said
    """

    readers: Mapping[str, OwnReader]
    fields: tuple[str, ...] = ()
    text_kind: str = 'text'
    main_content: bool = False
    is_strict: bool = False
    unread: list[UnreadFile] = field(default_factory=list)

    def leave_out(self, path: Path, docid: str, error: UnreadableFile) -> None:
        """Note a file that is not read."""
        self.unread.append(UnreadFile.of_error(path, docid, error))

    def kind_of(self, path: Path) -> str:
        """The kind of a file. Raises UnreadableFile for one that no reader reads."""
        if self.reader_of(path) is not None:
            return _OWN
        if has_suffix_or_packed(path.name, PLAIN_TEXT):
            return self.text_kind
        if has_suffix_or_packed(path.name, RECORDS):
            return kind_of_records(path, self.fields, self.is_strict)
        for suffixes, kind in _PACKED_KINDS.items():
            if has_suffix_or_packed(path.name, suffixes):
                return self._kind_of_packed(kind)
        for suffixes, kind in _OTHER_KINDS.items():
            if has_suffix(path.name, suffixes):
                if kind in _CAN_READ and not _CAN_READ[kind]():
                    raise UnreadableFile(f'{INSTALL} to read such files', f'({INSTALL})')
                return kind
        return self._kind_by_content(path)

    def _kind_by_content(self, path: Path) -> str:
        """The kind of a file whose suffix says nothing."""
        if is_manual(path):
            return self._kind_of_packed('pandoc')
        if not path.suffix and is_text(path):
            return self.text_kind if self.is_strict else 'text'
        raise UnreadableFile('no reader reads such files', NO_READER)

    def _kind_of_packed(self, kind: str) -> str:
        """The kind, if its reader is installed and asked for."""
        if kind == 'html' and self.main_content:
            return 'main-content'
        return 'source' if kind == 'pandoc' and not can_read_pandoc() else kind

    def reader_of(self, path: Path) -> OwnReader | None:
        """The user's own reader of a file, by the longest suffix that has one."""
        suffixes = [suffix for suffix in self.readers if has_suffix(path.name, (suffix,))]
        return self.readers[max(suffixes, key=len)] if suffixes else None


def plan_file(path: Path, fields: tuple[str, ...], selection: FileSelection) -> Plan:
    """How a file that is the whole corpus is read.

    Raises UnreadableFile for one that no reader reads.
    """
    readers = {**installed_readers(), **selection.readers}
    main_content = bool(selection.main_content)
    planning = _Planning(readers, fields, main_content=main_content, is_strict=True)
    reader = planning.reader_of(path)
    may_have_lines = has_suffix_or_packed(path.name, PLAIN_TEXT) or not path.suffix
    if may_have_lines and reader is None:
        planning.text_kind = guess_lines(path) or 'text'
    kind = planning.kind_of(path)
    name = without_suffix(path.name, PAGES) if kind in _PAGE_KINDS else path.name
    return Plan([PlannedFile(path, docid_of_path(name), kind, reader)])


def plan_folder(
    folder: Path, fields: tuple[str, ...], selection: FileSelection, text_kind: str = ''
) -> Plan:
    """How the files of a folder are read.

    Parameters
    ----------
    folder : the folder
    fields : the text fields of records that are asked for
    selection : which files are wanted, and a user's own readers
    text_kind : as what .txt files are read; '': by the first bytes of all of them
    """
    found = select_files(folder, selection)
    if not found.files:
        # Hidden files say nothing about others, but form a corpus if there are no others.
        found = select_files(folder, selection, with_hidden=True)
    readers = {**installed_readers(), **selection.readers}
    main_content = bool(selection.main_content)
    planning = _Planning(readers, fields, main_content=main_content, unread=list(found.left_out))
    files = [path for path in found.files if not is_readme(path)]
    readmes = [path for path in found.files if is_readme(path)]
    texts = [path for path in files if has_suffix_or_packed(path.name, PLAIN_TEXT)]
    planning.text_kind = text_kind or _guess_texts(texts)
    planning.is_strict = _hold_records_alone(files, planning)
    if files and (planning.is_strict or _hold_pages_alone(files)):
        about_others = [(path, FileGroup.of_suffix(path)) for path in files if not path.suffix]
        about_others += [(path, READMES) for path in readmes]
        for path, group in about_others:
            planning.unread.append(UnreadFile(path, group, 'it is about the other files'))
        files = [path for path in files if path.suffix]
    else:
        files = sorted([*files, *readmes])
    kinds = _kinds_of(files, folder, planning)
    docids = _docids(folder, kinds)
    planned = [
        PlannedFile(path, docids[path], kind, planning.reader_of(path))
        for path, kind in kinds.items()
    ]
    return Plan(planned, planning.unread, planning.text_kind if texts else '')


def _kinds_of(files: Iterable[Path], folder: Path, planning: _Planning) -> dict[Path, str]:
    """The kinds of the files of a folder that can be read; `planning` learns of the others."""
    kinds: dict[Path, str] = {}
    for path in files:
        try:
            kinds[path] = planning.kind_of(path)
            continue
        except UnreadableFile as error:
            unreadable = error
        except OSError as error:
            unreadable = UnreadableFile(str(error.strerror))
        docid = docid_of_path(path.relative_to(folder).as_posix())
        planning.leave_out(path, docid, unreadable)
    return kinds


def _hold_records_alone(files: Iterable[Path], planning: _Planning) -> bool:
    """Whether a folder's files are records, apart from what no reader reads."""
    n_records = 0
    for path in files:
        is_text = has_suffix_or_packed(path.name, PLAIN_TEXT)
        is_lines = is_text and planning.text_kind != 'text'
        if is_lines or has_suffix_or_packed(path.name, RECORDS):
            n_records += 1
        elif is_text or is_read(path) or planning.reader_of(path) is not None:
            return False
    return n_records > 0


def _hold_pages_alone(files: Iterable[Path]) -> bool:
    """Whether a folder's files are pages, and at most records or texts that are none of prose."""
    return all(has_suffix_or_packed(path.name, PAGES) for path in files if path.suffix)


def _guess_texts(texts: Sequence[Path]) -> str:
    """As what .txt files are read: lines of one format if all of them are, otherwise as text."""
    kinds = set()
    for path in texts:
        try:
            kinds.add(guess_lines(path) or 'text')
        except (InputError, OSError):
            # It is packed, or may not be read.
            kinds.add('text')
        if len(kinds) > 1 or 'text' in kinds:
            return 'text'
    return kinds.pop() if kinds else 'text'


def _docids(folder: Path, kinds: Mapping[Path, str]) -> dict[Path, str]:
    """The docids of files: their paths in the folder; a page's path without its suffix.

    One of two pages with the same docid keeps its suffix.
    """
    names = {path: path.relative_to(folder).as_posix() for path in kinds}
    pages = [without_suffix(names[path], PAGES) for path in kinds if kinds[path] in _PAGE_KINDS]
    pages_by_docid = Counter(pages)
    docids = {}
    for path, name in names.items():
        if kinds[path] in _PAGE_KINDS:
            page = without_suffix(name, PAGES)
            if pages_by_docid[page] == 1 or name.endswith(PAGES[0]):
                name = page
        docids[path] = docid_of_path(name)
    return docids
