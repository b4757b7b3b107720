"""Whether the resources of a regression are here; if not, how large they are and how to get them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.regression.schema import Origin, Resource, filled

PYSERINI_CACHE = Path('~/.cache/pyserini')  # unless $PYSERINI_CACHE says otherwise
_BY_HAND = {
    Origin.RECIPE: 'not published; to be trained',
    Origin.AGREEMENT: 'by agreement',
    Origin.PAGE: 'by hand',
}
RECORD = '.sha256'  # suffix of the file beside a fetched one that has its checksum, where none was published


@dataclass(frozen=True, slots=True)
class Missing:
    """A resource that is not here: what it is, its size, and the command, or the sentence, that gets it."""

    name: str
    what: str
    size: str
    get: str
    origin: Origin = Origin.GET
    licence: str = ''


class DamagedResourceError(PyseriniRepbertError):
    """A resource is here, but is not the one that its checksum describes."""


def folders(data: str) -> dict[str, str]:
    """What `{data}`, `{downloads}` and `{pyserini}` stand for."""
    from pyserini_repbert.download import downloads_folder

    pyserini = os.environ.get('PYSERINI_CACHE') or str(PYSERINI_CACHE.expanduser())
    return {'data': data, 'downloads': str(downloads_folder()), 'pyserini': pyserini}


def entry_of(resource: Resource) -> catalog.Entry:
    """The catalog entry of a resource with the origin CATALOG."""
    kind, _, name = resource.catalog.partition('/')
    return catalog.get(kind, name)


def location(resource: Resource, places: Mapping[str, str]) -> str:
    """What a command is given for the resource: its name in the catalog, or its path, or its own name without one.

    A path below `{data}` or `{downloads}` is looked for in both, in the user's `{data}` first.
    """
    if resource.catalog:
        return resource.catalog.partition('/')[2]
    if not resource.path:
        return resource.name
    for place in ('{data}/', '{downloads}/'):
        if resource.path.startswith(('{data}/', '{downloads}/')):
            found = filled(f'{place}{resource.path.partition("/")[2]}', places)
            if Path(found).exists():
                return found
    return filled(resource.path, places)


def target(resource: Resource, places: Mapping[str, str]) -> Path:
    """Where a resource is put when it is fetched: below `{downloads}`, never below the user's `{data}`."""
    path = resource.path.replace('{data}/', '{downloads}/', 1) if resource.path.startswith('{data}/') else resource.path
    return Path(filled(path, places))


def missing(resource: Resource, places: Mapping[str, str]) -> Missing | None:
    """What is missing of a resource, and how to get it; None if the resource is here."""
    if resource.catalog:
        return _missing_entry(resource, entry_of(resource))
    path = location(resource, places)
    if resource.path and Path(path).exists():
        return None
    return Missing(
        resource.name, resource.what, resource.size, _how(resource, path, places), resource.origin, resource.licence
    )


def _how(resource: Resource, path: str, places: Mapping[str, str]) -> str:
    """The command, or the sentence, that gets a resource."""
    get = filled(resource.get, places) if resource.origin is Origin.GET else resource.get
    if resource.origin is Origin.UNPUBLISHED:
        return f'not published; {get}'
    expected = f' (expected at {path})' if resource.path else ''
    if resource.origin in _BY_HAND:
        return f'{_BY_HAND[resource.origin]}: {get}{expected}'
    if get.startswith(('http://', 'https://')):
        if not resource.unpack:
            return curl(path, get)
        return f'python -m pyserini_repbert.regression fetch; from {" and ".join(get.splitlines())}'
    return f'{get}{expected}' if path not in get else get


def fingerprint(resource: Resource, places: Mapping[str, str]) -> str:
    """A text that changes when the resource does.

    It has a file's checksum, which is verified; the newest modification time in a folder; or all values of a catalog
    entry and its bases.

    Raises
    ------
    DamagedResourceError
        where the file is not the one that the regression names, or that was fetched
    """
    from pyserini_repbert.files import remembered_digest

    if resource.catalog:
        entries = _with_bases(entry_of(resource))
        return f'{resource.catalog} {" over ".join(str(sorted(one.values.items())) for one in entries)}'
    path = Path(location(resource, places))
    if path.is_dir():
        newest = max((item.stat().st_mtime_ns for item in path.rglob('*')), default=0)
        return f'{resource.name} {newest}'
    algorithm, expected = expected_checksum(resource, path)
    found = remembered_digest(path, catalog.cache_folder(), algorithm)
    if expected and found != expected:
        raise DamagedResourceError(f'{path} has {algorithm} {found}, expected {expected}: get it again, {resource.get}')
    return f'{resource.name} {algorithm} {found}'


def expected_checksum(resource: Resource, path: Path) -> tuple[str, str]:
    """The algorithm and the checksum that a resource's file at `path` should have, '' for any.

    The checksum recorded when the file was fetched; else that of the regression, unless it is of an archive.
    """
    from pyserini_repbert.mirror import expected_md5

    record = path.with_name(f'{path.name}{RECORD}')
    if record.is_file():
        return 'sha256', record.read_text(encoding='utf-8').partition(' ')[0]
    if resource.checksum is None or (resource.unpack and not resource.path.startswith('{data}/')):
        return 'sha256', ''
    algorithm, checksum = resource.checksum
    if algorithm == 'md5' and resource.addresses:
        checksum = expected_md5(resource.addresses[0], checksum) or ''
    return algorithm, checksum


def curl(path: str, address: str) -> str:
    """The command that downloads `address` to `path`."""
    return f"curl -L --create-dirs -o {shlex.quote(path)} '{address}'"


def _with_bases(entry: catalog.Entry) -> list[catalog.Entry]:
    base = catalog.base(entry)
    return [entry, *(_with_bases(base) if base else [])]


def _missing_entry(resource: Resource, entry: catalog.Entry) -> Missing | None:
    from pyserini_repbert.download import downloads_folder

    if (base := catalog.base(entry)) is not None and (missing_base := _missing_entry(resource, base)) is not None:
        return missing_base
    values = entry.values
    ready = catalog.cache_folder() / ('collections' if entry.kind == 'collections' else 'checkpoints') / entry.name
    if 'resource' in values or ready.is_dir():
        return None

    def absent(size: str, get: str) -> Missing:
        return Missing(resource.name, resource.what, size, get, Origin.CATALOG, str(values.get('licence', '')))

    if 'package' in values:
        try:
            catalog.package_folder(entry)
        except PyseriniRepbertError as error:
            return absent(values['package']['size'], str(error))
        return None
    if 'download' in values:
        source = values['download']
        path = downloads_folder() / source['file']
        return None if path.exists() else absent(source['size'], curl(str(path), source['address']))
    if 'hub' in values:
        from huggingface_hub import try_to_load_from_cache

        hub = values['hub']
        if isinstance(try_to_load_from_cache(hub['repository'], 'config.json', revision=hub.get('revision')), str):
            return None
        revision = f' --revision {hub["revision"]}' if 'revision' in hub else ''
        return absent(hub['size'], f'hf download {hub["repository"]}{revision}')
    return None
