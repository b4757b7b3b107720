"""Trials: another encoder, other passages or another language, in addition to the live ones.

From Python:

    with Collection.open('mine', encoder='repbert-demo') as collection:
        encode_trial(collection)
        print(compare_trial(collection.folder))
        use_trial(collection)
"""

from typing import TYPE_CHECKING

from pyserini_repbert import lazily
from pyserini_repbert.extension import Command, Extension

if TYPE_CHECKING:
    from pyserini_repbert.extensions.trials.comparing import compare_trial as compare_trial
    from pyserini_repbert.extensions.trials.trying import (
        encode_trial as encode_trial,
        go_back as go_back,
        use_trial as use_trial,
    )

EXTENSION = Extension(
    name='trials',
    package=__name__,
    commands={
        'index try': Command(
            'try another encoder, other passages or another language beside the live ones',
            'command:try_settings',
            'command:add_flags',
        ),
    },
    in_collections=('side_folders:IN_COLLECTIONS',),
)
_NAMES = {
    'pyserini_repbert.extensions.trials.comparing': ('compare_trial',),
    'pyserini_repbert.extensions.trials.trying': ('encode_trial', 'go_back', 'use_trial'),
}
__getattr__, __dir__, __all__ = lazily(__name__, _NAMES)
