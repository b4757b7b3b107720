"""A command's inputs by name and checksum; and the passages of a run, found by following
records.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.index.records import TEXTS
from pyserini_repbert.lucene.indexer import is_lucene_index
from pyserini_repbert.names.corpora import collection_file
from pyserini_repbert.names.indexes import NamedIndex, locate
from pyserini_repbert.record import Input, Record, checksum, read_record


def input_of(role: str, name: str) -> Input:
    """An input that a command has read, with the checksum of its file or folder; None where
    there is none.
    """
    return Input(role, name, checksum(name) if Path(name).exists() else _of_catalog(role, name))


def _of_catalog(role: str, name: str) -> str | None:
    if role == 'corpus' and (entry := catalog.find('collections', name)):
        return checksum(collection_file(entry))
    if role == 'topics' and (file := catalog.file('topics', name)):
        return checksum(file)
    if role == 'index' and catalog.find('indexes', name):
        location = locate(name)
        return checksum(location.folder if isinstance(location, NamedIndex) else location)
    return None


@dataclass(frozen=True, slots=True)
class Passages:
    """The source of passages, either a corpus or an index: arguments of
    `names.texts.texts_opener`.
    """

    corpus: str | None
    index: str | None
    corpus_format: str = 'auto'
    fields: tuple[str, ...] = ()


def recorded_passages(output: str, above: tuple[Path, ...] = ()) -> Passages | None:
    """The source of the passages of a run or an index, by its record or those of its inputs; None
    if none names one.

    An index of the catalog stands for its collection. Outputs already visited, those `above`, are
    not followed again: a file may have been rebuilt from its own output.
    """
    record = read_record(output)
    own_place = Path(output).resolve()
    if record is None or own_place in above:
        return None
    if corpus := record.input('corpus'):
        fields = record.settings.get('fields', ())
        return Passages(
            corpus.name, None, str(record.settings.get('corpus_format', 'auto')), tuple(fields)
        )
    if index := _stored(record):
        return index
    inputs = [
        _folder(input_)
        for input_ in record.inputs
        if input_.role in ('run', 'runs', 'index', 'sparse')
    ]
    below = (recorded_passages(input_, (*above, own_place)) for input_ in inputs)
    return next((input_ for input_ in below if input_), None) or _lucene(record)


def _stored(record: Record) -> Passages | None:
    """The catalog's collection of the index that was searched, or a bundle that stores its
    passages; else None.
    """
    index = record.input('index')
    if index is None:
        return None
    if entry := catalog.find('indexes', index.name):
        return Passages(str(entry.values['collection']), None)
    if catalog.find('collections', index.name):
        return Passages(index.name, None)
    return Passages(None, index.name) if any(Path(index.name).glob(f'shard-*/{TEXTS}')) else None


def _lucene(record: Record) -> Passages | None:
    """A Lucene index that was searched, and may store its passages; else None."""
    folders = [_folder(input_) for input_ in record.inputs if input_.role in ('index', 'sparse')]
    return next((Passages(None, folder) for folder in folders if is_lucene_index(folder)), None)


def _folder(input_: Input) -> str:
    """An input's path; for the sparse technique 'bm25@FOLDER', FOLDER."""
    return input_.name.partition('@')[2] or input_.name if input_.role == 'sparse' else input_.name
