"""Language models as judges of what a collection finds."""

from pyserini_repbert.extension import Extension

EXTENSION = Extension(
    name='language_models',
    package=__name__,
    options={'index judgments': 'judging_options:IN_JUDGMENTS'},
)
