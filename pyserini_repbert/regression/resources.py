"""Whether the resources of a regression are here; where not, how large they are and how to get them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.regression.located import filled
from pyserini_repbert.regression.schema import Resource

PYSERINI_CACHE = Path('~/.cache/pyserini')  # unless $PYSERINI_CACHE says otherwise


@dataclass(frozen=True, slots=True)
class Missing:
    """A resource that is not here: what it is, its size and the command, or the sentence, that gets it."""

    name: str
    what: str
    size: str
    get: str


class DamagedResourceError(PyseriniRepbertError):
    """A resource is here, but is not the one that its checksum describes."""


def folders(data: str) -> dict[str, str]:
    """What `{data}`, `{downloads}` and `{pyserini}` stand for."""
    from pyserini_repbert.download import downloads_folder

    pyserini = os.environ.get('PYSERINI_CACHE') or str(PYSERINI_CACHE.expanduser())
    return {'data': data, 'downloads': str(downloads_folder()), 'pyserini': pyserini}


def location(resource: Resource, places: Mapping[str, str]) -> str:
    """What a command is given for the resource: its path, or its name in the catalog."""
    if resource.catalog:
        return resource.catalog.partition('/')[2]
    return filled(resource.path, places) if resource.path else resource.name


def missing(resource: Resource, places: Mapping[str, str]) -> Missing | None:
    """None where the resource is here."""
    if resource.catalog:
        kind, _, name = resource.catalog.partition('/')
        return _missing_entry(resource, catalog.get(kind, name))
    path = location(resource, places)
    if resource.path and Path(path).exists():
        return None
    get = filled(resource.get, places)
    if get.startswith(('http://', 'https://')):
        get = _curl(path, get)
    elif resource.path and path not in get:
        get = f'{get} (expected at {path})'
    return Missing(resource.name, resource.what, resource.size, get)


def fingerprint(resource: Resource, places: Mapping[str, str]) -> str:
    """What changes when the resource does: its verified checksum, or the one of its catalog entry.

    Raises
    ------
    DamagedResourceError
        where the file is not the one that the regression names
    """
    from pyserini_repbert.files import remembered_digest

    if resource.catalog:
        kind, _, name = resource.catalog.partition('/')
        entry = catalog.get(kind, name)
        return f'{resource.catalog} {" over ".join(str(sorted(one.values.items())) for one in _with_bases(entry))}'
    path = Path(location(resource, places))
    if path.is_dir():
        newest = max((item.stat().st_mtime_ns for item in path.rglob('*')), default=0)
        return f'{resource.name} {newest}'
    algorithm, expected = resource.checksum or ('sha256', '')
    found = remembered_digest(path, catalog.cache_folder(), algorithm)
    if expected and found != expected:
        raise DamagedResourceError(f'{path} has {algorithm} {found}, expected {expected}: get it again, {resource.get}')
    return f'{resource.name} {algorithm} {found}'


def _curl(path: str, address: str) -> str:
    return f"curl -L --create-dirs -o {shlex.quote(path)} '{address}'"


def _with_bases(entry: catalog.Entry) -> list[catalog.Entry]:
    base = catalog.base(entry)
    return [entry, *(_with_bases(base) if base else [])]


def _missing_entry(resource: Resource, entry: catalog.Entry) -> Missing | None:
    from pyserini_repbert.download import downloads_folder

    if (base := catalog.base(entry)) is not None and (missing_base := _missing_entry(resource, base)) is not None:
        return missing_base
    values = entry.values
    ready = catalog.cache_folder() / 'checkpoints' / entry.name
    if 'resource' in values or ready.is_dir():
        return None
    if 'package' in values:
        try:
            catalog.package_folder(entry)
        except PyseriniRepbertError as error:
            return Missing(resource.name, resource.what, values['package']['size'], str(error))
        return None
    if 'download' in values:
        source = values['download']
        path = downloads_folder() / source['file']
        get = _curl(str(path), source['address'])
        return None if path.exists() else Missing(resource.name, resource.what, source['size'], get)
    if 'hub' in values:
        from huggingface_hub import try_to_load_from_cache

        repository = values['hub']['repository']
        if isinstance(try_to_load_from_cache(repository, 'config.json'), str):
            return None
        return Missing(resource.name, resource.what, values['hub']['size'], f'hf download {repository}')
    return None
