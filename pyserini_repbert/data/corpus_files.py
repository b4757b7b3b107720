"""Corpus files: which format a file or a folder has, and its passages as a `Corpus`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pyserini_repbert.data.corpus_formats import (
    CedrCorpus,
    FilesCorpus,
    HtmlCorpus,
    JsonlCorpus,
    TextCorpus,
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
from pyserini_repbert.data.first_bytes import guess_lines, is_binary
from pyserini_repbert.data.folder_corpus import FolderCorpus
from pyserini_repbert.data.origins import docid_of_path
from pyserini_repbert.data.passages import BadFiles, Corpus, OnError
from pyserini_repbert.data.planned_files import (
    Plan,
    PlannedFile,
    is_read,
    is_readme,
    plan_file,
    plan_folder,
)
from pyserini_repbert.data.readings import BY_KIND, Reading
from pyserini_repbert.data.suffixes import (
    ARCHIVES,
    MARKDOWN,
    PAGES,
    PLAIN_TEXT,
    RECORDS,
    has_suffix,
    has_suffix_or_packed,
)
from pyserini_repbert.data.unread_files import (
    FileGroup,
    UnreadableFile,
    UnreadFile,
    UnreadFiles,
    has_no_reader,
    suffix_of,
)
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath, files_below

_PROSE = (*MARKDOWN, *PLAIN_TEXT)
_LINES = (*RECORDS, *PLAIN_TEXT)
_TEXT_FILES = f'corpus files ({", ".join(_LINES)}, each also .gz)'
_SHOWN = '.md, .txt, .html, .htm, .jsonl, .json, .csv, .tsv, .eml, …'
_ONE_KIND = frozenset(('jsonl', 'tsv', 'cedr', 'trec', 'text'))


@dataclass(frozen=True)
class _Asked:
    """What a caller asked of a corpus; see the parameters of `names.corpora.open_corpus`."""

    source: StrPath
    fields: tuple[str, ...]
    on_error: OnError
    keep_empty: bool
    selection: FileSelection

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
    """A corpus file that exists, or a folder of such files.

    Parameters
    ----------
    source : the file or the folder
    fmt : one of the formats, or 'auto': each file by its own kind
    fields : of JSON lines and tables: the text fields (default: `contents`, else `title` and
        `text`)
    on_error : 'refuse': an InputError at the first unusable line, when the corpus is read; 'skip':
        warnings, counted
    keep_empty : accept passages without text
    selection : which files of a folder are read, and a user's own readers

    Raises InputError for an unknown format, a pipe or a device, a folder without corpus files.
    """
    selection = selection or FileSelection()
    asked = _Asked(source, tuple(fields), OnError(on_error), keep_empty, selection)
    if not asked.path.is_file() and not asked.path.is_dir():
        raise InputError(
            f'corpus {source} is a pipe or a device: give a file, which can be read more than once'
        )
    if fmt != 'auto' and fmt not in _FORMATS:
        raise InputError(
            f"corpus format '{fmt}' is unknown: expected auto, ir_datasets, lucene, "
            f'{", ".join(_FORMATS)}'
        )
    if fmt == 'auto':
        fmt = ''
    corpus = _read_as(asked, fmt, Reading())
    corpus.reopen = partial(_read_as, asked, fmt)
    return corpus


def _read_as(asked: _Asked, forced: str, stored: Reading) -> Corpus:
    """The corpus, read as it was before, unless the caller says otherwise.

    Parameters
    ----------
    asked : by the caller
    forced : the format that the caller chose; '' for none
    stored : with the source of a collection; where it decides nothing, the files do
    """
    main_content = asked.selection.main_content
    if main_content is None:
        main_content = stored.main_content
    asked = replace(asked, selection=replace(asked.selection, main_content=main_content))
    fmt = forced or stored.fmt
    if not fmt and asked.path.is_dir():
        fmt = _guess_delivery(asked.path, asked.selection)
    elif not fmt:
        fmt = _guess_format(asked)
    if fmt in _FORMATS:
        corpus = _corpus_of_format(asked, fmt)
        corpus.reading = Reading(fmt, main_content=main_content)
        return corpus
    text_kind = stored.text_kind if stored.text_kind in _ONE_KIND else ''
    return _corpus_of_kinds(asked, text_kind)


def _corpus_of_kinds(asked: _Asked, text_kind: str) -> Corpus:
    """A corpus whose files are read by their own kinds."""
    is_alone = asked.path.is_file()
    if is_alone:
        plan = _plan_of_file(asked)
    else:
        plan = plan_folder(asked.path, asked.fields, asked.selection, text_kind)
    if not plan.files and not is_alone:
        unread = UnreadFiles(plan.unread)
        besides = f'; {unread}' if unread else ''
        raise InputError(
            f'folder {asked.path} holds no corpus files ({_SHOWN}){besides}: check the path, and '
            'whether its disk is mounted'
        )
    corpus = _corpus_of_plan(asked, plan)
    corpus.reading = Reading(
        BY_KIND, plan.text_kind or text_kind, bool(asked.selection.main_content)
    )
    return corpus


def _corpus_of_plan(asked: _Asked, plan: Plan) -> Corpus:
    """A corpus of planned files; files of one format that has a corpus of its own are that."""
    kinds = {file.kind for file in plan.files}
    if len(kinds) == 1 and kinds <= _ONE_KIND:
        (kind,) = kinds
        paths = [file.path for file in plan.files]
        reader = _FORMATS[kind].reader
        corpus: Corpus = reader(str(asked.source), paths, asked.on_error, asked.keep_empty)
        corpus.unread = UnreadFiles(plan.unread)
        if isinstance(corpus, JsonlCorpus):
            corpus.fields = asked.fields
    else:
        corpus = _corpus_by_file(asked, plan, BadFiles.PART)
    if not asked.path.is_file():
        corpus.by_file = partial(_corpus_by_file, asked, plan)
    return corpus


def _corpus_by_file(asked: _Asked, plan: Plan, bad_files: BadFiles) -> Corpus:
    """A corpus of planned files that reads one after the other."""
    return FolderCorpus(
        str(asked.source),
        plan,
        asked.on_error,
        asked.keep_empty,
        fields=asked.fields,
        is_alone=asked.path.is_file(),
        bad_files=bad_files,
    )


def _plan_of_file(asked: _Asked) -> Plan:
    try:
        return plan_file(asked.path, asked.fields, asked.selection)
    except UnreadableFile as error:
        raise InputError(f'{asked.path} cannot be read: {error}') from error


def _corpus_of_format(asked: _Asked, fmt: str) -> Corpus:
    """A corpus all of whose files are of one format."""
    chosen = _FORMATS[fmt]
    paths = [asked.path]
    unread = UnreadFiles()
    if asked.path.is_dir():
        paths = chosen.files(asked.path)
        read = paths
        if paths == [asked.path]:
            read = [
                path for path in files_below(asked.path) if has_suffix_or_packed(path.name, PAGES)
            ]
        unread = _others(asked, read, fmt)
    if not paths:
        besides = f'; {unread}' if unread else ''
        raise InputError(f'folder {asked.path} holds no {chosen.what}{besides}')
    corpus = chosen.reader(str(asked.source), paths, asked.on_error, asked.keep_empty)
    corpus.unread = unread
    if isinstance(corpus, JsonlCorpus):
        corpus.fields = asked.fields
    if isinstance(corpus, HtmlCorpus):
        corpus.main_content = bool(asked.selection.main_content)
    if asked.path.is_dir() and fmt in _ONE_KIND:
        files = [PlannedFile(path, _docid_in(asked.path, path), fmt) for path in paths]
        plan = Plan(files, list(unread))
        corpus.by_file = partial(_corpus_by_file, asked, plan)
    return corpus


def _docid_in(folder: Path, path: Path) -> str:
    return docid_of_path(path.relative_to(folder).as_posix())


def _others(asked: _Asked, read: Iterable[Path], fmt: str) -> UnreadFiles:
    """The files of a folder beside those that are read as files of a format."""
    known = set(read)
    found = select_files(asked.path)
    others = [file for file in found.left_out if file.path not in known]
    for path in found.files:
        if path not in known:
            group = FileGroup.of_suffix(path)
            others.append(UnreadFile(path, group, f"not read as '{fmt}'"))
    return UnreadFiles(others)


def _files_ending(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """The files of a folder whose names end in one of these, each also with .gz.

    Hidden files, caches and backups are only read where there are no others.
    """
    for with_hidden in (False, True):
        found = select_files(folder, with_hidden=with_hidden)
        files = [path for path in found.files if has_suffix_or_packed(path.name, suffixes)]
        if files:
            return files
    return []


def _line_files(folder: Path) -> list[Path]:
    return _files_ending(folder, _LINES)


def _prose_files(folder: Path) -> list[Path]:
    return _files_ending(folder, _PROSE)


@dataclass(frozen=True)
class _Format:
    """A format of corpora: its reader, and its files in a folder with what they are called."""

    reader: type[FilesCorpus]
    files: Callable[[Path], list[Path]] = _line_files
    what: str = _TEXT_FILES


_FORMATS = {
    'jsonl': _Format(JsonlCorpus),
    'tsv': _Format(TsvCorpus),
    'trec': _Format(TrecCorpus),
    'cedr': _Format(CedrCorpus),
    'text': _Format(TextCorpus, _prose_files, 'text files (.md, .txt, …)'),
    'html': _Format(HtmlCorpus, lambda folder: [folder], 'pages'),
    'trec-disks': _Format(TrecDisksCorpus, disk_files, 'documents of TREC disks'),
    'clueweb': _Format(ClueWebCorpus, warc_files, 'WARC files (.warc, .warc.gz)'),
}


def _guess_format(asked: _Asked) -> str:
    """The format of one file; '' for a kind that needs no format.

    Raises InputError for a file that is no text, and whose name says nothing.
    """
    try:
        kind = plan_file(asked.path, asked.fields, asked.selection).files[0].kind
    except UnreadableFile as error:
        if not has_no_reader(error):
            raise InputError(f'{asked.path} cannot be read: {error}') from error
        return _guess_unknown(asked.path)
    return kind if kind in _FORMATS else ''


def _guess_unknown(path: Path) -> str:
    """The format of a file whose suffix no reader has."""
    if has_suffix(path.name, ARCHIVES):
        return 'html'
    if is_binary(path):
        suffix = suffix_of(path)
        what = f'{suffix} files' if suffix else 'such files'
        raise InputError(
            f'{path} cannot be read: no reader reads {what}; give text, or one of {_SHOWN}'
        )
    return guess_lines(path) or 'tsv'


def _guess_delivery(folder: Path, selection: FileSelection) -> str:
    """'clueweb' or 'trec-disks' for a folder as delivered, with documentation at most; else ''."""
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
