"""Several collections that are searched together, as one index."""

from pyserini_repbert.extension import Extension

EXTENSION = Extension(
    name='several',
    package=__name__,
    index_kinds=('kind:KIND',),
    options={'search': 'options:IN_SEARCH'},
)
