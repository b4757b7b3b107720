"""Corpus files: which format a file or a folder has, and its passages as a `Corpus`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import filterfalse
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
    disk_files,
    is_documentation,
    warc_files,
)
from pyserini_repbert.data.passages import Corpus, OnError
from pyserini_repbert.data.suffixes import (
    ARCHIVES,
    JSON,
    MARKDOWN,
    PAGES,
    PLAIN_TEXT,
    RECORDS,
    has_suffix,
    has_suffix_or_packed,
)
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import (
    BYTE_ORDER_MARK,
    StrPath,
    existing_file,
    files_below,
    links_out_of,
    open_binary,
)

_PROSE = (*MARKDOWN, *PLAIN_TEXT)
_TEXT_SUFFIXES = (*RECORDS, *PLAIN_TEXT)
_TEXT_FILES = f'corpus files ({", ".join(_TEXT_SUFFIXES)}, each also .gz)'
# Bytes that packed files begin with.
_PACKED = {b'BZh': 'bzip2', b'\xfd7zXZ\x00': 'xz', b'\x28\xb5\x2f\xfd': 'zstd', b'\x1f\x8b': 'gzip'}


@dataclass(frozen=True)
class UnreadFiles:
    """The files of a corpus folder that no reader reads, by the reason.

    Attributes
    ----------
    links : links to files and folders that lie elsewhere
    """

    links: int = 0

    @property
    def count(self) -> int:
        """How many there are."""
        return self.links

    def __str__(self) -> str:
        """'3 files were not read: 3 links that leave the folder'"""
        reasons = []
        if self.links == 1:
            reasons.append('1 link that leaves the folder')
        elif self.links:
            reasons.append(f'{self.links} links that leave the folder')
        files = '1 file was' if self.count == 1 else f'{self.count} files were'
        return f'{files} not read: {", ".join(reasons)}'


def unread_files(folder: Path) -> UnreadFiles:
    """The files of a corpus folder that no reader reads."""
    return UnreadFiles(links=len(links_out_of(folder)))


def corpus_of_files(
    source: StrPath,
    fmt: str = 'auto',
    fields: Iterable[str] = (),
    on_error: str = OnError.REFUSE,
    keep_empty: bool = False,
) -> Corpus:
    """A corpus file that exists, or a folder of such files.

    The parameters source, fmt, fields, on_error and keep_empty are those of
    `names.corpora.open_corpus`.
    """
    policy = OnError(on_error)
    path = Path(source)
    if not path.is_file() and not path.is_dir():
        raise InputError(
            f'corpus {path} is a pipe or a device: give a file, which can be read more than once'
        )
    if fmt == 'auto':
        fmt = _guess_format(path)
    if fmt not in _FORMATS:
        raise InputError(
            f"corpus format '{fmt}' is unknown: expected auto, ir_datasets, lucene, "
            f'{", ".join(_FORMATS)}'
        )
    chosen = _FORMATS[fmt]
    paths = [path]
    unread = UnreadFiles()
    if path.is_dir():
        paths = chosen.files(path)
        unread = unread_files(path)
    if not paths:
        besides = f'; {unread}' if unread.count else ''
        raise InputError(f'folder {path} holds no {chosen.what}{besides}')
    corpus = chosen.reader(str(source), paths, policy, keep_empty)
    if unread.count:
        corpus.unread = str(unread)
    if isinstance(corpus, JsonlCorpus):
        corpus.fields = tuple(fields)
    return corpus


def _files(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    return _files_ending(files_below(folder), suffixes)


def _files_ending(files: Iterable[Path], suffixes: tuple[str, ...]) -> list[Path]:
    """Those whose names end in one of these, each also with .gz."""
    return [file for file in files if has_suffix_or_packed(file.name, suffixes)]


def _text_files(folder: Path) -> list[Path]:
    return _files(folder, _TEXT_SUFFIXES)


def _prose_files(folder: Path) -> list[Path]:
    """Text and Markdown files; none that is hidden or in a hidden folder."""
    files = _files(folder, _PROSE)
    return [file for file in files if not _is_hidden(file.relative_to(folder))]


def _is_hidden(path: Path) -> bool:
    return any(name.startswith('.') for name in path.parts)


@dataclass(frozen=True)
class _Format:
    """A format of corpora: its reader, and its files in a folder with what they are called."""

    reader: type[FilesCorpus]
    files: Callable[[Path], list[Path]] = _text_files
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


def _guess_format(path: Path) -> str:
    if path.is_dir():
        return _guess_folder(path)
    if has_suffix(path.name, (*ARCHIVES, *PAGES)):
        return 'html'
    if has_suffix_or_packed(path.name, MARKDOWN):
        return 'text'
    guessed = _guess_lines(path)
    if guessed:
        return guessed
    return 'text' if has_suffix(path.name, PLAIN_TEXT) else 'tsv'


def _guess_folder(folder: Path) -> str:
    texts = _text_files(folder)
    prose = _prose_files(folder)
    documents = list(filterfalse(_is_readme, prose))
    has_pages = any(has_suffix(file.name, PAGES) for file in files_below(folder))
    visible = [file for file in texts if not _is_hidden(file.relative_to(folder))]
    if visible or prose or has_pages:
        # Hidden files, such as an editor's settings, say nothing about the others.
        texts = visible
    if has_pages and not texts and not documents:
        return 'html'
    delivered = _guess_delivery(folder, [*texts, *prose])
    if delivered:
        return delivered
    records = _files_ending(texts, RECORDS)
    if records:
        guessed = _guess_lines(records[0]) or 'tsv'
        has_markdown = bool(_files_ending(documents, MARKDOWN))
        _check_records_alone(folder, records[0], guessed, has_markdown, has_pages)
        return guessed
    if has_pages:
        _check_alone(folder, documents)
        return 'html'
    if not texts and not prose:
        suffixes = (*_TEXT_SUFFIXES, *MARKDOWN, *PAGES)
        raise InputError(f'folder {folder} holds no corpus files ({", ".join(suffixes)})')
    return _guess_texts(texts)


def _guess_texts(texts: Sequence[Path]) -> str:
    """The format of text files, which can also hold lines or documents of another format."""
    if not texts:
        return 'text'
    return _guess_lines(texts[0]) or 'text'


def _is_readme(file: Path) -> bool:
    return file.name.lower().startswith('readme')


def _check_alone(folder: Path, documents: Sequence[Path]) -> None:
    """Raises InputError for text files beside pages."""
    if documents:
        raise InputError(
            f'folder {folder} holds text files and HTML: say which of them are the corpus',
            parameters=('corpus_format=text', 'corpus_format=html'),
        )


def _check_records_alone(
    folder: Path, records: Path, guessed: str, has_markdown: bool, has_pages: bool
) -> None:
    """Raises InputError for Markdown or pages beside a file of records.

    Parameters
    ----------
    folder : of the corpus
    records : a file of records
    guessed : its format
    has_markdown, has_pages : whether the folder has such files
    """
    others = {}
    if has_markdown:
        others['text'] = 'Markdown'
    if has_pages:
        others['html'] = 'HTML'
    if others:
        raise InputError(
            f'folder {folder} holds {" and ".join(others.values())} beside '
            f'{records.relative_to(folder)}: say which of them is the corpus',
            parameters=tuple(f'corpus_format={fmt}' for fmt in (*others, guessed)),
        )


def _guess_delivery(folder: Path, texts: Iterable[Path]) -> str:
    """'clueweb' or 'trec-disks' for a folder as delivered; '' for one with `texts` of its own."""
    if not all(is_documentation(file) for file in texts):
        return ''
    if warc_files(folder):
        return 'clueweb'
    return 'trec-disks' if disk_files(folder) else ''


def _is_json_array(path: Path, start: bytes) -> bool:
    """Whether a file is JSON, but no JSON lines, which their reader says."""
    return has_suffix_or_packed(path.name, JSON) and start[:1] == b'['


def _guess_lines(path: Path) -> str:
    """The format of a file by its first bytes; '' if they are of none."""
    with open_binary(existing_file(path, 'corpus')) as stream:
        start = stream.read(4096).removeprefix(BYTE_ORDER_MARK).lstrip()
    for magic, packer in _PACKED.items():
        if start.startswith(magic):
            raise InputError(
                f'corpus {path} is packed with {packer}: unpack it, or give it as a .gz file'
            )
    if start[:1] == b'{' or _is_json_array(path, start):
        return 'jsonl'
    if re.match(rb'(doc|query)\t[^\t\n]*\t', start):
        return 'cedr'
    if start[:5].upper() == b'<DOC>':
        return 'trec'
    lines = start.splitlines()
    # The last one may have been cut.
    whole = lines[:-1] or lines
    has_docids = all(re.match(rb'\S+\t', line) for line in whole if line.strip())
    return 'tsv' if whole and has_docids else ''
