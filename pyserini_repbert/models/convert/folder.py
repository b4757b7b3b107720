"""Published checkpoints of the catalog, which are downloaded and converted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyserini_repbert import catalog


def downloaded_checkpoint(entry: catalog.Entry, on_progress: Callable[[int], object] | None = None) -> Path:
    """The checkpoint folder of a catalog entry in the cache; on first use it is downloaded, verified and converted.

    Raises MissingResourceError, with size and address, where it cannot be fetched.

    Parameters
    ----------
    on_progress : called with the number of bytes downloaded since the last call
    """
    folder = catalog.cache_folder() / 'checkpoints' / entry.name
    if not folder.is_dir():
        from pyserini_repbert.download import fetch_entry
        from pyserini_repbert.models.convert.epic import convert_epic
        from pyserini_repbert.models.convert.repbert import convert_repbert
        from pyserini_repbert.models.convert.tensorflow import convert_tensorflow

        converters: dict[str, Callable[..., None]] = {
            'tensorflow': convert_tensorflow,
            'epic': convert_epic,
            'repbert': convert_repbert,
        }
        converters[entry.values['convert']](fetch_entry(entry, on_progress), folder, entry.values['ranking'])
    return folder
