"""Which corpora are a person's files, for code that opens a corpus by a path."""

from __future__ import annotations

from collections.abc import Iterable

from pyserini_repbert.data.corpus_files import (
    FORMATS,
    OF_PEOPLE,
    CorpusRequest,
    guess_records,
)
from pyserini_repbert.data.file_selection import FileSelection
from pyserini_repbert.data.passages import Corpus, OnError
from pyserini_repbert.files import StrPath


def open_corpus(
    source: StrPath,
    fmt: str,
    fields: Iterable[str],
    on_error: OnError,
    keep_empty: bool,
    selection: FileSelection | None,
) -> Corpus | None:
    """A folder, or a file that holds no records of one format.

    None for a file that does, and for a format that no person writes.

    Parameters
    ----------
    source : the folder or the file
    fmt : the format of its files; 'auto': recognised file by file
    fields : the text fields of records
    on_error : whether a record that cannot be read is an error, or is skipped
    keep_empty : whether documents without text are kept
    selection : which files of a folder are read; None: all
    """
    selection = selection or FileSelection()
    skipping = OnError(on_error)
    asked = CorpusRequest(source, tuple(fields), skipping, keep_empty, selection)
    if not _is_of_people(asked, fmt):
        return None
    # A file of records loads no reader of other files.
    from pyserini_repbert.collection.files.corpus_of_kinds import open_files

    return open_files(asked, fmt)


def _is_of_people(asked: CorpusRequest, fmt: str) -> bool:
    """Whether the readers of a person's files open a corpus."""
    if asked.path.is_dir():
        return fmt in ('auto', *FORMATS, *OF_PEOPLE)
    if fmt == 'auto':
        return not guess_records(asked)
    return fmt in OF_PEOPLE
