"""Whether downloads are forbidden, and where downloaded files are stored."""

from __future__ import annotations

import os
from pathlib import Path

from pyserini_repbert.files import cache_folder

OFFLINE_VARIABLE = 'PYSERINI_REPBERT_OFFLINE'
_HUB_VARIABLE = 'HF_HUB_OFFLINE'


def is_offline() -> bool:
    """Whether downloads are forbidden.

    They are by `--offline`, which sets $PYSERINI_REPBERT_OFFLINE, and by $HF_HUB_OFFLINE.
    """
    values = [os.environ.get(name, '') for name in (OFFLINE_VARIABLE, _HUB_VARIABLE)]
    return any(value not in ('', '0') for value in values)


def downloads_folder() -> Path:
    """Where downloaded files are stored, and where a user may put them by hand."""
    return cache_folder() / 'downloads'


def forbid_downloads(forbidden: bool) -> None:
    """Forbid downloads from now on, to Hugging Face's libraries too, as `--offline` does.

    False changes nothing.
    """
    if forbidden:
        os.environ[OFFLINE_VARIABLE] = '1'
        os.environ[_HUB_VARIABLE] = '1'
