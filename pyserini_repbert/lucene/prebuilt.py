"""Pyserini's prebuilt Lucene indexes by name, in Pyserini's cache."""

from __future__ import annotations

import difflib
from pathlib import Path

from pyserini_repbert.download import is_offline
from pyserini_repbert.errors import MissingResourceError, UnknownNameError
from pyserini_repbert.files import human_size
from pyserini_repbert.lucene.compat import import_pyserini, packed_size, prebuilt_tables


def prebuilt_index(name: str, download: bool = False) -> Path:
    """The folder of a prebuilt index of Lucene, of words or of impacts.

    Parameters
    ----------
    name : Pyserini's name for it ('msmarco-v1-passage')
    download : fetch it when it is not in Pyserini's cache

    Raises
    ------
    UnknownNameError
        for an unknown name, with the nearest names
    MissingResourceError
        when the index is not there, and either may not or cannot be downloaded
    """
    tables = prebuilt_tables()
    lucene = (tables['sparse'], tables['impact'])
    entry = next((table[name] for table in lucene if name in table), None)
    if entry is None:
        close = difflib.get_close_matches(name, [known for table in lucene for known in table], n=3, cutoff=0.6)
        near = f'; did you mean {", ".join(close)}?' if close else ''
        raise UnknownNameError(
            f"'{name}' is neither the folder of a Lucene index nor a prebuilt index of Pyserini{near}"
        )
    util = import_pyserini('pyserini.util')
    place = Path(util.get_cache_home()) / 'indexes'
    # Pyserini 1.6's check_downloaded derives the folder from the address, while the folder is named after the file
    unpacked = place / f'{str(entry.get("filename", "")).removesuffix(".tar.gz")}.{entry.get("md5")}'
    if not unpacked.is_dir() and not util.check_downloaded(name):
        packed = packed_size(entry)
        size = 'size unknown' if packed is None else human_size(packed)
        by_hand = f'fetch {entry["urls"][0]} ({size}) and unpack it below {place}'
        if is_offline() or not download:
            why = 'downloads are off' if is_offline() else 'it has to be downloaded first'
            raise MissingResourceError(
                f"prebuilt index '{name}' is not here and {why}: have it downloaded, or {by_hand}",
                parameters=('download',),
            )
        try:
            return Path(util.download_prebuilt_index(name, verbose=False))
        except Exception as error:  # Pyserini raises ValueError, AssertionError (checksum) and what its libraries raise
            raise MissingResourceError(
                f"prebuilt index '{name}' could not be fetched ({error}): try again, or {by_hand}"
            ) from error
    return Path(util.download_prebuilt_index(name, verbose=False))
