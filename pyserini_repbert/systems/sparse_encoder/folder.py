"""Which folders are a `SparseEncoder` of sentence-transformers: told by its files."""

from __future__ import annotations

from pathlib import Path

from pyserini_repbert.data.values import read_object
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.checkpoints.checkpoint import (
    AnyCheckpoint,
    folder_of,
    unlisted_folder,
)
from pyserini_repbert.systems.sentence_transformers.recognising import (
    MODULES,
    SETTINGS,
    module_types,
)

_KIND = 'SparseEncoder'
# The package of the modules that only such models have.
_PACKAGE = 'sentence_transformers.sparse_encoder.'


def is_sparse_folder(name: AnyCheckpoint) -> bool:
    """Whether a name means a folder, or a repository in the hub's cache, of a `SparseEncoder`.

    Such a folder says so in the settings of sentence-transformers, or lists a module that only
    such models have.
    """
    folder = unlisted_folder(name)
    if folder is None or not (folder / MODULES).is_file():
        return False
    settings = folder / SETTINGS
    if settings.is_file() and read_object(settings).get('model_type') == _KIND:
        return True
    return any(kind.startswith(_PACKAGE) for kind in module_types(folder))


def sparse_folder(name: str | Path) -> Path:
    """The folder of a `SparseEncoder`. Raises InputError for anything else."""
    if not is_sparse_folder(name):
        raise InputError(
            f"'{name}' is not a SparseEncoder of sentence-transformers: give a folder of SPLADE or "
            f'of a model like it, with a {MODULES}'
        )
    return folder_of(name)
