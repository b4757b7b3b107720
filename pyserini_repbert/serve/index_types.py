"""The types of index that a service knows: those of Pyserini's server under its names, and 'dense', a bundle."""

from __future__ import annotations

from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.errors import InputError, MismatchError, UnknownNameError
from pyserini_repbert.lucene.lucene_corpus import is_lucene_index
from pyserini_repbert.lucene.sparse_settings import EPIC_IMPACT, built_variant
from pyserini_repbert.serve.settings import IndexSettings

TYPES = ('tf', 'dense', 'faiss', 'impact')


def type_of(settings: IndexSettings) -> str:
    """The type of the index that lies at the settings' place."""
    place = settings.place
    folder = Path(place)
    if catalog.find('indexes', place):
        found = 'dense'
    elif not folder.is_dir():
        raise UnknownNameError(
            f"index '{settings.alias}': '{place}' is neither a folder nor an index of the catalog"
            f'{catalog.did_you_mean(place, catalog.entries("indexes"))}'
        )
    elif is_lucene_index(folder):
        found = 'impact' if built_variant(folder) == EPIC_IMPACT else 'tf'
    else:
        found = 'dense' if (folder / 'manifest.json').is_file() else 'faiss'
    wanted = settings.index_type or found
    if wanted not in TYPES:
        raise InputError(
            f"index '{settings.alias}' is of type '{wanted}', this service has {', '.join(TYPES)}: "
            "serve it with Pyserini's own server"
        )
    if wanted != found and {wanted, found} != {'faiss', 'dense'}:
        raise MismatchError(f"index '{settings.alias}' is said to be of type '{wanted}', {place} is of type '{found}'")
    if settings.ray and found != 'dense':
        raise InputError(f"index '{settings.alias}' is of type '{found}': Ray searches dense bundles only")
    return found
