"""Corpus files: which format a file or a folder has, and its passages as a `Corpus`.

JSON lines, TSV, CEDR's data, TREC text, and collections as delivered are read here. All other files
are a person's, which `collection.files` opens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from pyserini_repbert.data.corpus_formats import (
    CedrCorpus,
    FilesCorpus,
    JsonlCorpus,
    TrecCorpus,
    TsvCorpus,
)
from pyserini_repbert.data.deliveries import (
    ClueWebCorpus,
    TrecDisksCorpus,
    begins_with_document,
    disk_files,
    is_documentation,
    warc_files,
)
from pyserini_repbert.data.file_selection import FileSelection, select_files
from pyserini_repbert.data.first_bytes import guess_lines
from pyserini_repbert.data.own_readers import installed_readers
from pyserini_repbert.data.passages import Corpus, OnError
from pyserini_repbert.data.readings import Reading
from pyserini_repbert.data.record_kinds import kind_of_records
from pyserini_repbert.data.suffixes import (
    PAGES,
    PLAIN_TEXT,
    RECORDS,
    has_suffix,
    has_suffix_or_packed,
    is_read,
    is_readme,
)
from pyserini_repbert.data.unread_files import (
    FileGroup,
    UnreadableFile,
    UnreadFile,
    UnreadFiles,
)
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath

_LINES = (*RECORDS, *PLAIN_TEXT)
# Formats that `collection.files` reads.
OF_PEOPLE = ('text', 'html')
_TEXT_FILES = f'corpus files ({", ".join(_LINES)}, each also .gz)'


@dataclass(frozen=True)
class CorpusRequest:
    """What a caller asked of a corpus; see the parameters of `names.corpora.open_corpus`.

    Raises InputError for a pipe or a device.
    """

    source: StrPath
    fields: tuple[str, ...]
    on_error: OnError
    keep_empty: bool
    selection: FileSelection

    def __post_init__(self) -> None:
        object.__setattr__(self, 'on_error', OnError(self.on_error))
        if not self.path.is_file() and not self.path.is_dir():
            raise InputError(
                f'corpus {self.source} is a pipe or a device: give a file, which can be read more '
                'than once'
            )

    @property
    def path(self) -> Path:
        return Path(self.source)


def corpus_of_files(
    source: StrPath,
    fmt: str = 'auto',
    fields: Iterable[str] = (),
    on_error: str = OnError.REFUSE,
    keep_empty: bool = False,
    selection: FileSelection | None = None,
) -> Corpus:
    """A corpus file that exists, or a folder of files of one format.

    Parameters
    ----------
    source : the file or the folder
    fmt : one of `FORMATS`, or 'auto': by suffixes and first bytes
    fields : of JSON lines: the text fields (default: `contents`, otherwise `title` and `text`)
    on_error : 'refuse': an InputError at the first unusable line, when the corpus is read; 'skip':
        warnings, counted
    keep_empty : accept passages without text
    selection : which files of a folder are read

    Raises InputError for an unknown format, a pipe or a device, a folder without corpus files.
    """
    selection = selection or FileSelection()
    asked = CorpusRequest(source, tuple(fields), OnError(on_error), keep_empty, selection)
    if fmt != 'auto' and fmt not in FORMATS:
        known = ', '.join([*FORMATS, *OF_PEOPLE])
        raise InputError(
            f"corpus format '{fmt}' is unknown: expected auto, ir_datasets, lucene, {known}"
        )
    if fmt == 'auto':
        fmt = _guess_format(asked)
    return corpus_of_records(asked, fmt)


def _guess_format(asked: CorpusRequest) -> str:
    """The one format of a file, or of all files of lines in a folder."""
    if asked.path.is_dir():
        fmt = guess_delivery(asked.path, asked.selection) or _guess_folder(asked)
    else:
        fmt = guess_records(asked)
    if not fmt:
        raise InputError(
            f'corpus {asked.source} holds neither JSON lines, TSV nor TREC text of one format: '
            'name the format'
        )
    return fmt


def _guess_folder(asked: CorpusRequest) -> str:
    """The one format that all files of lines in a folder have; '' if there are several."""
    formats = {guess_records(replace(asked, source=path)) for path in _line_files(asked.path)}
    return formats.pop() if len(formats) == 1 else ''


def corpus_of_records(asked: CorpusRequest, fmt: str) -> FilesCorpus:
    """A corpus all of whose files are of one of `FORMATS`."""
    corpus = corpus_of_format(asked, fmt, FORMATS[fmt])
    if isinstance(corpus, JsonlCorpus):
        corpus.fields = asked.fields
    return corpus


def corpus_of_format(asked: CorpusRequest, fmt: str, chosen: CorpusFormat) -> FilesCorpus:
    """A corpus all of whose files are of one format.

    Raises InputError for a folder that holds no such file, and if a column is to be a title.
    """
    if asked.selection.title_column:
        raise InputError(
            f"the column '{asked.selection.title_column[:60]}' is to be a title, but the corpus is "
            f"read as '{fmt}', which has no named columns: leave it out",
            parameters=('title',),
        )
    paths = [asked.path]
    unread = UnreadFiles()
    if asked.path.is_dir():
        paths = chosen.files(asked.path)
        unread = _others(asked, chosen.files_within(paths), fmt)
    if not paths:
        besides = f'; {unread}' if unread else ''
        raise InputError(f'folder {asked.path} holds no {chosen.what}{besides}')
    corpus = chosen.reader(str(asked.source), paths, asked.on_error, asked.keep_empty)
    corpus.unread = unread
    corpus.reading = Reading(fmt, main_content=bool(asked.selection.main_content))
    return corpus


def _others(asked: CorpusRequest, read: Iterable[Path], fmt: str) -> UnreadFiles:
    """The files of a folder beside those that are read as files of a format."""
    known = set(read)
    found = select_files(asked.path)
    others = [file for file in found.left_out if file.path not in known]
    for path in found.files:
        if path not in known:
            group = FileGroup.of_suffix(path)
            others.append(UnreadFile(path, group, f"not read as '{fmt}'"))
    return UnreadFiles(others)


def files_ending(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """The files of a folder whose names end in one of these, each also with .gz.

    Hidden files, caches and backups are read only if there are no others.
    """
    for with_hidden in (False, True):
        found = select_files(folder, with_hidden=with_hidden)
        files = [path for path in found.files if has_suffix_or_packed(path.name, suffixes)]
        if files:
            return files
    return []


def _line_files(folder: Path) -> list[Path]:
    return files_ending(folder, _LINES)


@dataclass(frozen=True)
class CorpusFormat:
    """A format of corpora.

    Attributes
    ----------
    reader : its corpus
    files : the files of a folder that the reader gets
    what : what these are called
    files_within : the files that the reader reads, of those that it gets
    """

    reader: type[FilesCorpus]
    files: Callable[[Path], list[Path]] = _line_files
    what: str = _TEXT_FILES
    files_within: Callable[[list[Path]], list[Path]] = list


FORMATS = {
    'jsonl': CorpusFormat(JsonlCorpus),
    'tsv': CorpusFormat(TsvCorpus),
    'trec': CorpusFormat(TrecCorpus),
    'cedr': CorpusFormat(CedrCorpus),
    'trec-disks': CorpusFormat(TrecDisksCorpus, disk_files, 'documents of TREC disks'),
    'clueweb': CorpusFormat(ClueWebCorpus, warc_files, 'WARC files (.warc, .warc.gz)'),
}


def guess_records(asked: CorpusRequest) -> str:
    """The format of a file of records; '' for another file, or one of the user's own reader."""
    name = asked.path.name
    readers = {**installed_readers(), **asked.selection.readers}
    if has_suffix(name, tuple(readers)):
        return ''
    try:
        if has_suffix_or_packed(name, PLAIN_TEXT):
            return guess_lines(asked.path)
        if has_suffix_or_packed(name, RECORDS):
            kind = kind_of_records(asked.path, asked.fields)
            return kind if kind in FORMATS else ''
    except UnreadableFile as error:
        raise InputError(f'{asked.path} cannot be read: {error}') from error
    return ''


def guess_delivery(folder: Path, selection: FileSelection) -> str:
    """'clueweb' or 'trec-disks' for a folder as delivered, with documentation at most; otherwise
    ''.
    """
    files = select_files(folder, selection).files
    texts = [path for path in files if is_read(path) and not has_suffix_or_packed(path.name, PAGES)]
    has_pages = any(has_suffix_or_packed(path.name, PAGES) for path in files)
    if has_pages and all(is_readme(path) for path in texts):
        return ''
    if not all(is_documentation(path) for path in texts):
        return ''
    if warc_files(folder):
        return 'clueweb'
    disks = disk_files(folder)
    if disks and (not texts or any(begins_with_document(path) for path in disks)):
        return 'trec-disks'
    return ''
