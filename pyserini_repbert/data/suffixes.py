"""How the names of files end, by what the files hold. A suffix counts in any case of its letters.

All but Parquet, OpenDocument, RTF and Office files may be packed, with .gz behind.
"""

from __future__ import annotations

from pathlib import Path

JSON_LINES = ('.jsonl', '.ndjson')
JSON = ('.json', *JSON_LINES)
TAB_SEPARATED = ('.tsv',)
RECORDS = (*JSON, *TAB_SEPARATED, '.trec')
MARKDOWN = ('.md', '.markdown', '.mdown', '.mkd', '.mkdn', '.mdx')
PLAIN_TEXT = ('.txt', '.text')
RESTRUCTURED = ('.rst',)
ASCIIDOC = ('.adoc', '.asciidoc')
ORG = ('.org',)
MARKED_UP = (*RESTRUCTURED, *ASCIIDOC, *ORG)
PAGES = ('.html', '.htm', '.xhtml')
COMMA_SEPARATED = ('.csv',)
PARQUET = ('.parquet',)
APPLE_MAIL = ('.emlx',)
MAIL = ('.eml', *APPLE_MAIL)
MAILBOXES = ('.mbox',)
NOTEBOOKS = ('.ipynb',)
# What the extra 'files' reads.
OPEN_DOCUMENTS = ('.odt', '.rtf')
OFFICE = ('.pdf', '.docx', '.pptx', '.epub', '.msg')
WORKBOOKS = ('.xlsx', '.ods')
# What the extra 'files' reads without its marks.
TYPESET = ('.tex', '.latex', '.typ', '.mediawiki', '.wiki', '.docbook', '.dbk')
LOGS = ('.log',)
# Programs, their settings and their styles.
SOURCES = tuple(
    '.bash .bat .c .cc .cfg .clj .cmake .conf .cpp .cs .css .cxx .dart .ex .exs .f90 .go .gradle '
    '.groovy .h .hpp .hs .ini .java .jl .js .jsx .kt .less .lua .mjs .ml .php .pl .properties '
    '.proto .ps1 .py .pyi .r .rb .rs .scala .scss .sh .sql .svelte .swift .tf .toml .ts .tsx '
    '.vue .yaml .yml .zig .zsh'.split()
)
ARCHIVES = ('.tar', '.tar.gz', '.tgz')
_PROSE = (*MARKDOWN, *PLAIN_TEXT, *MARKED_UP)
_MAY_BE_PACKED = (
    *_PROSE,
    *RECORDS,
    *COMMA_SEPARATED,
    *SOURCES,
    *PAGES,
    *MAIL,
    *MAILBOXES,
    *NOTEBOOKS,
    *TYPESET,
    *LOGS,
)
_PACKED = '.gz'


def has_suffix(name: str, suffixes: tuple[str, ...]) -> bool:
    """Whether the name of a file ends in one of these."""
    return name.lower().endswith(suffixes)


def has_suffix_or_packed(name: str, suffixes: tuple[str, ...]) -> bool:
    """Whether the name of a file ends in one of these, with or without .gz behind."""
    return name.lower().removesuffix(_PACKED).endswith(suffixes)


def without_suffix(name: str, suffixes: tuple[str, ...]) -> str:
    """The name of a file without the first of these that it ends in, with or without .gz behind."""
    for suffix in suffixes:
        if has_suffix_or_packed(name, (suffix,)):
            packed = _PACKED if has_suffix(name, (_PACKED,)) else ''
            return name[: -len(suffix + packed)]
    return name


def is_readme(path: Path) -> bool:
    """Whether a text describes a folder, by the text's name."""
    return path.name.lower().startswith('readme') and has_suffix_or_packed(path.name, _PROSE)


def is_read(path: Path) -> bool:
    """Whether a reader of this package reads files of a file's suffix."""
    if has_suffix_or_packed(path.name, _MAY_BE_PACKED):
        return True
    return has_suffix(path.name, (*PARQUET, *OFFICE, *WORKBOOKS, *OPEN_DOCUMENTS))
