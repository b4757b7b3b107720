"""Whether the resources of a regression are here; if not, how to get them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.checksums import remembered_digest
from pyserini_repbert.download import stated_bytes
from pyserini_repbert.errors import DamagedFileError, PyseriniRepbertError
from pyserini_repbert.files import cache_folder
from pyserini_repbert.regression.placeholders import fill
from pyserini_repbert.regression.schema import Resource, ResourceOrigin

# Suffix of the file with the checksum of a fetched file, if none was published.
RECORD = '.sha256'
# What its second line begins with, a comment to `sha256sum -c`: the address of the file.
SOURCE = '# from '
_BY_HAND = {
    ResourceOrigin.RECIPE: 'not published; to be trained',
    ResourceOrigin.AGREEMENT: 'by agreement',
    ResourceOrigin.PAGE: 'by hand',
}
# The folders in which files are looked for, in this order.
_LOOKED_IN = ('{data}', '{downloads}')


@dataclass(frozen=True, slots=True)
class MissingResource:
    """A resource that does not exist.

    Attributes
    ----------
    size : as the regression or the catalog states it
    get : the command, or the sentence, that gets it
    target : where the file is put; None for the cache, and for a resource without a path
    """

    resource: Resource
    size: str
    get: str
    licence: str
    target: Path | None = None

    @property
    def key(self) -> str:
        """Identifies the resource, independent of the name in a regression."""
        return str(self.target or self.resource.source)

    @property
    def text(self) -> str:
        """What it is, its size, and how to get it."""
        size = f' ({self.size})' if self.size else ''
        return f'{self.resource.what}{size}: {self.get}'

    @property
    def is_fetched(self) -> bool:
        """Whether `fetch` can download it."""
        return self.resource.origin in (ResourceOrigin.ADDRESS, ResourceOrigin.CATALOG)

    @property
    def n_bytes(self) -> int | None:
        """Bytes to download; None if the size is unknown.

        For '987 MB packed, 2.9 GB unpacked', the packed size.
        """
        return stated_bytes(self.size)


def entry_of(resource: Resource) -> catalog.Entry:
    """The catalog entry of a resource with the origin CATALOG."""
    kind, _, name = resource.catalog.partition('/')
    return catalog.get(kind, name)


def location(resource: Resource, paths: Mapping[str, str]) -> str:
    """What a command is given for the resource.

    That is its name in the catalog, or its path, or without one its own name.

    A path below `{data}` or `{downloads}` is looked for in both, in the user's `{data}` first.
    """
    if resource.catalog:
        return resource.catalog.partition('/')[2]
    if not resource.path:
        return resource.name
    folder, _, below = resource.path.partition('/')
    if folder in _LOOKED_IN:
        for alternative in _LOOKED_IN:
            path = fill(f'{alternative}/{below}', paths)
            if Path(path).exists():
                return path
    return fill(resource.path, paths)


def find_missing(resource: Resource, paths: Mapping[str, str]) -> MissingResource | None:
    """The missing part of a resource, and how to get it; None if the resource is here."""
    if resource.catalog:
        return _find_missing_entry(resource, entry_of(resource))
    path = location(resource, paths)
    if resource.path and Path(path).exists():
        return None
    target = None
    if resource.path:
        # Never below the user's `{data}`.
        below_downloads = re.sub(r'^\{data\}', '{downloads}', resource.path)
        target = Path(fill(below_downloads, paths))
    get = _how_to_get(resource, path, paths)
    return MissingResource(resource, resource.size, get, resource.licence, target)


def _how_to_get(resource: Resource, path: str, paths: Mapping[str, str]) -> str:
    """The command, or the sentence, that gets a resource."""
    source = fill(resource.source, paths)
    if resource.origin is ResourceOrigin.UNPUBLISHED:
        return f'not published; {source}'
    if resource.origin is ResourceOrigin.OTHER_SYSTEM:
        return f'a system of others; {source}'
    expected = f' (expected at {path})' if resource.path else ''
    if resource.origin in _BY_HAND:
        return f'{_BY_HAND[resource.origin]}: {source}{expected}'
    is_address = source.startswith(('http://', 'https://'))
    if is_address and resource.unpack:
        addresses = ' and '.join(map(shlex.quote, resource.address))
        return f'python -m pyserini_repbert.regression fetch; from {addresses}'
    if is_address:
        return curl(path, source)
    return source if path in source else f'{source}{expected}'


def fingerprint(resource: Resource, paths: Mapping[str, str]) -> str:
    """A text that changes when the resource does.

    Of a catalog entry and its bases, it has all values; of a folder, the newest modification time;
    of a file, its checksum.

    Raises DamagedFileError if a file's checksum is not the expected one.
    """
    if resource.catalog:
        values = [str(sorted(entry.values.items())) for entry in _with_bases(entry_of(resource))]
        return f'{resource.catalog} {" over ".join(values)}'
    path = Path(location(resource, paths))
    if path.is_dir():
        newest = max((item.stat().st_mtime_ns for item in path.rglob('*')), default=0)
        return f'{resource.name} {newest}'
    _check_source(resource, path)
    expected = _expected_checksum(resource, path)
    checksum = remembered_digest(path, expected.algorithm)
    if expected.value and checksum != expected.value:
        difference = f'{expected.algorithm} {checksum}, expected {expected.value}'
        raise DamagedFileError(f'{path} has {difference}: get it again, {resource.source}')
    return f'{resource.name} {expected.algorithm} {checksum}'


@dataclass(frozen=True)
class Checksum:
    """A checksum in hexadecimal digits; '' for any."""

    algorithm: str
    value: str


ANY_CHECKSUM = Checksum('sha256', '')


def _expected_checksum(resource: Resource, path: Path) -> Checksum:
    """The checksum recorded when the file was fetched, or the regression's, except of an
    archive.
    """
    record = path.with_name(f'{path.name}{RECORD}')
    if record.is_file():
        return Checksum('sha256', record.read_text(encoding='utf-8').partition(' ')[0])
    if resource.unpack and not resource.path.startswith('{data}/'):
        return ANY_CHECKSUM
    if resource.md5 and not resource.sha256:
        return Checksum('md5', resource.md5)
    return Checksum('sha256', resource.sha256)


def _check_source(resource: Resource, path: Path) -> None:
    """Raise DamagedFileError for a file that was fetched from elsewhere than the resource says."""
    record = path.with_name(f'{path.name}{RECORD}')
    if not record.is_file() or resource.origin is not ResourceOrigin.ADDRESS:
        return
    for line in record.read_text(encoding='utf-8').splitlines():
        source = line.removeprefix(SOURCE)
        if source not in (line, resource.source_line):
            raise DamagedFileError(
                f'{path} was fetched from {source}, and {resource.name} is at '
                f'{resource.source_line}: move {path} and {record} away, and fetch it again'
            )


def curl(path: str, address: str) -> str:
    """The command that downloads `address` to `path`."""
    quoted = shlex.quote(address)
    # In quotes always, so that an address is told from the rest.
    if quoted == address:
        quoted = f"'{address}'"
    return f'curl -L --create-dirs -o {shlex.quote(path)} {quoted}'


def _with_bases(entry: catalog.Entry) -> list[catalog.Entry]:
    base = catalog.base(entry)
    if base is None:
        return [entry]
    return [entry, *_with_bases(base)]


def _find_missing_entry(resource: Resource, entry: catalog.Entry) -> MissingResource | None:
    """The missing part of a resource in the catalog; first, of the entry's base."""
    base = catalog.base(entry)
    if base is not None:
        missing_base = _find_missing_entry(resource, base)
        if missing_base is not None:
            return missing_base
    folder = 'collections' if entry.kind == 'collections' else 'checkpoints'
    if 'resource' in entry.values or (cache_folder() / folder / entry.name).is_dir():
        return None
    for origin, find_command in _FIND_COMMAND.items():
        if origin in entry.values:
            command = find_command(entry)
            if not command:
                return None
            size = entry.values[origin]['size']
            licence = str(entry.values.get('licence', ''))
            return MissingResource(resource, size, command, licence)
    return None


