"""Neighbours: stages that follow the nearest documents of each document of an index, its graph."""

from pyserini_repbert.extension import Command, Extension

EXTENSION = Extension(
    name='neighbours',
    package=__name__,
    systems=('systems:LADR', 'systems:GAR'),
    commands={
        'index neighbours': Command(
            'find the nearest documents of each document, for rerankers that follow them',
            'command:make_graph',
            'command:add_flags',
        ),
    },
    in_bundles=('indexes:IN_BUNDLES',),
    in_collections=('indexes:IN_COLLECTIONS',),
)
