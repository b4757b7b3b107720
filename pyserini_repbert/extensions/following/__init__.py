"""Following: `index sync --follow` keeps a collection in step with a folder until it is stopped."""

from pyserini_repbert.extension import Extension

EXTENSION = Extension(
    name='following',
    package=__name__,
    options={'index sync': 'options:IN_SYNC'},
)