def _package_command(entry: catalog.Entry) -> str:
    """How to get the package that an entry comes with; '' if it is installed."""
    try:
        catalog.package_folder(entry)
    except PyseriniRepbertError as error:
        return str(error)
    return ''


def _download_command(entry: catalog.Entry) -> str:
    """How to download the file of an entry; '' if it is here."""
    from pyserini_repbert.offline import downloads_folder

    download = entry.values['download']
    path = downloads_folder() / download['file']
    return '' if path.exists() else curl(str(path), download['address'])


def _hub_command(entry: catalog.Entry) -> str:
    """How to download the repository of an entry from the Hub; '' if it is in the Hub's cache."""
    from huggingface_hub import try_to_load_from_cache

    repository = entry.values['hub']['repository']
    revision = entry.values['hub'].get('revision')
    config = try_to_load_from_cache(repository, 'config.json', revision=revision)
    if isinstance(config, str):
        return ''
    words = ['hf', 'download', repository]
    if revision:
        words += ['--revision', revision]
    return shlex.join(words)


# A field of a catalog entry -> the command that gets the named resource; '' if that is here.
_FIND_COMMAND: dict[str, Callable[[catalog.Entry], str]] = {
    'package': _package_command,
    'download': _download_command,
    'hub': _hub_command,
}
