"""Actions of `index` for collections: sync, add, delete, compact, copy, settings."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.collection.commands.encoding_rate import EncodingRate
from pyserini_repbert.collection.commands.flags import add_index_flag, add_settings
from pyserini_repbert.collection.model_options import model_options
from pyserini_repbert.commands import command
from pyserini_repbert.commands.command import EXIT_UNREAD
from pyserini_repbert.commands.console import printable
from pyserini_repbert.commands.flags import FUSION_SETTINGS, add_flags, check_outside, record_output
from pyserini_repbert.commands.outputs import OutputPath, check_outside_indexes
from pyserini_repbert.commands.terminal import say_encodings, say_unread, skipped_text
from pyserini_repbert.extension import add_flags_of, loaded, parts_of
from pyserini_repbert.files import human_size
from pyserini_repbert.processes import expect_to_end_soon

if TYPE_CHECKING:
    from pyserini_repbert.collection.collection import Collection
    from pyserini_repbert.collection.status import SourceStatus
    from pyserini_repbert.collection.syncing import Changes
    from pyserini_repbert.data.file_selection import FileSelection
    from pyserini_repbert.data.passages import Corpus
    from pyserini_repbert.pipeline.ray_texts import ClusterEmbedding

_CORPUS = 'file, folder, Lucene index, ir_datasets:ID, or catalog name'
# Rows of tables among the added documents that are worth a word.
_MANY_ROWS = 10


def add_sync_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `index sync`."""
    add = parser.add_argument
    _add_corpus_flags(parser)
    add('--source', metavar='NAME', help='name of the corpus in the collection; default: its path')
    add(
        '--prefix',
        metavar='NAME/',
        help='the beginning of the docids of the corpus in the collection; stored with the '
        'source; default: none',
    )
    add(
        '--url-prefix',
        metavar='ADDRESS',
        help='the address at which the files are published, for links from hits: '
        'https://docs.example.org/, or an address with {path} and {anchor}; stored with the '
        "source, and '' removes it; default: the files on this machine",
    )
    add(
        '--delete-most',
        action='store_true',
        help='allow the deletion of more than half of the documents',
    )
    add(
        '--checksum',
        action='store_true',
        help='compare the content of every file; default: open only files whose size or times '
        'have changed',
    )
    add(
        '--rebuild',
        action='store_true',
        help="replace the collection's stored settings with the given ones",
    )
    add_flags_of('index sync', parser)
    add_settings(parser)


def add_add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `index add`."""
    _add_corpus_flags(parser)
    add_settings(parser)


def add_delete_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `index delete`."""
    add = parser.add_argument
    add_index_flag(parser)
    add('--ids', nargs='+', metavar='DOCID', help='the documents')
    add('--ids-file', metavar='FILE', help='a file with one docid on each line')
    add(
        '--source',
        metavar='NAME',
        help='delete a source and all its documents: its name or path, as `index status` shows it',
    )
    _add_merge(parser)


def add_copy_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `index copy`."""
    add_index_flag(parser)
    parser.add_argument('--output', required=True, type=OutputPath, help='the folder to write')


def add_settings_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `index settings`."""
    add_index_flag(parser)
    add_flags(parser, 'rankings')
    add_flags(parser, 'aggregate', 'fusion', default=None)
    add_flags(parser, *FUSION_SETTINGS, 'depth', 'k1', 'b')
    add_flags(
        parser,
        'stages',
        flag='--rerank',
        metavar='NAME@K',
        help='rerank the best K hits; repeatable',
    )
    parser.add_argument('--go-back', action='store_true', help='undo the last change of settings')


def _add_corpus_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--corpus', required=True, help=_CORPUS)
    parser.add_argument(
        '--index', required=True, help="the collection's folder; created if it is missing"
    )
    add_flags(parser, 'corpus_format', 'fields', 'on_error')
    _add_file_flags(parser)
    _add_merge(parser)


def _add_file_flags(parser: argparse.ArgumentParser) -> None:
    """Flags about the files of a folder."""
    add = parser.add_argument
    patterns: dict[str, Any] = {'action': 'append', 'default': [], 'metavar': 'PATTERN'}
    add(
        '--include',
        help="read only files that match a pattern as in .gitignore, such as '*.md'; repeatable",
        **patterns,
    )
    add(
        '--exclude',
        help="leave out files that match a pattern, such as 'drafts/**'; repeatable",
        **patterns,
    )
    add('--gitignore', action='store_true', help='leave out the files that .gitignore files name')
    add(
        '--reader',
        action='append',
        default=[],
        metavar='.SUFFIX=MODULE:FUNCTION',
        help='your function for files with this suffix: it takes a path and returns a text or '
        'documents; repeatable',
    )
    add(
        '--main-content',
        action=argparse.BooleanOptionalAction,
        default=None,
        help='leave out navigation, headers and footers of HTML pages; a sync stores the choice; '
        'default: the stored choice, at first whole pages',
    )
    add(
        '--title',
        dest='title_column',
        metavar='COLUMN',
        help='the column of tables (CSV, TSV, Parquet, sheets) that has the titles of the rows; a '
        "table without this column is read as usual; a sync stores the choice, and '' removes it; "
        'default: the stored choice, at first the column that names the rows',
    )
    add(
        '--list-unread',
        action='store_true',
        help='list the files that are not read, with the reasons',
    )
    add(
        '--strict',
        action='store_true',
        help='if a file cannot be read, change nothing; default: keep the documents of that file, '
        'update the others, and end with status 3',
    )


