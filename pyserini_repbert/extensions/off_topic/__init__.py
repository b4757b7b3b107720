"""Off topic: says of a question that a collection does not seem to be about it.

It never claims that a question is not answered: that is confidence, which is learned from
judgments. `threshold.py` has the rule.
"""

from pyserini_repbert.extension import Extension

EXTENSION = Extension(
    name='off_topic',
    package=__name__,
    options={'search': 'options:IN_SEARCH'},
    in_collections=('collections:IN_COLLECTIONS',),
    in_answers=('answers:IN_ANSWERS',),
    page={'reader': ('off_topic.js',), 'laboratory': ('off_topic.js',)},
)
