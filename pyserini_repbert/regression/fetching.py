"""Fetches resources: downloads go on where they stopped, and are verified, unpacked and recorded."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable
from pathlib import Path

from pyserini_repbert.catalog import package_folder
from pyserini_repbert.checksums import digest
from pyserini_repbert.download import downloads_folder, fetch
from pyserini_repbert.errors import DamagedFileError, PyseriniRepbertError, exhausted
from pyserini_repbert.files import atomic_file, cache_folder
from pyserini_repbert.regression.resources import RECORD, NeededResource, entry_of
from pyserini_repbert.regression.unpacking import unpack


def fetched(missing: NeededResource, on_progress: Callable[[int], object]) -> str:
    """Fetch a resource: '' once it is here, downloaded and unpacked, else why it is not.

    `on_progress` is called with the number of bytes that arrive.
    """
    try:
        if missing.resource.catalog:
            _fetch_entry(missing, on_progress)
        else:
            _fetch_file(missing, on_progress)
    except PyseriniRepbertError as error:
        return str(error)
    except OSError as error:
        limit = exhausted(error, missing.target or cache_folder(), missing.size)
        return str(limit or f'{error.filename or missing.resource.name}: {error.strerror or error}')
    return ''


def _fetch_file(missing: NeededResource, on_progress: Callable[[int], object]) -> None:
    resource, target = missing.resource, missing.target
    assert target is not None  # a resource with an address has a path
    folder, names = target.parent, [target.name]
    if resource.unpack:
        folder = downloads_folder()
        paths = (urllib.parse.urlsplit(address).path for address in resource.address)
        names = [resource.file] if resource.file else [path.rpartition('/')[2] for path in paths]
    md5 = resource.md5 or None  # a sha256 is that of the file at `path`, not of what the address gives
    parts = [
        fetch(address, folder / name, md5, missing.size, resource.name, on_progress)
        for name, address in zip(names, resource.address, strict=True)
    ]
    if resource.unpack:
        unpack(resource.unpack, parts, target)
    if (md5 is None or resource.unpack) and target.is_file():
        _record(target, ' and '.join(resource.address))


def _record(target: Path, source: str) -> None:
    """Write the SHA-256 of a file beside it.

    Raises DamagedFileError, and removes the file, where it differs from that of an earlier fetch.
    """
    record = target.with_name(f'{target.name}{RECORD}')
    sha256 = digest(target)
    if record.is_file() and (known := record.read_text(encoding='utf-8').partition(' ')[0]) != sha256:
        target.unlink()
        raise DamagedFileError(
            f'{source} gave another file than when it was first fetched (sha256 {sha256[:16]}…, then {known[:16]}…): '
            f'see what has changed, then delete {record} and fetch it again'
        )
    with atomic_file(record) as stream:
        stream.write(f'{sha256}  {target.name}\n')


def _fetch_entry(missing: NeededResource, on_progress: Callable[[int], object]) -> None:
    entry = entry_of(missing.resource)
    if entry.kind == 'collections':
        from pyserini_repbert.names.corpora import collection_file

        collection_file(entry)
    elif 'hub' in entry.values:
        from pyserini_repbert.models.checkpoints.hub import hub_checkpoint

        hub_checkpoint(entry)
    elif 'download' in entry.values:
        from pyserini_repbert.models.checkpoints.hub import downloaded_checkpoint

        downloaded_checkpoint(entry, on_progress)
    else:
        package_folder(entry)  # says what to install
