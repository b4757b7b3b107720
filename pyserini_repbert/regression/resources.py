"""Whether the resources of a regression are here; if not, how large they are and how to get
them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.checksums import remembered_digest
from pyserini_repbert.errors import DamagedFileError, PyseriniRepbertError
from pyserini_repbert.files import cache_folder
from pyserini_repbert.regression.layout import Origin, Resource, filled

# suffix of the file beside a fetched one that has its checksum, where none was published
RECORD = '.sha256'
_BY_HAND = {
    Origin.RECIPE: 'not published; to be trained',
    Origin.AGREEMENT: 'by agreement',
    Origin.PAGE: 'by hand',
}
_UNITS = {'B': 1, 'kB': 10**3, 'MB': 10**6, 'GB': 10**9, 'TB': 10**12}
_SIZE = re.compile(r'(\d+(?:\.\d+)?)\s*(TB|GB|MB|kB|B)\b(?!\s+unpacked)')


@dataclass(frozen=True, slots=True)
class NeededResource:
    """A resource that is not here."""

    resource: Resource
    size: str  # as the regression or the catalog states it
    get: str  # the command, or the sentence, that gets it
    licence: str
    target: Path | None = (
        None  # where it is put; None for the cache, and for a resource without a path
    )

    @property
    def key(self) -> str:
        """Identifies the resource, whatever name a regression gives it."""
        return str(self.target or self.resource.source)

    @property
    def text(self) -> str:
        """What it is, its size, and how to get it."""
        return f'{self.resource.what}{f" ({self.size})" if self.size else ""}: {self.get}'

    @property
    def is_fetched(self) -> bool:
        """Whether `fetch` can download it."""
        return self.resource.origin in (Origin.ADDRESS, Origin.CATALOG)

    @property
    def n_bytes(self) -> int | None:
        """Bytes to download, of '987 MB packed, 2.9 GB unpacked'; None where the size is
        unknown.
        """
        size = _SIZE.search(self.size)
        return round(float(size[1]) * _UNITS[size[2]]) if size else None


def size_in_bytes(text: str) -> int:
    """'10GB' -> 10,000,000,000. Raises ValueError for a text that is not a size."""
    size = _SIZE.fullmatch(text.strip())
    if size is None:
        raise ValueError(
            f"'{text[:40]}' is not a size: expected a number with B, kB, MB, GB or TB, such as 10GB"
        )
    return round(float(size[1]) * _UNITS[size[2]])


def entry_of(resource: Resource) -> catalog.Entry:
    """The catalog entry of a resource with the origin CATALOG."""
    kind, _, name = resource.catalog.partition('/')
    return catalog.get(kind, name)


def location(resource: Resource, places: Mapping[str, str]) -> str:
    """What a command is given for the resource: its name in the catalog, or its path, or its own
    name without one.

    A path below `{data}` or `{downloads}` is looked for in both, in the user's `{data}` first.
    """
    if resource.catalog:
        return resource.catalog.partition('/')[2]
    if not resource.path:
        return resource.name
    folder, _, below = resource.path.partition('/')
    both = ('{data}', '{downloads}')
    paths = [filled(f'{place}/{below}', places) for place in both] if folder in both else []
    return next((path for path in paths if Path(path).exists()), filled(resource.path, places))


def missing(resource: Resource, places: Mapping[str, str]) -> NeededResource | None:
    """What is missing of a resource, and how to get it; None if the resource is here."""
    if resource.catalog:
        return _missing_entry(resource, entry_of(resource))
    path = location(resource, places)
    if resource.path and Path(path).exists():
        return None
    target = re.sub(r'^\{data\}', '{downloads}', resource.path)  # never below the user's `{data}`
    place = Path(filled(target, places)) if target else None
    return NeededResource(
        resource, resource.size, _how(resource, path, places), resource.licence, place
    )


def _how(resource: Resource, path: str, places: Mapping[str, str]) -> str:
    """The command, or the sentence, that gets a resource."""
    source = filled(resource.source, places)
    if resource.origin is Origin.UNPUBLISHED:
        return f'not published; {source}'
    expected = f' (expected at {path})' if resource.path else ''
    if resource.origin in _BY_HAND:
        return f'{_BY_HAND[resource.origin]}: {source}{expected}'
    if source.startswith(('http://', 'https://')):
        if not resource.unpack:
            return curl(path, source)
        return f'python -m pyserini_repbert.regression fetch; from {" and ".join(resource.address)}'
    return f'{source}{expected}' if path not in source else source


def fingerprint(resource: Resource, places: Mapping[str, str]) -> str:
    """A text that changes when the resource does: of a catalog entry and its bases, all values; of
    a folder, the newest modification time; of a file, its checksum, which has to be the one
    expected.
    """
    if resource.catalog:
        entries = _with_bases(entry_of(resource))
        return (
            f'{resource.catalog} '
            f'{" over ".join(str(sorted(one.values.items())) for one in entries)}'
        )
    path = Path(location(resource, places))
    if path.is_dir():
        newest = max((item.stat().st_mtime_ns for item in path.rglob('*')), default=0)
        return f'{resource.name} {newest}'
    algorithm, expected = _expected_checksum(resource, path)
    checksum = remembered_digest(path, algorithm)
    if expected and checksum != expected:
        difference = f'{algorithm} {checksum}, expected {expected}'
        raise DamagedFileError(f'{path} has {difference}: get it again, {resource.source}')
    return f'{resource.name} {algorithm} {checksum}'


def _expected_checksum(resource: Resource, path: Path) -> tuple[str, str]:
    """Algorithm and checksum, '' for any: as recorded when it was fetched, else the regression's
    but for an archive.
    """
    record = path.with_name(f'{path.name}{RECORD}')
    if record.is_file():
        return 'sha256', record.read_text(encoding='utf-8').partition(' ')[0]
    if resource.unpack and not resource.path.startswith('{data}/'):
        return 'sha256', ''
    return (
        ('md5', resource.md5)
        if resource.md5 and not resource.sha256
        else ('sha256', resource.sha256)
    )


def curl(path: str, address: str) -> str:
    """The command that downloads `address` to `path`."""
    return f"curl -L --create-dirs -o {shlex.quote(path)} '{address}'"


def _with_bases(entry: catalog.Entry) -> list[catalog.Entry]:
    base = catalog.base(entry)
    return [entry, *(_with_bases(base) if base else [])]


def _missing_entry(resource: Resource, entry: catalog.Entry) -> NeededResource | None:
    from pyserini_repbert.download import downloads_folder

    if (base := catalog.base(entry)) is not None and (
        missing_base := _missing_entry(resource, base)
    ) is not None:
        return missing_base
    values = entry.values
    licence = str(entry.values.get('licence', ''))
    ready = (
        cache_folder()
        / ('collections' if entry.kind == 'collections' else 'checkpoints')
        / entry.name
    )
    if 'resource' in values or ready.is_dir():
        return None
    if 'package' in values:
        try:
            catalog.package_folder(entry)
        except PyseriniRepbertError as error:
            return NeededResource(resource, values['package']['size'], str(error), licence)
    elif 'download' in values:
        source = values['download']
        path = downloads_folder() / source['file']
        if not path.exists():
            return NeededResource(
                resource, source['size'], curl(str(path), source['address']), licence
            )
    elif 'hub' in values:
        from huggingface_hub import try_to_load_from_cache

        hub = values['hub']
        if not isinstance(
            try_to_load_from_cache(hub['repository'], 'config.json', revision=hub.get('revision')),
            str,
        ):
            revision = f' --revision {hub["revision"]}' if 'revision' in hub else ''
            return NeededResource(
                resource, hub['size'], f'hf download {hub["repository"]}{revision}', licence
            )
    return None
