"""Collections: documents that change, and all rankings of them, in one folder."""

from typing import TYPE_CHECKING

from pyserini_repbert import lazily
from pyserini_repbert.extension import Extension

if TYPE_CHECKING:
    from pyserini_repbert.collection.collection import Collection as Collection
    from pyserini_repbert.collection.generation import Generation as Generation
    from pyserini_repbert.collection.syncing import Changes as Changes
    from pyserini_repbert.data.documents import Document as Document

EXTENSION = Extension(
    name='collection',
    package=__name__,
    index_kinds=('index:KIND',),
    openers={'corpus': 'files.opening:open_corpus'},
)
_NAMES = {
    'pyserini_repbert.collection.collection': ('Collection',),
    'pyserini_repbert.collection.generation': ('Generation',),
    'pyserini_repbert.collection.syncing': ('Changes',),
    'pyserini_repbert.data.documents': ('Document',),
}
__getattr__, __dir__, __all__ = lazily(__name__, _NAMES)
