"""What a collection keeps in addition to its generation: a trial of other settings, and the shards
from before a switch to a trial.

Each is a folder with shards, maybe an index of Lucene's, and a manifest, which is written last and
removed first: a folder without a manifest is not finished. Only the collection's writer changes
them.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from pyserini_repbert.collection.generation_manifest import LUCENE, GenerationManifest
from pyserini_repbert.collection.layout import LUCENES_FORM, SHARDS_FORM
from pyserini_repbert.collection.parts import CollectionPart
from pyserini_repbert.collection.settings import CollectionSettings, cuts_alike
from pyserini_repbert.collection.shards import SHARDS, open_shard, sync_to_disk
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.folder_forms import FolderForm

if TYPE_CHECKING:
    from pyserini_repbert.collection.generation import Generation

MANIFEST = 'generation.json'
_FORM = TypeAdapter(GenerationManifest)
SIDE_FORM = FolderForm(
    'trial of a collection',
    (
        rf'\.?{re.escape(MANIFEST)}',
        *SHARDS_FORM.below(SHARDS),
        *LUCENES_FORM.below(LUCENE),
    ),
)


class Side(StrEnum):
    """A folder beside the generation."""

    TRIAL = 'trial'
    BEFORE = 'before'

    @property
    def next(self) -> str:
        """The folder that becomes this one once a switch is published."""
        return f'.next-{self}'


_NAMES: list[str] = []
for _side in Side:
    _NAMES += [_side, _side.next]
_SIDE_NAMES = f'({"|".join(map(re.escape, _NAMES))})'


def read_side(folder: Path, side: str) -> GenerationManifest | None:
    """The manifest of a folder beside the generation; None if there is none.

    Raises DamagedFileError for one that is not a manifest.
    """
    path = folder / side / MANIFEST
    try:
        return _FORM.validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValidationError as error:
        raise DamagedFileError(
            f'{path} is not the manifest of a trial: remove the folder {folder / side}'
        ) from error


def write_side(folder: Path, side: str, manifest: GenerationManifest) -> None:
    """Finish a folder beside the generation: its manifest is on the disk when this returns."""
    target = folder / side / MANIFEST
    unfinished = target.with_name(f'.{MANIFEST}')
    unfinished.write_bytes(manifest.rendered())
    sync_to_disk(unfinished)
    os.replace(unfinished, target)
    sync_to_disk(target.parent)


def remove_side(folder: Path, side: str) -> None:
    """Remove a folder beside the generation, its manifest first."""
    path = folder / side
    if path.is_symlink() or not path.is_dir():
        return
    (path / MANIFEST).unlink(missing_ok=True)
    sync_to_disk(path)
    SIDE_FORM.remove(path)


def link_generation(folder: Path, side: Side, manifest: GenerationManifest) -> None:
    """Keep the shards of a generation in the next folder of a side, as hard links to their files,
    or as copies if links are impossible.
    """
    remove_side(folder, side.next)
    target = folder / side.next
    for entry in manifest.shards:
        shard = target / SHARDS / entry.name
        shard.mkdir(parents=True)
        for file in sorted((folder / SHARDS / entry.name).iterdir()):
            _link(file, shard / file.name)
        sync_to_disk(shard)
    target.mkdir(exist_ok=True)
    write_side(folder, side.next, manifest)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
        sync_to_disk(target)


def settle_switch(folder: Path, live: CollectionSettings) -> Side | None:
    """Finish a switch that was published, or take back one that was not.

    Parameters
    ----------
    folder : of the collection
    live : the settings of its newest generation

    Returns the side to which the collection switched, if a switch was finished.
    """
    finished = None
    for side, source in ((Side.BEFORE, Side.TRIAL), (Side.TRIAL, Side.BEFORE)):
        if not (folder / side.next).is_dir():
            continue
        kept = read_side(folder, side.next)
        if kept is None or is_searched_alike(kept.settings, live):
            remove_side(folder, side.next)
            continue
        remove_side(folder, source)
        remove_side(folder, side)
        os.rename(folder / side.next, folder / side)
        sync_to_disk(folder)
        finished = source
    return finished


def is_searched_alike(one: CollectionSettings, other: CollectionSettings) -> bool:
    """Whether two settings give the same vectors, passages and words; names of models may
    differ.
    """
    return replace(one, encoder=other.encoder) == other


def describe_side(kept: GenerationManifest, is_current: bool) -> str:
    """What a folder beside the generation has, in a line.

    Parameters
    ----------
    kept : its manifest
    is_current : whether it is of the newest generation
    """
    settings = kept.settings
    since = '' if is_current else f', as of generation {kept.number}'
    return (
        f"encoder '{settings.encoder}', {settings.passage_tokens} wordpieces a passage, language "
        f"'{settings.language}', {kept.passages} passages{since}"
    )


class SidesOfCollections(CollectionPart):
    """The folders beside the generation, as collections know them."""

    files = SIDE_FORM.below(_SIDE_NAMES)

    def before_compacting(self, folder: Path) -> None:
        for side in Side:
            remove_side(folder, side.next)
            remove_side(folder, side)

    def describe(self, generation: Generation) -> list[str]:
        lines = []
        for side in Side:
            kept = read_side(generation.folder, side)
            if kept is not None:
                is_current = kept.number == generation.number
                lines.append(f'{side}: {describe_side(kept, is_current)}')
        return lines

    def check(self, generation: Generation) -> list[str]:
        lines = []
        for side in Side:
            kept = read_side(generation.folder, side)
            if kept is None:
                continue
            shards = generation.folder / side / SHARDS
            for entry in kept.shards:
                # One of another language alone has the vectors of the live generation.
                if side is Side.BEFORE or not cuts_alike(generation.settings, kept.settings):
                    open_shard(shards, entry.name).verify()
            is_current = kept.number == generation.number
            text = describe_side(kept, is_current)
            lines.append(f'{generation.folder / side}: intact, {text}')
        return lines


IN_COLLECTIONS = SidesOfCollections()
