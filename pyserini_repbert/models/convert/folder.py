"""Published checkpoints of the catalog: downloaded, verified and converted on first use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyserini_repbert import catalog


def downloaded_checkpoint(entry: catalog.Entry, on_progress: Callable[[int], object] | None = None) -> Path:
    """The checkpoint folder of a catalog entry in the cache, downloaded, verified and converted on first use."""
    folder = catalog.cache_folder() / 'checkpoints' / entry.name
    if not folder.is_dir():
        from pyserini_repbert.download import fetch_entry

        fetched = fetch_entry(entry, on_progress)
        if entry.values['convert'] == 'tensorflow':
            from pyserini_repbert.models.convert.tensorflow import convert_tensorflow

            convert_tensorflow(fetched, folder, entry.values['ranking'])
        elif entry.values['convert'] == 'epic':
            from pyserini_repbert.models.convert.epic import convert_epic

            convert_epic(fetched, folder, entry.values['ranking'])
        else:
            from pyserini_repbert.models.convert.repbert import convert_repbert

            convert_repbert(fetched, folder, entry.values['ranking'])
    return folder
