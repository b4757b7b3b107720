"""RepBERT in Pyserini's own tables and its server, so that Pyserini's commands and searchers know
it by name.

Two names look alike here: an *encoder name* is what a user gives to `--encoder` (a catalog name or
a folder); a *keyword* is what Pyserini looks for inside that name, lower-cased, in the order of its
table, to choose a class.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from pyserini_repbert import catalog
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath, atomic_folder
from pyserini_repbert.lucene import compat
from pyserini_repbert.lucene.compat import add_index, encoder_maps, prebuilt_tables
from pyserini_repbert.names.rankers import system_of
from pyserini_repbert.systems.registry import load, systems

KEYWORD = 'repbert'
# A file of installed indexes, whose folders are named NAME.MD5, as Pyserini's are.
MARKER = 'pyserini_repbert.json'


def register() -> None:
    """Make RepBERT's encoders and installed indexes known to Pyserini; further calls change
    nothing.

    Pyserini takes the first keyword that is part of the encoder's name, so ours goes to the front:
    a folder 'ance/repbert' is RepBERT's.
    """
    _put_first(KEYWORD, KEYWORD)
    for marker in sorted(indexes_folder().glob(f'*/{MARKER}')):
        name, _, md5 = marker.parent.name.rpartition('.')
        # Pyserini derives the folder's name from the packed index's.
        packed = marker.parent.with_name(f'{name}.tar.gz')
        entry = {'filename': packed.name, 'urls': [packed.as_uri()], 'md5': md5, 'texts': None}
        add_index(prebuilt_tables()['dense'], name, entry)


def indexes_folder() -> Path:
    """The folder where Pyserini unpacks prebuilt indexes."""
    return Path(compat.import_pyserini('pyserini.util').get_cache_home(), 'indexes').absolute()


def install_index(folder: StrPath, name: str) -> Path:
    """Copy an exported index into Pyserini's cache, where Pyserini finds it by `name`.

    Returns its folder there.
    """
    check_index_name(name)
    target = indexes_folder() / f'{name}.pyserini_repbert'
    with atomic_folder(target) as temporary:
        shutil.copytree(folder, temporary, dirs_exist_ok=True)
        (temporary / MARKER).write_text('{}')
    register()
    return target


def check_index_name(name: str) -> None:
    """Raises InputError for a name that Pyserini knows, or that cannot name an index."""
    register()
    is_known = any(name in table for table in prebuilt_tables().values())
    if is_known or not re.fullmatch(r'\w[\w.-]*', name):
        rule = 'expected letters, digits, dots and dashes, and no name that Pyserini knows'
        raise InputError(f"'{name}' cannot name an index, or does already: {rule}")


def claim(encoder: str) -> None:
    """Make Pyserini choose a class by what `encoder` is, not by its name, once `register` was
    called.

    Ours gets the classes of its system even if its name lacks the keyword. For any other folder the
    keyword is taken out of Pyserini's tables, so that it gets Pyserini's class even if its path has
    the keyword.
    """
    if is_ours(encoder):
        entry = catalog.find('encoders', encoder)
        system = KEYWORD if entry is None else str(entry.values['ranking']['system'])
        _put_first(encoder.lower(), system)
    elif Path(encoder).is_dir():
        for table in encoder_maps():
            table.pop(KEYWORD, None)


def is_ours(encoder: str) -> bool:
    """Whether an encoder name means one of ours: a folder by its config.json, otherwise by the
    catalog or the keyword.
    """
    if Path(encoder).is_dir():
        return system_of(encoder) == KEYWORD
    return catalog.find('encoders', encoder) is not None or KEYWORD in encoder.lower()


def _put_first(keyword: str, system: str) -> None:
    """Put the encoders of a system before all others in Pyserini's tables."""
    encoders = systems()[system]
    names = (encoders.query_encoder, encoders.document_encoder)
    for table, name in zip(encoder_maps(), names, strict=True):
        others = {key: value for key, value in table.items() if key != keyword}
        table.clear()
        table.update({keyword: load(str(name)), **others})


def register_with_server() -> None:
    """Let the server of Pyserini 2.x open dense indexes with RepBERT; nothing changes with Pyserini
    1.6.

    The server gives a searcher the name of an encoder, which is not looked up in Pyserini's tables:
    FaissSearcher gets the encoder itself instead. The server of 1.6 opens only prebuilt indexes,
    with its own encoders.
    """
    tables = compat.server_tables()
    if tables is None:
        return
    factories, indexes = tables
    local, prebuilt, arguments_of = factories['faiss']

    def arguments_with_encoder(index: Any) -> dict[str, Any]:
        arguments: dict[str, Any] = arguments_of(index)
        if not isinstance(index.encoder, str) or not is_ours(index.encoder):
            return arguments
        if index.path:
            # The server of 2.4 looks in its table for the passages of every dense index.
            entry = {
                'filename': index.name,
                'urls': [Path(index.path).as_uri()],
                'md5': '',
                'texts': index.base_index,
            }
            add_index(indexes['faiss'], index.name, entry)
        from pyserini_repbert.systems.encoders import query_encoder

        return arguments | {'query_encoder': query_encoder(index.encoder)}

    factories['faiss'] = (local, prebuilt, arguments_with_encoder)
