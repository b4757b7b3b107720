"""Indexes by catalog name: where they lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.errors import MissingResourceError
from pyserini_repbert.index.manifest import MANIFEST


@dataclass(frozen=True)
class NamedIndex:
    """A catalog index for one encoder.

    Attributes
    ----------
    entry : its catalog entry
    encoder : catalog name or folder of the encoder
    folder : where it lies, or will
    """

    entry: catalog.Entry
    encoder: str
    folder: Path

    @property
    def is_built(self) -> bool:
        """Whether it is there, whole."""
        return (self.folder / MANIFEST).is_file()

    @property
    def builds_itself(self) -> bool:
        """Whether it is small enough to be built without being asked for."""
        return bool(self.entry.values['build'] == 'on first use')


def locate(index: str, encoder: str | None = None) -> Path | NamedIndex:
    """An existing folder, or a catalog index for the encoder (by default the one that the catalog says).

    Raises UnknownNameError for what is neither, with the nearest names.
    """
    if catalog.find('indexes', index) is None and Path(index).exists():
        return Path(index)
    entry = catalog.get('indexes', index)
    chosen = encoder or str(entry.values['encoder'])
    return NamedIndex(entry, chosen, catalog.cache_folder() / 'indexes' / f'{index}.{_label(chosen)}')


def _label(encoder: str) -> str:
    """What tells an encoder's indexes from others'; one that ships is another when a release trains it anew."""
    entry = catalog.find('encoders', encoder)
    if entry is None:
        return Path(encoder).resolve().as_posix().strip('/').replace('/', '-')
    pinned = ''.join(entry.values.get('sha256', {}).values()) if 'resource' in entry.values else ''
    return f'{encoder}.{pinned[:8]}' if pinned else encoder


def existing_folder(index: str, encoder: str | None = None) -> Path:
    """The folder of an index that is there.

    Raises
    ------
    UnknownNameError
        for what is neither a folder nor a catalog name
    MissingResourceError
        for a catalog index that has not been built
    """
    found = locate(index, encoder)
    if isinstance(found, Path):
        return found
    if not found.is_built:
        raise MissingResourceError(
            f"index '{index}' for encoder '{found.encoder}' is not at {found.folder}: search it once, which builds it "
            'or says what that takes'
        )
    return found.folder
