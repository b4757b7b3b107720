"""What a file of lines or records is, by its first bytes."""

from __future__ import annotations

import re
from pathlib import Path

from pyserini_repbert.data.suffixes import JSON, has_suffix_or_packed
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import BYTE_ORDER_MARK, existing_file, open_binary

_START = 4096
# Bytes that text never has, except the terminals' escape.
_CONTROL = re.compile(rb'[\x00-\x08\x0e-\x1a\x1c-\x1f]')
# How the names of pages of manuals end, and a line near their beginning.
_SECTION = re.compile(r'\.[1-9][a-z]{0,5}$')
_ROFF = re.compile(rb'^[.\x27](?:TH|Dd|Dt|so|\\")', re.MULTILINE)
# Bytes that packed files begin with.
_PACKED = {b'BZh': 'bzip2', b'\xfd7zXZ': 'xz', b'\x28\xb5\x2f\xfd': 'zstd', b'\x1f\x8b': 'gzip'}


def guess_lines(path: Path) -> str:
    """The format of a file by its first bytes; '' if they are of none.

    Raises InputError for a file that is packed, but does not say so in its name.
    """
    start = first_bytes(path).removeprefix(BYTE_ORDER_MARK).lstrip()
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


def first_bytes(path: Path) -> bytes:
    """The beginning of a file, unpacked if its name ends in .gz."""
    with open_binary(existing_file(path, 'corpus')) as stream:
        return stream.read(_START)


def is_text(path: Path) -> bool:
    """Whether a non-empty file begins like text in any encoding."""
    start = first_bytes(path)
    return bool(start) and _CONTROL.search(start) is None


def is_manual(path: Path) -> bool:
    """Whether a file is a page of a manual for `man`, by its name and its first lines."""
    name = path.name.lower().removesuffix('.gz')
    return _SECTION.search(name) is not None and _ROFF.search(first_bytes(path)) is not None


def is_binary(path: Path) -> bool:
    """Whether the beginning of a file is not text in UTF-8."""
    start = first_bytes(path)
    if b'\0' in start:
        return True
    try:
        # A character may have been cut at the end.
        start[:-4].decode('utf-8')
    except UnicodeDecodeError as error:
        return error.start < len(start) - 8
    return False


def _is_json_array(path: Path, start: bytes) -> bool:
    """Whether a file is a list of JSON."""
    return has_suffix_or_packed(path.name, JSON) and start[:1] == b'['
