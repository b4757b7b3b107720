"""How the names of files end, by what the files hold. A suffix counts in any case of its letters.

Text, Markdown and records may be packed, with .gz behind.
"""

from __future__ import annotations

JSON = ('.json', '.jsonl')
RECORDS = (*JSON, '.tsv', '.trec')
MARKDOWN = ('.md', '.markdown', '.mdown', '.mkd', '.mkdn')
PLAIN_TEXT = ('.txt', '.text')
PAGES = ('.html', '.htm')
ARCHIVES = ('.tar', '.tar.gz', '.tgz')
_PACKED = '.gz'


def has_suffix(name: str, suffixes: tuple[str, ...]) -> bool:
    """Whether the name of a file ends in one of these."""
    return name.lower().endswith(suffixes)


def has_suffix_or_packed(name: str, suffixes: tuple[str, ...]) -> bool:
    """Whether the name of a file ends in one of these, with or without .gz behind."""
    return name.lower().removesuffix(_PACKED).endswith(suffixes)


def without_suffix(name: str, suffixes: tuple[str, ...]) -> str:
    """The name of a file without the first of these that it ends in."""
    for suffix in suffixes:
        if has_suffix(name, (suffix,)):
            return name[: -len(suffix)]
    return name
