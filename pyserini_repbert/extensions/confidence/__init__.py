"""Confidence: how likely a question of `search` is answered, and each hit relevant."""

from pyserini_repbert.extension import Extension

EXTENSION = Extension(
    name='confidence',
    package=__name__,
    options={'search': 'options:IN_SEARCH'},
    in_answers=('answers:IN_ANSWERS',),
)
