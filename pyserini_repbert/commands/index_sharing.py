"""The commands `index publish` and `index install`: an index as a tarball with an entry, for other machines."""

from __future__ import annotations

import argparse

from pyserini_repbert.commands import command


def add_publish_arguments(made: argparse.ArgumentParser) -> None:
    """Add the flags of `index publish`."""
    made.add_argument('--index', required=True, help='an index folder or a catalog name')
    made.add_argument('--encoder', help='of a catalog index')
    made.add_argument('--name', required=True, help='by which others will search it')
    made.add_argument('--output', required=True, metavar='FOLDER', help='where NAME.tar.gz and NAME.json are written')
    made.add_argument('--description', default='', help='for the entry')
    made.add_argument('--url', help='where the tarball will lie; without it, others put it beside the entry')


def add_install_arguments(made: argparse.ArgumentParser) -> None:
    """Add the flags of `index install`."""
    made.add_argument('entry', metavar='NAME.json', help='what index publish wrote')
    made.add_argument('--offline', action='store_true', help='download nothing')


def publish(options: argparse.Namespace) -> None:
    """Run `index publish`."""
    from pyserini_repbert.disk import human_size
    from pyserini_repbert.index.sharing import publish_index, read_entry
    from pyserini_repbert.names.indexes import existing_folder

    folder = existing_folder(options.index, options.encoder)
    with command.progress(None, 'pack', 'bytes', options.quiet) as bar:
        made = publish_index(folder, options.output, options.name, options.description, options.url, bar.update)
    entry = read_entry(made)
    print(f'{made}: {entry["holds"]}, {entry["file"]} has {human_size(entry["size"])}')


def install(options: argparse.Namespace) -> None:
    """Run `index install`."""
    from pathlib import Path

    from pyserini_repbert.download import forbid_downloads
    from pyserini_repbert.index.sharing import install_index, read_entry

    forbid_downloads(options.offline)
    with command.progress(None, 'unpack', 'bytes', options.quiet) as bar:
        folder = install_index(options.entry, bar.update)
    entry = read_entry(Path(options.entry))
    print(f'{entry["name"]}: {entry["holds"]}, in {folder}')
