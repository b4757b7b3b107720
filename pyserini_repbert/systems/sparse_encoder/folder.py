"""Which folders are a `SparseEncoder` of sentence-transformers: told by its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyserini_repbert import catalog
from pyserini_repbert.data.values import parse_json, read_object
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.checkpoints.checkpoint import AnyCheckpoint, folder_of
from pyserini_repbert.systems.sentence_transformers.loading import MODULES

SETTINGS = 'config_sentence_transformers.json'
_KIND = 'SparseEncoder'
# The package of the modules that only such models have.
_PACKAGE = 'sentence_transformers.sparse_encoder.'


def is_sparse_folder(name: AnyCheckpoint) -> bool:
    """Whether a name means a folder, or a repository in the hub's cache, of a `SparseEncoder`.

    Such a folder says so in the settings of sentence-transformers, or lists a module that only
    such models have.
    """
    if not isinstance(name, (str, Path)) or catalog.checkpoint_kind(str(name)) is not None:
        return False
    folder = folder_of(name)
    if not (folder / MODULES).is_file():
        return False
    settings = folder / SETTINGS
    if settings.is_file() and read_object(settings).get('model_type') == _KIND:
        return True
    return any(kind.startswith(_PACKAGE) for kind in _module_types(folder / MODULES))


def sparse_folder(name: str | Path) -> Path:
    """The folder of a `SparseEncoder`. Raises InputError for anything else."""
    if not is_sparse_folder(name):
        raise InputError(
            f"'{name}' is no SparseEncoder of sentence-transformers: give a folder of SPLADE or of "
            f'a model like it, with a {MODULES}'
        )
    return folder_of(name)


def _module_types(path: Path) -> list[str]:
    """The classes of the modules that a file lists; none for a file of another form."""
    try:
        modules: Any = parse_json(path.read_text(encoding='utf-8'))
    except (OSError, ValueError):
        return []
    if not isinstance(modules, list):
        return []
    return [str(module.get('type', '')) for module in modules if isinstance(module, dict)]
