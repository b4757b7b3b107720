"""RepBERT in Pyserini's own tables and its server, so that Pyserini's commands and searchers know it by name.

Two names look alike here: an *encoder name* is what a user gives to `--encoder` (a catalog name or a folder); a
*keyword* is what Pyserini looks for inside that name, lower-cased, in the order of its table, to choose a class.
"""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

from pyserini_repbert import catalog
from pyserini_repbert.checksums import digest
from pyserini_repbert.errors import InputError, MismatchError, PyseriniRepbertError
from pyserini_repbert.files import StrPath, atomic_folder
from pyserini_repbert.lucene import compat
from pyserini_repbert.lucene.compat import add_index, encoder_maps, prebuilt_tables
from pyserini_repbert.names.rankers import system_of

logger = logging.getLogger(__name__)

KEYWORD = 'repbert'
MARKER = 'pyserini_repbert.json'  # in an index folder inside Pyserini's cache: the entry for Pyserini's table
FAISS_FILES = ('index', 'docid')  # Pyserini's FAISS layout


def register() -> None:
    """Make RepBERT's encoders and installed indexes known to Pyserini; further calls change nothing.

    Pyserini takes the first keyword that is part of the encoder's name, so ours goes to the front: a folder
    'ance/repbert' is RepBERT's.
    """
    _put_first(KEYWORD)
    _register_indexes()


def claim(encoder: str) -> None:
    """Make Pyserini choose a class by what `encoder` is, not by its name, once `register` was called.

    Ours gets RepBERT's classes even if its name lacks the keyword. For any other folder the keyword is taken out of
    Pyserini's tables, so that it gets Pyserini's class even if its path has the keyword.
    """
    if is_ours(encoder):
        _put_first(encoder.lower())
    elif Path(encoder).is_dir():
        for table in encoder_maps():
            table.pop(KEYWORD, None)


def is_ours(encoder: str) -> bool:
    """Whether an encoder name means RepBERT: a folder by its config.json, else by the catalog or the keyword."""
    if Path(encoder).is_dir():
        return system_of(encoder) == KEYWORD
    return catalog.find('encoders', encoder) is not None or KEYWORD in encoder.lower()


def _put_first(keyword: str) -> None:
    from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder

    for table, encoder_class in zip(encoder_maps(), (RepBertQueryEncoder, RepBertDocumentEncoder), strict=True):
        others = {key: value for key, value in table.items() if key != keyword}
        table.clear()
        table.update({keyword: encoder_class, **others})


def indexes_folder() -> Path:
    """The folder where Pyserini unpacks prebuilt indexes."""
    return Path(compat.import_pyserini('pyserini.util').get_cache_home()) / 'indexes'


def install_index(folder: StrPath, name: str) -> Path:
    """Give an exported index a name in Pyserini, for `FaissSearcher.from_prebuilt_index(name, encoder)`.

    The files are linked into Pyserini's index cache, or copied where they cannot be linked. Returns the folder there.
    """
    source = Path(folder)
    missing = [file for file in FAISS_FILES if not (source / file).is_file()]
    if missing:
        raise InputError(f"{source} has no file '{missing[0]}': export the index to FAISS's format first")
    if not name or Path(name).name != name or len(name.split()) != 1:
        raise InputError(f"'{name}' cannot name an index: use letters, digits, dots and dashes")
    md5 = digest(source / 'index', 'md5')
    target = indexes_folder() / f'{name}.{md5}'
    if any(name in table and table[name]['md5'] != md5 for table in prebuilt_tables().values()):
        raise MismatchError(f"Pyserini has another index '{name}' already: choose another name")
    if not target.exists():
        with open(source / 'docid', encoding='utf-8') as lines:
            documents = sum(1 for _ in lines)
        with atomic_folder(target) as temporary:
            for file in FAISS_FILES:
                try:
                    (temporary / file).hardlink_to(source / file)
                except OSError:  # the file system has no hard links
                    shutil.copyfile(source / file, temporary / file)
            entry = {'name': name, 'md5': md5, 'documents': documents}
            (temporary / MARKER).write_text(json.dumps(entry) + '\n', encoding='utf-8')
    _register_indexes()
    return target


def _register_indexes() -> None:
    """Add the indexes that `install_index` put into Pyserini's cache to Pyserini's table, whose own names win.

    An index that cannot be added is skipped with a warning: Pyserini works without it.
    """
    for marker in sorted(indexes_folder().glob(f'*/{MARKER}')):
        try:
            values = json.loads(marker.read_text(encoding='utf-8'))
            name, tables = values['name'], prebuilt_tables()
            entry = {
                'description': f'{name}, exported by pyserini_repbert',
                'filename': f'{name}.tar.gz',
                'urls': [(marker.parent.parent / f'{name}.tar.gz').as_uri()],  # 1.6 derives the folder's name from it
                'md5': values['md5'],
                'documents': values.get('documents'),
                'downloaded': True,
                'texts': None,
            }
            if not any(name in table for table in tables.values()):
                add_index(tables['dense'], name, entry)
        except (PyseriniRepbertError, OSError, ValueError, KeyError, TypeError) as error:
            logger.warning('the index of %s is not known to Pyserini now (%s): install it again', marker, error)


def register_with_server() -> None:
    """Let the server of Pyserini 2.x open dense indexes with RepBERT; nothing changes with Pyserini 1.6.

    The server gives a searcher the name of an encoder, which is not looked up in Pyserini's tables: FaissSearcher gets
    the encoder itself instead. The server of 1.6 opens only prebuilt indexes, with its own encoders.
    """
    if (tables := compat.server_tables()) is None:
        return
    factories, indexes = tables
    local, prebuilt, arguments_of = factories['faiss']

    def with_encoder(index: Any) -> dict[str, Any]:
        arguments: dict[str, Any] = arguments_of(index)
        if not isinstance(index.encoder, str) or not is_ours(index.encoder):
            return arguments
        if index.path:  # the server of 2.4 looks in its table for the passages of every dense index
            entry = {'filename': index.name, 'urls': [Path(index.path).as_uri()], 'md5': '', 'texts': index.base_index}
            add_index(indexes['faiss'], index.name, entry)
        from pyserini_repbert.encode import RepBertQueryEncoder

        return arguments | {'query_encoder': RepBertQueryEncoder(index.encoder)}

    factories['faiss'] = (local, prebuilt, with_encoder)
