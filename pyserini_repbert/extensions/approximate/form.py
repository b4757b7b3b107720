"""The files of an approximate index, `ann/`."""

from __future__ import annotations

import re

from pyserini_repbert.folder_forms import TEMPORARY, FolderForm

ANN = 'ann'
INDEX = 'index.faiss'
RECORD = 'ann.json'
CLEARED = '.ann-cleared'  # a replaced index until it is removed
LOCK = '.ann.lock'
ANN_FORM = FolderForm('approximate index', (re.escape(INDEX), re.escape(RECORD)))
# The files of an approximate index in the folder around it, also of one that is being replaced.
ANN_FILES = ANN_FORM.below(rf'({ANN}|\{CLEARED}|\.{ANN}\.{TEMPORARY})')
