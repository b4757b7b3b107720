"""What the files of a folder say of a model of sentence-transformers, without opening it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyserini_repbert import catalog
from pyserini_repbert.data.values import parse_json, read_object
from pyserini_repbert.models.checkpoints.checkpoint import AnyCheckpoint, Checkpoint, folder_of

MODULES = 'modules.json'
SETTINGS = 'config_sentence_transformers.json'


def module_types(folder: Path) -> list[str]:
    """The classes of the modules that a folder lists; none if it has no such list."""
    try:
        modules: Any = parse_json((folder / MODULES).read_text(encoding='utf-8'))
    except (OSError, ValueError):
        return []
    if not isinstance(modules, list):
        return []
    return [str(module.get('type', '')) for module in modules if isinstance(module, dict)]


def is_sentence_folder(name: AnyCheckpoint) -> bool:
    """Whether a name means a folder of a bi-encoder of sentence-transformers.

    A folder of one of this package's systems is not one, nor is a catalog name, because the catalog
    has its system.
    """
    if isinstance(name, Checkpoint):
        return (name.folder / MODULES).is_file() and 'ranking' not in name.config
    if catalog.find('encoders', str(name)) is not None:
        return False
    folder = folder_of(name)
    if not (folder / MODULES).is_file():
        return False
    config = folder / 'config.json'
    return not config.is_file() or 'ranking' not in read_object(config)


def is_cross_encoder(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint is a cross-encoder of sentence-transformers.

    It is one if it says so in the file of sentence-transformers, or is a classifier that is not
    a BERT, or does not have monoBERT's two labels. A checkpoint of one of this
    package's systems is none.
    """
    config = checkpoint.config
    if 'ranking' in config:
        return False
    labels = config.get('id2label')
    if isinstance(labels, dict) and len(labels) != 2:
        return True
    if config.get('model_type', 'bert') != 'bert' and _is_classifier(config):
        return True
    settings = checkpoint.folder / SETTINGS
    return settings.is_file() and read_object(settings).get('model_type') == 'CrossEncoder'


def _is_classifier(config: Mapping[str, Any]) -> bool:
    """Whether a config.json names a class of transformers that classifies texts."""
    architectures = config.get('architectures')
    if not isinstance(architectures, list) or not architectures:
        return False
    return str(architectures[0]).endswith('ForSequenceClassification')
