"""The type of a file, in a word: what filters and the search page call it."""

from __future__ import annotations

from pathlib import PurePosixPath

from pyserini_repbert.data.suffixes import (
    ASCIIDOC,
    LOGS,
    MAIL,
    MAILBOXES,
    MARKDOWN,
    NOTEBOOKS,
    ORG,
    PAGES,
    PLAIN_TEXT,
    RESTRUCTURED,
    SOURCES,
    WORKBOOKS,
    has_suffix,
)

# Files of all other suffixes are called by the suffix: 'pdf', 'csv', 'epub'.
_TYPES = {
    MARKDOWN: 'markdown',
    PLAIN_TEXT: 'text',
    RESTRUCTURED: 'rst',
    ASCIIDOC: 'asciidoc',
    ORG: 'org',
    PAGES: 'html',
    (*MAIL, *MAILBOXES, '.msg'): 'mail',
    NOTEBOOKS: 'notebook',
    SOURCES: 'code',
    LOGS: 'log',
    ('.docx',): 'word',
    ('.pptx',): 'powerpoint',
    ('.xlsx',): 'excel',
    ('.tex', '.latex'): 'latex',
    ('.jsonl', '.ndjson'): 'json',
}
_TYPE_OF_SUFFIX: dict[str, str] = {}
for _suffixes, _name in _TYPES.items():
    _TYPE_OF_SUFFIX |= dict.fromkeys(_suffixes, _name)
_PACKED = '.gz'


# Whose documents are rows.
_TABLES = ('csv', 'tsv', 'parquet')


def is_table(name: str) -> bool:
    """Whether the documents of a file are the rows of a table."""
    return file_type(name) in _TABLES


def is_workbook(name: str) -> bool:
    """Whether the documents of a file may be rows of tables, and a text beside them."""
    return has_suffix(name, WORKBOOKS)


def suffix_of(name: str) -> str:
    """The suffix of a file, in small letters and without its point; '' for none.

    Of a packed file, the suffix before `.gz`.
    """
    path = PurePosixPath(name.lower().removesuffix(_PACKED))
    return path.suffix.removeprefix('.')


def file_type(name: str) -> str:
    """The type of a file, by its name: 'markdown', 'mail', 'word', 'pdf'.

    A page of a manual (`ls.1`) is 'manual', a file without a suffix is 'text'.
    """
    suffix = suffix_of(name)
    if not suffix:
        return 'text'
    if suffix.isdecimal():
        return 'manual'
    return _TYPE_OF_SUFFIX.get(f'.{suffix}', suffix)