def _add_merge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--merge',
        action='store_true',
        help="merge Lucene's segments, so that BM25 scores as in a new index",
    )


def run_sync(options: argparse.Namespace) -> int:
    """Do `index sync`; returns the exit status."""
    parts = parts_of('index sync')
    for part in parts:
        part.check(options)
    if any(part.run(options) for part in parts):
        return 0
    settings = command.pick_options(
        options,
        'source',
        'prefix',
        'url_prefix',
        'delete_most',
        'merge',
        'rebuild',
        'strict',
        'checksum',
    )
    followers = [part.begin(options) for part in parts]
    changes = _write(options, 'sync', corpus_name=options.corpus, **settings)
    statuses = [follow(changes) for follow in followers if follow is not None]
    if changes.unread.broken:
        statuses.append(EXIT_UNREAD)
    return next((status for status in statuses if status), 0)


def run_add(options: argparse.Namespace) -> int:
    """Do `index add`; returns the exit status."""
    changes = _write(options, 'add', merge=options.merge, strict=options.strict)
    return EXIT_UNREAD if changes.unread.broken else 0


def _write(options: argparse.Namespace, method: str, **settings: Any) -> Changes:
    """Do what `Collection.sync` or `Collection.add` do, and print what that was."""
    _check_folders(options)
    command.use_threads(options.threads)
    expect_to_end_soon()
    from pyserini_repbert.collection.collection import Collection
    from pyserini_repbert.collection.commands.unknown_words import (
        say_encoder,
        say_unknown,
        say_words_alone,
    )
    from pyserini_repbert.index.manifest import is_collection
    from pyserini_repbert.names.corpora import open_corpus

    corpus = open_corpus(
        options.corpus,
        options.corpus_format,
        options.fields,
        options.on_error,
        keep_empty=True,
        selection=_selection(options),
    )
    is_new = not is_collection(Path(options.index))
    encoder_before = None if is_new else _encoder_weights(options.index)
    with (
        _embedding(options) as embedding,
        Collection.open(
            options.index, embedding=embedding, **_chosen_settings(options)
        ) as collection,
        command.progress(_shown_total(options, corpus), method, 'documents', options.quiet) as bar,
    ):
        if method == 'sync':
            offers_precision = is_new and _may_offer_precision(options)
            rate = EncodingRate(bar, collection.source if offers_precision else None)
            settings['on_encoded'] = rate.update
        write = getattr(collection, method)
        changes: Changes = write(corpus, on_progress=bar.update, **settings)
        _record(options, collection, changes, ('corpus',))
        settings_now = collection.generation.settings
    _say_changes(options, changes)
    has_new_encoder = settings_now.weights_sha256 != encoder_before
    # A person who makes a collection with an encoder knows which.
    is_known = is_new and options.encoder is not None
    if has_new_encoder and not is_known and not options.quiet:
        say_encoder(options.index, settings_now, is_new)
    say_unknown(options.index, changes.unknown, settings_now, has_new_encoder)
    if settings.get('rebuild') and changes.unknown is None:
        say_words_alone(options.index)
    _say_main_content(options.corpus, changes.main_content)
    say_unread(changes.unread, changes.unread if options.list_unread else ())
    say_encodings(changes.encodings)
    return changes


def _may_offer_precision(options: argparse.Namespace) -> bool:
    """Whether flags leave the precision of the encoder open, and it runs on the CPU here."""
    has_choice = options.precision is None and options.ray is None
    return has_choice and bool(options.device == 'cpu')


def _check_folders(options: argparse.Namespace) -> None:
    """Raise InputError for a corpus in the folder of the index, or an index in another one."""
    check_outside(options.index, options.corpus, '--index')
    # What the collection writes would be its documents.
    is_inside = Path(options.corpus).resolve().is_relative_to(Path(options.index).resolve())
    command.refuse(
        Path(options.corpus).exists() and is_inside,
        f'--corpus {options.corpus} is the folder of --index, or is inside it: give the folder of '
        'the documents',
    )
    check_outside_indexes(options.index, '--index')


