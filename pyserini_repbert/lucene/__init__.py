"""The only modules that import Pyserini or start a Java virtual machine."""

from typing import TYPE_CHECKING

from pyserini_repbert import lazily

if TYPE_CHECKING:
    from pyserini_repbert.lucene.compat import import_pyserini as import_pyserini
    from pyserini_repbert.lucene.java_home import find_java as find_java
    from pyserini_repbert.lucene.jvm import start_jvm as start_jvm
    from pyserini_repbert.lucene.searcher import LuceneSparseSearcher as LuceneSparseSearcher
    from pyserini_repbert.lucene.sparse_settings import SparseSettings as SparseSettings

_NAMES = {
    'pyserini_repbert.lucene.compat': ('import_pyserini',),
    'pyserini_repbert.lucene.java_home': ('find_java',),
    'pyserini_repbert.lucene.jvm': ('start_jvm',),
    'pyserini_repbert.lucene.searcher': ('LuceneSparseSearcher',),
    'pyserini_repbert.lucene.sparse_settings': ('SparseSettings',),
}
__getattr__, __dir__, __all__ = lazily(__name__, _NAMES)
