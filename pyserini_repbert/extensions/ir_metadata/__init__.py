"""ir-metadata: how a run was made, for other projects and for TIRA."""

from pyserini_repbert.extension import Command, Extension

EXTENSION = Extension(
    name='ir_metadata',
    package=__name__,
    commands={
        'evaluate ir-metadata': Command(
            'write a run with what its record says of it, for other projects',
            'command:ir_metadata',
        ),
    },
)
