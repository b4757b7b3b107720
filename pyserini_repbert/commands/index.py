"""`python -m pyserini_repbert.index`: build EPIC, Lucene and approximate indexes; check and export indexes."""

from __future__ import annotations

import argparse

from pyserini_repbert.commands import (
    command,
    index_ann as ann_command,
    index_epic as epic_command,
    index_lucene as lucene_command,
    recording,
)


def make_parser() -> argparse.ArgumentParser:
    """The command's flags."""
    parser = command.parser('index', 'Build EPIC and Lucene indexes, check and export indexes.')
    actions = parser.add_subparsers(dest='action', required=True, metavar='ACTION')
    check = actions.add_parser('check', help='read every file of an index and compare it with its checksum')
    export = actions.add_parser('export', help="write a dense bundle as Pyserini's FAISS layout")
    for action in (check, export):
        action.add_argument('--index', required=True, help='an index folder or a catalog name')
        action.add_argument('--encoder', help='of a catalog index')
    export.add_argument('--to-faiss', required=True, metavar='FOLDER', help='the folder to write')
    export.add_argument('--install', metavar='NAME', help='also make it a prebuilt index of Pyserini by this name')
    ann_command.add_arguments(actions.add_parser('ann', help='an approximate index for a dense bundle'))
    epic_command.add_arguments(actions.add_parser('epic', help="a corpus to EPIC's sparse vectors"))
    epic_command.add_prune_arguments(actions.add_parser('epic-prune', help='an EPIC index to a smaller one'))
    lucene_command.add_arguments(actions.add_parser('lucene', help='build a Lucene index, expanded or not'))
    for action in actions.choices.values():
        action.add_argument('--quiet', action='store_true', default=argparse.SUPPRESS, help='no progress bars')
    return parser


def main(arguments: list[str]) -> int | None:
    """Run the command."""
    options = make_parser().parse_args(arguments)
    _RUN[options.action](options)
    return 0


def _check(options: argparse.Namespace) -> None:
    from pyserini_repbert.index.check import check_index
    from pyserini_repbert.names.indexes import existing_folder

    print(check_index(existing_folder(options.index, options.encoder)))


def _export(options: argparse.Namespace) -> None:
    from pyserini_repbert.index.dense import DenseBundle
    from pyserini_repbert.index.faiss_layout import export_faiss
    from pyserini_repbert.names.indexes import existing_folder

    bundle = DenseBundle(existing_folder(options.index, options.encoder))
    size = f'{len(bundle)} passages x {bundle.settings.dimension} {bundle.settings.dtype}'
    with command.progress(len(bundle), 'export', 'passages', options.quiet) as bar:
        export_faiss(bundle, options.to_faiss, bar.update)
    recording.write(options, options.to_faiss, ('index',))
    print(f'{options.to_faiss}: {size}')
    if options.install:
        from pyserini_repbert.interop.pyserini import install_index

        print(f'{options.install}: {install_index(options.to_faiss, options.install)}')


_RUN = {
    'check': _check,
    'export': _export,
    'ann': ann_command.run,
    'epic': epic_command.run,
    'epic-prune': epic_command.run_prune,
    'lucene': lucene_command.run,
}
