"""Which corpora are a person's files, for whoever opens a corpus by a path."""

from __future__ import annotations

from collections.abc import Iterable

from pyserini_repbert.data.corpus_files import FORMATS, CorpusRequest, guess_records
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
    """A folder, or a file that holds no records of one format; None for one that does.

    `names.corpora.open_corpus` explains the parameters.
    """
    selection = selection or FileSelection()
    asked = CorpusRequest(source, tuple(fields), on_error, keep_empty, selection)
    if asked.path.is_file() and (fmt in FORMATS or (fmt == 'auto' and guess_records(asked))):
        return None
    # A file of records loads no reader of other files.
    from pyserini_repbert.collection.files.corpus_of_kinds import open_files

    return open_files(asked, fmt)