def _chosen_settings(options: argparse.Namespace) -> dict[str, Any]:
    """The settings of a collection that flags name, and its device."""
    models = ('encoder', *model_options())
    stored = ('passage_tokens', 'overlap', 'language', 'precision', 'dtype')
    chosen = command.pick_options(options, *models, 'truncate_dim', *stored)
    # With --ray, the device is the workers'.
    chosen['device'] = options.device if options.ray is None else 'cpu'
    return chosen


def _say_changes(options: argparse.Namespace, changes: Changes) -> None:
    """Print what was added, changed and deleted, and why documents were read again."""
    besides = skipped_text(changes.skipped) + _rows_text(changes) + _prefix_text(changes)
    print(f'{options.index}: {changes}{besides}')
    if changes.is_read_anew and changes.changed:
        print(
            f'{options.corpus} was read again, once: this release reads files that are marked up '
            '(Markdown, reStructuredText, HTML, …) as a person reads them, and gives rows of '
            'tables a title, and mails their sender',
            file=sys.stderr,
        )


def _encoder_weights(index: str) -> str | None:
    """The SHA-256 of the weights of a collection's encoder; None for one that is still empty."""
    from pyserini_repbert.collection.generation import open_generation, read_known
    from pyserini_repbert.errors import LostCollectionError

    try:
        read_known(Path(index))
    except LostCollectionError:
        return None
    generation = open_generation(Path(index))
    generation.close()
    return generation.settings.weights_sha256


def _shown_total(options: argparse.Namespace, corpus: Corpus) -> int | None:
    """How many documents a bar counts to; None if no bar is shown: files need not be opened."""
    is_shown = not options.quiet and sys.stderr is not None and sys.stderr.isatty()
    return corpus.count_hint() if is_shown else None


def _say_main_content(corpus: str, main_content: bool | None) -> None:
    """Say on stderr that pages are read otherwise from now on; None: they are not."""
    if main_content is None:
        return
    how = 'without their navigation, headers and footers' if main_content else 'as a whole'
    back = '--no-main-content' if main_content else '--main-content'
    print(
        f'pages of {printable(corpus)} are read {how} from now on; {back} undoes that',
        file=sys.stderr,
    )


def _selection(options: argparse.Namespace) -> FileSelection:
    """Which files of a folder are read, and by whose readers."""
    from pyserini_repbert.data.file_selection import FileSelection
    from pyserini_repbert.data.own_readers import named_reader

    return FileSelection(
        include=tuple(options.include),
        exclude=tuple(options.exclude),
        gitignore=options.gitignore,
        readers=dict(map(named_reader, options.reader)),
        main_content=options.main_content,
        title_column=options.title_column,
    )


def _files_text(state: SourceStatus) -> str:
    """' (12 files, 983 rows)' for a source whose files are not its documents; '' for others."""
    if state.files in (0, state.documents):
        return ''
    files = command.count_text(state.files, 'file')
    rows = f', {command.count_text(state.rows, "row")}' if state.rows else ''
    return f' ({files}{rows})'


def _rows_text(changes: Changes) -> str:
    """How many of the added documents are rows of tables; '' if there are few."""
    if changes.added_rows < _MANY_ROWS:
        return ''
    return f'; {changes.added_rows} of the added documents are rows of tables'


def _prefix_text(changes: Changes) -> str:
    """With what the docids of a source begin; '' if they are the corpus's own."""
    if not changes.prefix:
        return ''
    return f"; docids begin with '{printable(changes.prefix)}'"


@contextmanager
def _embedding(options: argparse.Namespace) -> Iterator[ClusterEmbedding | None]:
    """A context in which passages are encoded on the cluster of --ray; None without that flag."""
    if options.ray is None:
        yield None
        return
    from pyserini_repbert.pipeline.ray_texts import ClusterEmbedding
    from pyserini_repbert.pipeline.ray_workers import ray_worker_pool

    on_gpus = options.device not in ('cpu', 'auto')
    settings = command.pick_options(options, 'device', 'offline')
    with ray_worker_pool(options.ray, options.threads, on_gpus) as cluster:
        yield ClusterEmbedding(cluster, **settings)


def _record(
    options: argparse.Namespace,
    collection: Collection,
    changes: Changes,
    roles: Sequence[str] = (),
) -> None:
    """Write the record of a generation beside its manifest, if the command has published one.

    No other writer removes it meanwhile: the collection holds its generation.
    """
    from pyserini_repbert.collection.generation_manifest import manifest_path

    if changes.is_published and collection.generation.number == changes.generation:
        path = manifest_path(collection.folder, changes.generation)
        record_output(options, str(path), roles, collection.models)


