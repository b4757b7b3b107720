"""The files of a Lucene index that this package builds: only these are removed."""

from __future__ import annotations

import re
from pathlib import Path

from pyserini_repbert.checksums import CHECKSUMS
from pyserini_repbert.files import StrPath
from pyserini_repbert.folder_forms import FolderForm
from pyserini_repbert.lucene.index_record import MANIFEST

_SEGMENT = '_[0-9a-z]+'
_OF_SEGMENTS = 'si cfs cfe fnm fdt fdx fdm nvd nvm tvd tvx tvm kdd kdi kdm dii dim liv'
# As in Lucene's IndexFileNames: a segment, its generation, its codec's name, and its content.
LUCENE_FILES = (
    '(pending_)?segments_[0-9a-z]+',
    r'write\.lock',
    rf'{_SEGMENT}(_[0-9a-z]+)?\.({_OF_SEGMENTS.replace(" ", "|")})',
    # Each release adds kinds of files to its codecs.
    rf'{_SEGMENT}(_[0-9a-z]+)?_Lucene[A-Za-z0-9]*_[0-9a-z]+\.[a-z]{{3,4}}',
    rf'{_SEGMENT}_[A-Za-z0-9_-]+\.tmp',
)
LUCENE_FORM = FolderForm('Lucene index', (*LUCENE_FILES, re.escape(MANIFEST), CHECKSUMS))


def is_lucene_index(folder: StrPath) -> bool:
    """Whether a folder is a Lucene index."""
    return Path(folder).is_dir() and any(Path(folder).glob('segments_*'))
