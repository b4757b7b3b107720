"""The files of a folder that `adapt` writes."""

from __future__ import annotations

import re

from pyserini_repbert.folder_forms import FolderForm

ADAPTED = 'adapted.json'
QUERY_MAP = 'query_map.npy'
ADAPTED_FORM = FolderForm('adapted search', (re.escape(ADAPTED), re.escape(QUERY_MAP)))
