"""The passages of a run or an index, found by the records of how it was made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.index.records import TEXTS
from pyserini_repbert.lucene.lucene_form import is_lucene_index
from pyserini_repbert.record import Input, Record, read_record


@dataclass(frozen=True, slots=True)
class Passages:
    """The source of passages, a corpus or an index: arguments of `indexes.texts.texts_opener`."""

    corpus: str | None
    index: str | None
    corpus_format: str = 'auto'
    fields: tuple[str, ...] = ()


def recorded_passages(output: str, above: tuple[Path, ...] = ()) -> Passages | None:
    """The source of the passages of a run or an index, by its record or the records of its inputs.

    None if no index names one. An index of the catalog means its collection. Outputs already
    visited, those `above`, are not followed again: a file may have been rebuilt from its own
    output.
    """
    record = read_record(output)
    path = Path(output).resolve()
    if record is None or path in above:
        return None
    passages = _corpus(record) or _stored(record)
    if passages:
        return passages
    for input_ in record.inputs:
        if input_.role in ('run', 'runs', 'index', 'sparse'):
            passages = recorded_passages(_folder(input_), (*above, path))
            if passages:
                return passages
    return _lucene(record)


def _corpus(record: Record) -> Passages | None:
    """The corpus that a command read; None if it read none."""
    corpus = record.input('corpus')
    if corpus is None:
        return None
    corpus_format = str(record.settings.get('corpus_format', 'auto'))
    fields = tuple(record.settings.get('fields', ()))
    return Passages(corpus.name, None, corpus_format, fields)


def _stored(record: Record) -> Passages | None:
    """The passages of the index that was searched; None if it stores none.

    They are the catalog's collection, or those that a bundle stores.
    """
    index = record.input('index')
    if index is None:
        return None
    entry = catalog.find('indexes', index.name)
    if entry:
        return Passages(str(entry.values['collection']), None)
    if catalog.find('collections', index.name):
        return Passages(index.name, None)
    if any(Path(index.name).glob(f'shard-*/{TEXTS}')):
        return Passages(None, index.name)
    return None


def _lucene(record: Record) -> Passages | None:
    """A Lucene index that was searched, and may store its passages; otherwise None."""
    for input_ in record.inputs:
        if input_.role in ('index', 'sparse') and is_lucene_index(_folder(input_)):
            return Passages(None, _folder(input_))
    return None


def _folder(input_: Input) -> str:
    """An input's path; for the sparse technique 'bm25@FOLDER', FOLDER."""
    if input_.role != 'sparse':
        return input_.name
    _, _, folder = input_.name.partition('@')
    return folder or input_.name
