"""The files of a graph of neighbours, `neighbours/`."""

from __future__ import annotations

import re

from pyserini_repbert.folder_forms import TEMPORARY, FolderForm

NEIGHBOURS = 'neighbours'
EDGES = 'edges.npy'
RECORD = 'neighbours.json'
LOCK = '.neighbours.lock'
NEIGHBOURS_FORM = FolderForm(
    'graph of neighbours', (re.escape(EDGES), rf'\.?{re.escape(RECORD)}(\.{TEMPORARY})?')
)
# What a graph has in the folder of its index, also while it is replaced.
NEIGHBOURS_FILES = (
    re.escape(LOCK),
    *NEIGHBOURS_FORM.below(rf'({NEIGHBOURS}|\.{NEIGHBOURS}\.{TEMPORARY})'),
)
