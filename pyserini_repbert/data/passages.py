"""Corpora by name, whatever their format; passage text by docid, and in ordinary spelling."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from pyserini_repbert.data.corpus import Corpus, OnError, Passage
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
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import BYTE_ORDER_MARK, StrPath, existing_file, open_binary

__all__ = [
    'Corpus',
    'CorpusTexts',
    'OnError',
    'Passage',
    'PassageTexts',
    'corpus_of_files',
    'mended',
]


class PassageTexts(Protocol):
    """Anything that gives passage text by docid: a bundle with text, a Lucene index, a corpus
    file.
    """

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """The texts in the order of `docids`; None for a docid that is not there."""


def corpus_of_files(
    source: StrPath,
    fmt: str = 'auto',
    fields: Iterable[str] = (),
    on_error: str = OnError.REFUSE,
    keep_empty: bool = False,
) -> Corpus:
    """A corpus file that exists, or a folder of such files; parameters as in
    `names.corpora.open_corpus`.
    """
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
    kind, files_of, what = _FORMATS[fmt]
    paths = files_of(path) if path.is_dir() else [path]
    if not paths:
        raise InputError(f'folder {path} holds no {what}')
    corpus = kind(str(source), paths, on_error, keep_empty)
    if isinstance(corpus, JsonlCorpus):
        corpus.fields = tuple(fields)
    return corpus


def _files(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    files = (file for file in folder.rglob('*') if file.is_file())
    return sorted(file for file in files if file.name.removesuffix('.gz').endswith(suffixes))


def _text_files(folder: Path) -> list[Path]:
    return _files(folder, _TEXT_SUFFIXES)


def _prose_files(folder: Path) -> list[Path]:
    """Text and Markdown files; none that is hidden or in a hidden folder."""
    files = _files(folder, _PROSE)
    return [file for file in files if not _is_hidden(file.relative_to(folder))]


def _is_hidden(path: Path) -> bool:
    return any(name.startswith('.') for name in path.parts)


_MARKDOWN = ('.md', '.markdown')
_PROSE = (*_MARKDOWN, '.txt')
_RECORDS = ('.json', '.jsonl', '.tsv', '.trec')
_TEXT_SUFFIXES = (*_RECORDS, '.txt')
_TEXT_FILES = f'corpus files ({", ".join(_TEXT_SUFFIXES)}, each also .gz)'
# The corpus of a format, its files in a folder, and what they are.
_FORMATS: dict[str, tuple[type[FilesCorpus], Callable[[Path], list[Path]], str]] = {
    'jsonl': (JsonlCorpus, _text_files, _TEXT_FILES),
    'tsv': (TsvCorpus, _text_files, _TEXT_FILES),
    'trec': (TrecCorpus, _text_files, _TEXT_FILES),
    'cedr': (CedrCorpus, _text_files, _TEXT_FILES),
    'text': (TextCorpus, _prose_files, 'text files (.md, .txt)'),
    'html': (HtmlCorpus, lambda folder: [folder], 'pages'),
    'trec-disks': (TrecDisksCorpus, disk_files, 'documents of TREC disks'),
    'clueweb': (ClueWebCorpus, warc_files, 'WARC files (.warc, .warc.gz)'),
}
_PACKED = {b'BZh': 'bzip2', b'\xfd7zXZ\x00': 'xz', b'\x28\xb5\x2f\xfd': 'zstd', b'\x1f\x8b': 'gzip'}


def _guess_format(path: Path) -> str:
    if path.is_dir():
        return _guess_folder(path)
    if path.name.endswith(('.tar.gz', '.tgz', '.tar')):
        return 'html'
    if path.name.removesuffix('.gz').endswith(_MARKDOWN):
        return 'text'
    return _guess_lines(path) or ('text' if path.name.endswith('.txt') else 'tsv')


def _guess_folder(folder: Path) -> str:
    texts = _text_files(folder)
    prose = _prose_files(folder)
    documents = [file for file in prose if not file.name.lower().startswith('readme')]
    has_pages = any(folder.rglob('*.html'))
    if has_pages and not texts and not documents:
        return 'html'
    if all(is_documentation(file) for file in (*texts, *prose)):
        if warc_files(folder):
            return 'clueweb'
        if disk_files(folder):
            return 'trec-disks'
    if records := _files(folder, _RECORDS):
        return _guess_lines(records[0]) or 'tsv'
    if has_pages and documents:
        raise InputError(
            f'folder {folder} holds text files and HTML: say which of them are the corpus',
            parameters=('corpus_format=text', 'corpus_format=html'),
        )
    if has_pages:
        return 'html'
    if not texts and not prose:
        suffixes = (*_TEXT_SUFFIXES, *_MARKDOWN, '.html')
        raise InputError(f'folder {folder} holds no corpus files ({", ".join(suffixes)})')
    # text files can also hold lines or documents of another format
    return (_guess_lines(texts[0]) if texts else '') or 'text'


def _guess_lines(path: Path) -> str:
    """The format of a file by its first bytes; '' if they are of none."""
    with open_binary(existing_file(path, 'corpus')) as stream:
        start = stream.read(4096).removeprefix(BYTE_ORDER_MARK).lstrip()
    for magic, packer in _PACKED.items():
        if start.startswith(magic):
            raise InputError(
                f'corpus {path} is packed with {packer}: unpack it, or give it as a .gz file'
            )
    if start[:1] == b'{':
        return 'jsonl'
    if re.match(rb'(doc|query)\t[^\t\n]*\t', start):
        return 'cedr'
    if start[:5].upper() == b'<DOC>':
        return 'trec'
    lines = start.splitlines()
    # the last one may have been cut
    whole = lines[:-1] or lines
    has_docids = all(re.match(rb'\S+\t', line) for line in whole if line.strip())
    return 'tsv' if whole and has_docids else ''


class CorpusTexts:
    """Passage text by docid from a corpus: one pass that stores the texts of the `wanted` docids
    only.
    """

    def __init__(self, corpus: Iterable[Passage], wanted: Iterable[str]) -> None:
        needed = set(wanted)
        self._texts = {passage.docid: passage.text for passage in corpus if passage.docid in needed}

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """The texts in the order of `docids`; None for a docid that the corpus lacks or that was
        not wanted.
        """
        return [self._texts.get(docid) for docid in docids]


# Punctuation on its own, and punctuation at a word: tokenised text has the first alone.
_APART = re.compile(r'(?<=\s)[.,;](?=\s|$)|-LRB-|(?<!\S)``(?=\s)')
_ATTACHED = re.compile(r'\w[,;:?!](?=\s|$)')
# Undo tokenisation, such as that of the demo's passages; applied in this order. Each takes time in
# proportion to the
# text: a run of spaces is read once, from its first.
_MENDED = (
    (re.compile(r"(?<!\S)``\s*+|(?<!\s)\s*+''(?=\W|$)"), '"'),
    (re.compile(r'-LRB-\s*'), '('),
    (re.compile(r'(?<!\s)\s*+-RRB-'), ')'),
    (re.compile(r'(?<!\s)\s++([,.;:?!%)\]}])(?=\s|$|["\')\]},.;:])'), r'\1'),
    (re.compile(r'([(\[{])\s+'), r'\1'),
    (re.compile(r"\b(\w++) (n't|'s|'re|'ve|'ll|'d|'m)\b"), r'\1\2'),
    (re.compile(r"(s) '(?=\s|$)"), r"\1'"),
    (re.compile(r'(?<=[^\W\d_]) - (?=[^\W\d_])'), '-'),
    (re.compile(r'(?<=\S) --(?= \S)'), ' –'),
)


def mended(text: str) -> str:
    """Tokenised text in ordinary spelling: quotes for `` and '', no spaces before commas.

    Other text is not changed: not tokenised is what has a comma, say, at a word, or none apart.
    """
    if not _APART.search(text) or _ATTACHED.search(text):
        return text
    for pattern, replacement in _MENDED:
        text = pattern.sub(replacement, text)
    return text
