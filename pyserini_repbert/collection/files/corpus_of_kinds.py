"""A file or a folder as people have it, as a corpus: of one format, or each by its own kind."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from pyserini_repbert.collection.files.folder_corpus import FolderCorpus
from pyserini_repbert.collection.files.html_corpus import HtmlCorpus
from pyserini_repbert.collection.files.planned_files import (
    Plan,
    PlannedFile,
    plan_file,
    plan_folder,
)
from pyserini_repbert.collection.files.text_corpus import TextCorpus
from pyserini_repbert.data.corpus_files import (
    FORMATS,
    CorpusFormat,
    CorpusRequest,
    corpus_of_format,
    corpus_of_records,
    files_ending,
    guess_delivery,
)
from pyserini_repbert.data.corpus_formats import FilesCorpus, JsonlCorpus
from pyserini_repbert.data.first_bytes import guess_lines, is_binary
from pyserini_repbert.data.origins import docid_of_path
from pyserini_repbert.data.passages import BadFiles, Corpus
from pyserini_repbert.data.readings import BY_KIND, Reading
from pyserini_repbert.data.suffixes import (
    ARCHIVES,
    MARKDOWN,
    PAGES,
    PLAIN_TEXT,
    has_suffix,
    has_suffix_or_packed,
)
from pyserini_repbert.data.unread_files import (
    UnreadableFile,
    UnreadFiles,
    has_no_reader,
    suffix_of,
)
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import files_below

_PROSE = (*MARKDOWN, *PLAIN_TEXT)
_SHOWN = '.md, .txt, .html, .htm, .jsonl, .json, .csv, .tsv, .eml, …'


# Formats whose files may make up a whole folder.
_ONE_KIND = frozenset(('jsonl', 'tsv', 'cedr', 'trec', 'text'))


def open_files(asked: CorpusRequest, fmt: str) -> Corpus:
    """A file or a folder.

    Parameters
    ----------
    asked : by the caller
    fmt : one of the formats, or 'auto': each file by its own kind

    Raises InputError for a folder without corpus files.
    """
    fmt = '' if fmt == 'auto' else fmt
    corpus = _read_as(asked, fmt, Reading())
    corpus.reopen = partial(_read_as, asked, fmt)
    return corpus


def _read_as(asked: CorpusRequest, forced: str, stored: Reading) -> Corpus:
    """The corpus, read as it was before, unless the caller says otherwise.

    Parameters
    ----------
    asked : by the caller
    forced : the format that the caller chose; '' for none
    stored : with the source of a collection; where it decides nothing, the files do
    """
    selection = asked.selection
    if selection.main_content is None:
        selection = replace(selection, main_content=stored.main_content)
    if selection.title_column is None:
        selection = replace(selection, title_column=stored.title_column)
    asked = replace(asked, selection=selection)
    fmt = forced or stored.fmt
    if not fmt and asked.path.is_dir():
        fmt = guess_delivery(asked.path, asked.selection)
    elif not fmt:
        fmt = _guess_format(asked)
    if fmt in _FORMATS:
        return _corpus_of_format(asked, fmt)
    return _corpus_of_kinds(asked, stored.text_kind if stored.text_kind in _ONE_KIND else '')


def _corpus_of_format(asked: CorpusRequest, fmt: str) -> Corpus:
    if fmt in FORMATS:
        corpus = corpus_of_records(asked, fmt)
    else:
        corpus = corpus_of_format(asked, fmt, _PAGE_FORMATS[fmt])
    if isinstance(corpus, HtmlCorpus):
        corpus.main_content = bool(asked.selection.main_content)
    if asked.path.is_dir() and fmt in _ONE_KIND:
        corpus.by_file = partial(_open_by_file, asked, corpus)
    return corpus


def _open_by_file(asked: CorpusRequest, corpus: FilesCorpus, bad_files: BadFiles) -> Corpus:
    """Files of one format, one after the other."""
    files = []
    for path in corpus.paths:
        docid = docid_of_path(path.relative_to(asked.path).as_posix())
        files.append(PlannedFile(path, docid, corpus.reading.fmt))
    return _corpus_by_file(asked, Plan(files, list(corpus.unread)), bad_files)


def _corpus_of_kinds(asked: CorpusRequest, text_kind: str) -> Corpus:
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
        BY_KIND,
        plan.text_kind or text_kind,
        bool(asked.selection.main_content),
        asked.selection.title_column or '',
    )
    return corpus


def _corpus_of_plan(asked: CorpusRequest, plan: Plan) -> Corpus:
    """A corpus of planned files.

    If all have the same format and this has its own corpus, that corpus.
    """
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


def _corpus_by_file(asked: CorpusRequest, plan: Plan, bad_files: BadFiles) -> Corpus:
    """A corpus of planned files that reads one after the other."""
    return FolderCorpus(
        str(asked.source),
        plan,
        asked.on_error,
        asked.keep_empty,
        fields=asked.fields,
        title_column=asked.selection.title_column or '',
        is_alone=asked.path.is_file(),
        bad_files=bad_files,
    )


def _plan_of_file(asked: CorpusRequest) -> Plan:
    try:
        return plan_file(asked.path, asked.fields, asked.selection)
    except UnreadableFile as error:
        raise InputError(f'{asked.path} cannot be read: {error}') from error


def _guess_format(asked: CorpusRequest) -> str:
    """The format of one file; '' for a kind that needs no format.

    Raises InputError for a file that is not text, and whose name says nothing.
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


def _prose_files(folder: Path) -> list[Path]:
    return files_ending(folder, _PROSE)


def _itself(folder: Path) -> list[Path]:
    return [folder]


def _pages_within(paths: list[Path]) -> list[Path]:
    """The pages of a folder, which is the one path."""
    return [path for path in files_below(paths[0]) if has_suffix_or_packed(path.name, PAGES)]


_PAGE_FORMATS = {
    'text': CorpusFormat(TextCorpus, _prose_files, 'text files (.md, .txt, …)'),
    'html': CorpusFormat(HtmlCorpus, _itself, 'pages', _pages_within),
}
_FORMATS = {**FORMATS, **_PAGE_FORMATS}
