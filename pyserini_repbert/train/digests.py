"""Digests of all that a training reads, kept beside its states: resuming refuses other inputs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.checksums import remembered_digest
from pyserini_repbert.errors import DamagedFileError, MismatchError
from pyserini_repbert.files import atomic_file
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint, model_of
from pyserini_repbert.names.corpora import collection_file
from pyserini_repbert.names.indexes import NamedIndex, locate
from pyserini_repbert.tasks.recipe import Recipe, RecipeInput
from pyserini_repbert.train.checkpoints import open_base
from pyserini_repbert.train.forms import INPUTS

_CHECKPOINTS = ('adapter', 'teacher')
_LOCK = 'write.lock'  # Lucene's; it comes and goes

Digests = dict[str, str | None]


def input_digests(recipe: Recipe, base: Checkpoint) -> Digests:
    """The digest of each input by its role and name.

    It is None for an input that is not a file on this machine, such as an ir_datasets data set.
    """
    digests: Digests = {f'base {recipe.base}': _checkpoint_digest(base)}
    for source in recipe.inputs():
        digests[f'{source.role} {source.name}'] = _input_digest(source)
    return digests


def _input_digest(source: RecipeInput) -> str | None:
    if source.role in _CHECKPOINTS:
        return _checkpoint_digest(open_base(source.name))
    path = _locate(source)
    return None if path is None else _path_digest(path)


def write_digests(work: Path, digests: Digests) -> None:
    """Keep the digests in the folder of the states."""
    with atomic_file(work / INPUTS) as stream:
        stream.write(json.dumps(digests, indent=1) + '\n')


def check_digests(work: Path, digests: Digests) -> None:
    """Raise MismatchError if an input is another than when the training began."""
    try:
        before = dict(json.loads((work / INPUTS).read_text(encoding='utf-8')))
    except (OSError, TypeError, ValueError) as error:
        raise DamagedFileError(
            f'{work / INPUTS} is damaged: start again', parameters=('overwrite',)
        ) from error
    for name, digest in digests.items():
        if before.get(name) != digest:
            raise MismatchError(
                f'{name} has changed since the training in {work} began: restore it or start again',
                parameters=('overwrite',),
            )


def _checkpoint_digest(checkpoint: Checkpoint) -> str:
    """Of the weights, the tokenizer and the settings, also of the bases beneath an adapter."""
    parts: list[str] = []
    below: Checkpoint | None = checkpoint
    while below is not None:
        model = model_of(below, '')
        parts += [model.weights, model.tokenizer, model.config]
        below = below.base
    return hashlib.sha256(' '.join(parts).encode()).hexdigest()


def _locate(source: RecipeInput) -> Path | None:
    """The file or folder that a name means; None if it is not on this machine."""
    role = source.role
    name = source.name
    if Path(name).exists():
        return Path(name)
    if role in ('topics', 'qrels'):
        return catalog.file(role, name)
    if role == 'corpus':
        entry = catalog.find('collections', name)
        return collection_file(entry) if entry else None
    if role == 'index' and catalog.find('indexes', name):
        location = locate(name)
        return location.folder if isinstance(location, NamedIndex) else Path(location)
    return None


def _path_digest(path: Path) -> str | None:
    """The digest of a file, or of the names and digests of all files in a folder; None for a pipe
    or a device.
    """
    if path.is_file():
        return remembered_digest(path)
    if not path.is_dir():
        return None
    total = hashlib.sha256()
    for file in sorted(path.rglob('*')):
        if file.is_file() and file.name != _LOCK:
            line = f'{remembered_digest(file)}  {file.relative_to(path)}\n'
            total.update(line.encode('utf-8', 'surrogateescape'))
    return total.hexdigest()
