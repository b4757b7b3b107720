"""Passage text for result frames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyserini_repbert.data.passages import PassageTexts
from pyserini_repbert.interop.pyterrier.frames import pd, pt
from pyserini_repbert.names.texts import texts_opener


class PassageText(pt.Transformer):  # type: ignore[misc]
    """Adds the column 'text' by 'docno', None for a docno that the index or corpus lacks.

    Parameters
    ----------
    index : a dense or EPIC bundle with text, a Lucene index, the name of one, or a retriever of this package
    corpus : instead of an index: a file, a folder, ir_datasets:ID, or a collection of the catalog; read once for each
        frame
    corpus_format, fields : of the corpus, as in `names.corpora.open_corpus`
    download : fetch a prebuilt Lucene index that is not on this machine

    Raises
    ------
    InputError
        unless exactly one of index and corpus is given, or for an index without text
    """

    def __init__(
        self,
        index: str | Path | PassageTexts | None = None,
        corpus: str | Path | None = None,
        corpus_format: str = 'auto',
        fields: Sequence[str] = (),
        download: bool = False,
    ) -> None:
        self.index, self.corpus, self.download = index, corpus, download
        self.corpus_format, self.fields = corpus_format, tuple(fields)
        self._opened: PassageTexts | None = None
        if index is None or isinstance(index, (str, Path)) or corpus is not None:
            self._open = texts_opener(_named(corpus), _named(index), corpus_format, fields, download)
        else:
            self._opened = index

    def transform(self, inp: Any) -> Any:
        """The frame with 'text'. Raises InputValidationError for a frame without 'docno'."""
        pt.validate.columns(inp, includes=['docno'])
        docids = list(map(str, inp['docno']))
        distinct = list(dict.fromkeys(docids))
        found: dict[str, str | None] = {}
        if distinct:
            opened = self._open(distinct) if self._opened is None else self._opened
            found = dict(zip(distinct, opened.texts(distinct), strict=True))
        return inp.assign(text=pd.Series([found[docid] for docid in docids], index=inp.index, dtype=object))


def _named(place: object) -> str | None:
    return None if place is None else str(place)
