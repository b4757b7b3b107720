"""Confidence: how likely a question is answered, and each hit relevant."""

from pyserini_repbert.extension import Command, Extension

EXTENSION = Extension(
    name='confidence',
    package=__name__,
    openers={
        'search': 'estimating:open_search',
        'answered': 'estimating:open_answered',
    },
    commands={
        'evaluate calibration': Command(
            'how reliable the probabilities of `search --confidence` are',
            'calibration:calibration',
        ),
    },
    options={'search': 'options:IN_SEARCH'},
    in_answers=('answers:IN_ANSWERS',),
    in_collections=('collections:IN_COLLECTIONS',),
    page={'reader': ('confidence.css', 'confidence.js')},
)
