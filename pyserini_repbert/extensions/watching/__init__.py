"""Watching: the judged questions of a collection are asked again, to show what a sync has
changed.
"""

from typing import TYPE_CHECKING

from pyserini_repbert import lazily
from pyserini_repbert.extension import Command, Extension

if TYPE_CHECKING:
    from pyserini_repbert.extensions.watching.measuring import (
        measure_generation as measure_generation,
    )

EXTENSION = Extension(
    name='watching',
    package=__name__,
    commands={
        'index history': Command(
            'show how well the judged questions were answered, generation by generation',
            'command:show_history',
            'command:add_history_flags',
        ),
    },
    options={'index sync': 'options:IN_SYNC'},
    in_collections=('collections:IN_COLLECTIONS',),
    routes=('routes:router',),
    page={'laboratory': ('history.css', 'history.js')},
)
_NAMES = {'pyserini_repbert.extensions.watching.measuring': ('measure_generation',)}
__getattr__, __dir__, __all__ = lazily(__name__, _NAMES)