def run_delete(options: argparse.Namespace) -> None:
    """Do `index delete`."""
    from pyserini_repbert.collection.collection import Collection
    from pyserini_repbert.data.documents import read_docids

    given = [options.ids, options.ids_file, options.source]
    command.refuse(given.count(None) != 2, 'give one of --ids, --ids-file and --source')
    besides = ''
    with Collection.open(options.index) as collection:
        if options.source is None:
            docids = options.ids or read_docids(options.ids_file)
            changes = collection.delete(docids, merge=options.merge)
        else:
            changes = collection.delete_source(options.source, merge=options.merge)
            besides = f"; source '{printable(options.source)}' is deleted"
        _record(options, collection, changes, ('ids_file',))
    print(f'{options.index}: {changes}{besides}')


def run_compact(options: argparse.Namespace) -> None:
    """Do `index compact`."""
    from pyserini_repbert.collection.collection import Collection

    with Collection.open(options.index) as collection:
        changes = collection.compact()
        _record(options, collection, changes)
        manifest = collection.generation.manifest
        shards = command.count_text(len(manifest.shards), 'shard')
    print(
        f'{options.index}: {manifest.documents} documents, {manifest.passages} passages in '
        f'{shards}, generation {changes.generation}'
    )


def run_copy(options: argparse.Namespace) -> None:
    """Do `index copy`."""
    from pyserini_repbert.collection.copying import copy_collection

    left_out: list[str] = []
    manifest = copy_collection(options.index, options.output, left_out.append)
    print(
        f'{options.output}: {manifest.documents} documents, {manifest.passages} passages, '
        f'generation {manifest.number}'
    )
    for line in left_out:
        print(line)


def run_settings(options: argparse.Namespace) -> None:
    """Change how a collection is searched unless flags say otherwise, and say how it is."""
    from pyserini_repbert.collection.commands.learning import say_losses
    from pyserini_repbert.collection.judging.own_settings import (
        OWN_FIELDS,
        own_settings,
        set_settings,
        undo_settings,
    )

    values = {}
    for name in OWN_FIELDS:
        value = getattr(options, name)
        # Zero is a value.
        if value not in (None, (), []):
            values[name] = value
    command.refuse(options.go_back and values, '--go-back does not take settings: leave them out')
    folder = Path(options.index)
    if options.go_back:
        undo_settings(folder)
    elif values:
        set_settings(folder, values)
    settings = own_settings(folder)
    width = max(len(setting.value) for setting in settings)
    print(f'{options.index} is searched by:')
    for setting in settings:
        print(f'  {setting.name:<10} {printable(setting.value):<{width}}  ({setting.source})')
    say_losses(folder)


def _print_source(state: SourceStatus) -> None:
    """Print what a source holds, and which of its files could not be read."""
    shown = f'{state.name}: {command.count_text(state.documents, "document")}'
    shown += _files_text(state)
    if state.synced:
        shown += f', synced {state.synced}'
    if state.prefix:
        shown += f", docids begin with '{state.prefix}'"
    if state.link:
        shown += f', addresses: {state.link}'
    if state.main_content:
        shown += ', main content of pages'
    if state.title_column:
        shown += f", titles of rows: column '{state.title_column}'"
    print('  ' + printable(shown))
    if state.report.unread:
        print('    ' + printable(state.report.unread))
    for path, reason in state.report.files:
        print('      ' + printable(f'{path}: {reason}'))


def run_status(options: argparse.Namespace) -> None:
    """Print what a collection holds, from where, what could not be read, and its own settings."""
    from pyserini_repbert.collection.collection import Collection
    from pyserini_repbert.collection.judging.own_settings import are_rankings_of_sync, own_settings
    from pyserini_repbert.collection.status import folder_size, source_states, stored_models

    with Collection.open(options.index) as collection:
        generation = collection.generation
        manifest = generation.manifest
        size = human_size(folder_size(collection.folder))
        documents = command.count_text(manifest.documents, 'document')
        passages = command.count_text(manifest.passages, 'passage')
        print(f'{options.index}: {documents}, {passages}, generation {manifest.number}, {size}')
        for model in stored_models(generation):
            size = f'{model.bytes_each:,} bytes a passage'
            print('  ' + printable(f"{model.what} '{model.encoder}': {size}"))
        for state in source_states(generation):
            _print_source(state)
        for part in loaded('in_collections'):
            for line in part.describe(generation):
                print('  ' + printable(line))
    folder = Path(options.index)
    for setting in own_settings(folder):
        if setting.source == 'default':
            continue
        shown = f'{setting.name} {setting.value} ({setting.source})'
        if setting.name == 'rankings' and are_rankings_of_sync(folder):
            encoder = generation.settings.encoder
            shown += f", since encoder '{encoder}' does not know the words of the documents"
        print('  ' + printable(shown))
