"""Checkpoints by catalog name or folder, wherever they come from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.models.checkpoint_folder import WEIGHTS, Checkpoint, load_strictly

__all__ = ['WEIGHTS', 'Checkpoint', 'load_strictly', 'open_checkpoint']


def open_checkpoint(
    name: str | Path, kind: str = 'encoders', on_progress: Callable[[int], object] | None = None
) -> Checkpoint:
    """A checkpoint by catalog name or folder; downloaded and converted on first use where the catalog says so.

    Raises
    ------
    UnknownNameError
        for what is neither, with the nearest names
    MissingResourceError
        offline, or where its pip package is not installed
    """
    entry = catalog.find(kind, str(name))
    if entry is None and Path(name).is_dir():
        folder = Path(name)
        return Checkpoint.open(folder, str(name), base=_base_of(folder, kind))
    entry = entry or catalog.get(kind, str(name))
    if 'package' in entry.values:
        folder = catalog.package_folder(entry)
    elif 'hub' in entry.values:
        from pyserini_repbert.models.hub import hub_checkpoint

        folder = hub_checkpoint(entry)
    else:
        from pyserini_repbert.models.conversion import downloaded_checkpoint

        folder = downloaded_checkpoint(entry, on_progress)
    return Checkpoint.open(folder, entry.name, entry.values.get('ranking'), _base_of(folder, kind))


def _base_of(folder: Path, kind: str) -> Checkpoint | None:
    """The checkpoint that an adapter in `folder` adapts, named by its adapter_config.json."""
    path = folder / 'adapter_config.json'
    if not path.is_file():
        return None
    try:
        name = json.loads(path.read_text(encoding='utf-8'))['base_model_name_or_path']
    except (ValueError, KeyError) as error:
        raise DamagedFileError(f'{path} does not name its base ({error!r}): fetch the adapter again') from error
    known = (one for one in (kind, 'encoders', 'rerankers', 'bases') if catalog.find(one, name))
    return open_checkpoint(name, next(known, kind))
