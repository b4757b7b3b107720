"""CEDR's files of pairs: a line of `qid docid` for each document that a topic is trained on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pyserini_repbert.data.values import columns
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath, atomic_file, numbered_lines

Pairs = dict[str, list[str]]
_COLUMNS = 2


def read_pairs(path: StrPath) -> Pairs:
    """The documents of each topic in the file's order, each once; columns by tabs or spaces.

    Raises InputError, with file and line, for a line of another form.
    """
    docids: dict[str, dict[str, None]] = {}
    for number, line in numbered_lines(path, 'file of pairs'):
        try:
            values = columns(line)
        except ValueError as error:
            raise InputError.at(path, number, str(error)) from error
        if not values:
            continue
        if len(values) != _COLUMNS:
            raise InputError.at(
                path, number, f"expected 'qid docid', found {len(values)} columns: {line[:60]!r}"
            )
        qid, docid = values
        docids.setdefault(qid, {})[docid] = None
    return {qid: list(of_topic) for qid, of_topic in docids.items()}


def write_pairs(path: Path, pairs: Mapping[str, Iterable[str]]) -> None:
    """Write `qid<TAB>docid` lines."""
    with atomic_file(path) as stream:
        for qid, docids in pairs.items():
            for docid in docids:
                stream.write(f'{qid}\t{docid}\n')
