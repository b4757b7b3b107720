"""Collections: documents that change, and all rankings of them, in one folder."""

from typing import TYPE_CHECKING

from pyserini_repbert import lazily
from pyserini_repbert.extension import Command, Extension

if TYPE_CHECKING:
    from pyserini_repbert.collection.collection import Collection as Collection
    from pyserini_repbert.collection.generation import Generation as Generation
    from pyserini_repbert.collection.syncing import Changes as Changes
    from pyserini_repbert.data.documents import Document as Document

EXTENSION = Extension(
    name='collection',
    package=__name__,
    index_kinds=('index:KIND',),
    openers={
        'corpus': 'files.opening:open_corpus',
        'topics': 'judging.topics:open_topics',
        'qrels': 'judging.topics:open_qrels',
        'filter': 'filters:DocumentFilter',
    },
    options={
        'search': 'commands.filtering:IN_SEARCH',
        'explain': 'commands.filtering:IN_EXPLAIN',
        'adapt': 'commands.learning:IN_ADAPT',
    },
    commands={
        'index sync': Command(
            'make a collection, or bring it up to date',
            'commands.actions:run_sync',
            'commands.actions:add_sync_flags',
        ),
        'index add': Command(
            'add documents to a collection, and replace those with the same docids',
            'commands.actions:run_add',
            'commands.actions:add_add_flags',
        ),
        'index delete': Command(
            'delete documents of a collection, or a source with all its documents',
            'commands.actions:run_delete',
            'commands.actions:add_delete_flags',
        ),
        'index compact': Command(
            'free the disk space of deleted documents',
            'commands.actions:run_compact',
            'commands.actions:add_index_flag',
        ),
        'index judgments': Command(
            'import, export and count the judgments of a collection',
            'commands.judgments:handle_judgments',
            'commands.judgments:add_judgments_flags',
        ),
        'index settings': Command(
            'set how a collection is searched unless flags say otherwise, or show it',
            'commands.actions:run_settings',
            'commands.actions:add_settings_flags',
        ),
        'index status': Command(
            'show sources, documents, files that could not be read, generation and size',
            'commands.actions:run_status',
            'commands.actions:add_index_flag',
        ),
        'index copy': Command(
            'copy a collection, even while it is written',
            'commands.actions:run_copy',
            'commands.actions:add_copy_flags',
        ),
    },
)
_NAMES = {
    'pyserini_repbert.collection.collection': ('Collection',),
    'pyserini_repbert.collection.generation': ('Generation',),
    'pyserini_repbert.collection.syncing': ('Changes',),
    'pyserini_repbert.data.documents': ('Document',),
}
__getattr__, __dir__, __all__ = lazily(__name__, _NAMES)
