"""Fetches resources: downloads go on where they stopped, and are verified, unpacked and recorded."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert.catalog import cache_folder
from pyserini_repbert.download import downloads_folder, fetch
from pyserini_repbert.errors import DamagedFileError, PyseriniRepbertError, exhausted
from pyserini_repbert.files import atomic_file, digest
from pyserini_repbert.regression.fetching.needs import Need
from pyserini_repbert.regression.fetching.unpacking import unpack
from pyserini_repbert.regression.resources import RECORD, entry_of

Progress = Callable[[int], object]


@dataclass(frozen=True)
class Fetched:
    """The outcome of fetching a resource; `problem` is '' if it is here now."""

    need: Need
    problem: str = ''


def fetch_all(
    needs: Sequence[Need],
    on_start: Callable[[Need], Progress | None] = lambda need: None,
    on_end: Callable[[Fetched], object] = lambda fetched: None,
) -> list[Fetched]:
    """Fetch one resource after the other; one that fails does not stop the others.

    Parameters
    ----------
    on_start : called before each; what it returns is called with the bytes that arrive
    on_end : called with each outcome
    """
    found = []
    for need in needs:
        try:
            fetch_one(need, on_start(need))
            outcome = Fetched(need)
        except PyseriniRepbertError as error:
            outcome = Fetched(need, str(error))
        except OSError as error:
            limit = exhausted(error, need.target or cache_folder(), need.size_text)
            outcome = Fetched(need, str(limit or f'{error.filename or need.resource.name}: {error.strerror or error}'))
        found.append(outcome)
        on_end(outcome)
    return found


def fetch_one(need: Need, on_progress: Progress | None = None) -> Path:
    """The file or folder of a resource, downloaded and unpacked.

    Raises
    ------
    MissingResourceError
        where it cannot be reached, or a web page comes instead
    DamagedFileError
        where it differs from the published file or from the one fetched before, or has another layout
    ExhaustedError
        where there is no room
    """
    if need.resource.catalog:
        return _from_catalog(need, on_progress)
    resource, target = need.resource, need.target
    assert target is not None  # `reading` requires a path beside an address
    if resource.unpack:
        folder = downloads_folder()
        names = [resource.file] if resource.file else [_name(address) for address in resource.addresses]
    else:
        folder, names = target.parent, [target.name]
    # a checksum of something below `{data}` is that of a packed copy, not of what the address gives
    md5 = resource.checksum[1] if resource.checksum and resource.checksum[0] == 'md5' else None
    parts = []
    for name, address in zip(names, resource.addresses, strict=True):
        parts.append(fetch(address, folder / name, md5, need.size_text, resource.name, on_progress))
    if resource.unpack:
        unpack(resource.unpack, parts, target)
    if (md5 is None or resource.unpack) and target.is_file():
        _record(target, resource.addresses)
    return target


def _name(address: str) -> str:
    return urllib.parse.urlsplit(address).path.rpartition('/')[2]


def _record(target: Path, addresses: Sequence[str]) -> None:
    """Write the SHA-256 of a file beside it.

    Raises DamagedFileError, and removes the file, where it differs from that of an earlier fetch.
    """
    record = target.with_name(f'{target.name}{RECORD}')
    found = digest(target)
    if record.is_file() and (known := record.read_text(encoding='utf-8').partition(' ')[0]) != found:
        target.unlink()
        raise DamagedFileError(
            f'{" and ".join(addresses)} gave another file than when it was first fetched (sha256 {found[:16]}…, then '
            f'{known[:16]}…): see what has changed, then delete {record} and fetch it again'
        )
    with atomic_file(record) as stream:
        stream.write(f'{found}  {target.name}\n')


def _from_catalog(need: Need, on_progress: Progress | None) -> Path:
    entry = entry_of(need.resource)
    if entry.kind == 'collections':
        from pyserini_repbert.names.corpora import collection_file

        return collection_file(entry)
    if 'hub' in entry.values:
        from pyserini_repbert.models.checkpoints.hub import hub_checkpoint

        return hub_checkpoint(entry)
    if 'download' in entry.values:
        from pyserini_repbert.models.convert.folder import downloaded_checkpoint

        return downloaded_checkpoint(entry, on_progress)
    from pyserini_repbert.catalog import package_folder

    return package_folder(entry)  # says what to install
