"""The files of a bundle, of its shards and of its parts: only these are removed."""

from __future__ import annotations

import re
from functools import cache

from pyserini_repbert.extension import loaded
from pyserini_repbert.folder_forms import TEMPORARY, FolderForm
from pyserini_repbert.index.manifest import MANIFEST, PART, SETTINGS, SHARD
from pyserini_repbert.index.records import (
    BLOCKS,
    DOCIDS,
    OFFSETS,
    SCALES,
    TERMS,
    TEXT_OFFSETS,
    TEXTS,
    VECTORS,
    WEIGHTS,
    WHOLE,
)

ENCODING_LOCK = '.encoding.lock'
_SHARD_FILES = (
    DOCIDS,
    TEXTS,
    TEXT_OFFSETS,
    VECTORS,
    WHOLE,
    SCALES,
    TERMS,
    BLOCKS,
    WEIGHTS,
    OFFSETS,
    SHARD,
)
_SHARD_NAME = '(shard-[0-9]{5,})'
PART_NAME = f'({PART}[0-9]{{1,9}}-of-[0-9]{{1,9}})'

SHARD_FORM = FolderForm(
    'shard', (*map(re.escape, _SHARD_FILES), rf'\.{re.escape(SHARD)}\.{TEMPORARY}')
)
# A shard that is being written, or that a killed process left.
UNFINISHED_SHARD = rf'\.{_SHARD_NAME}\.{TEMPORARY}'
_RECORD = '|'.join(map(re.escape, (MANIFEST, SETTINGS)))
# The files of a bundle, and of a part, which is itself a bundle.
_OWN_FILES = (
    _RECORD,
    rf'\.({_RECORD})\.{TEMPORARY}',
    re.escape(ENCODING_LOCK),
    *SHARD_FORM.below(_SHARD_NAME),
    *SHARD_FORM.below(UNFINISHED_SHARD),
)
# The record of the command that encoded a part.
PART_RECORD = rf'{PART_NAME}\.record\.json'
# Of a part, in earlier releases.
EARLIER_LOCK = rf'\.{PART_NAME}\.lock'
_FILES_OF_PARTS = (PART_RECORD, EARLIER_LOCK, rf'\.{PART_RECORD}\.{TEMPORARY}')


@cache
def part_form() -> FolderForm:
    """The files of a part of a bundle, with what extensions keep there."""
    files = list(_OWN_FILES)
    for part in loaded('in_bundles'):
        files += part.files
    return FolderForm('part of an index', tuple(files))


@cache
def bundle_form() -> FolderForm:
    """The files of a bundle, with its parts, and what extensions keep there."""
    files = part_form().files
    return FolderForm('index', (*files, *part_form().below(PART_NAME), *_FILES_OF_PARTS))
