"""Approximate search: an index beside the vectors finds candidates, whose scores are exact.

From Python:

    record = build_ann('mine', AnnSettings(recall=0.98, hits=1000))
    searcher = DenseSearcher('mine', ann=True)
"""

from typing import TYPE_CHECKING

from pyserini_repbert import lazily
from pyserini_repbert.extension import Command, Extension

if TYPE_CHECKING:
    from pyserini_repbert.extensions.approximate.building import build_ann as build_ann
    from pyserini_repbert.extensions.approximate.making import AnnSettings as AnnSettings

EXTENSION = Extension(
    name='approximate',
    package=__name__,
    commands={
        'index ann': Command(
            'build an approximate index for a collection or a dense index',
            'command:make_ann',
            'command:add_flags',
        ),
    },
    scans=('scanning:SCAN',),
    in_pipelines=('pipelines:IN_PIPELINES',),
    in_bundles=('indexes:IN_BUNDLES',),
    in_collections=('indexes:IN_COLLECTIONS',),
    in_answers=('answers:IN_ANSWERS',),
    in_services=('serving:IN_SERVICES',),
    page={'reader': ('approximate.js',), 'laboratory': ('approximate.js',)},
)
_NAMES = {
    'pyserini_repbert.extensions.approximate.building': ('build_ann',),
    'pyserini_repbert.extensions.approximate.making': ('AnnSettings',),
}
__getattr__, __dir__, __all__ = lazily(__name__, _NAMES)
