"""Indexers: documents as PyTerrier has them to a dense or an EPIC bundle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyserini_repbert.data.corpus import BadPassage, Corpus, OnError, Passage
from pyserini_repbert.encode.corpus import encode_corpus
from pyserini_repbert.encode.encoders import document_encoder
from pyserini_repbert.encode.epic import EpicEncoder
from pyserini_repbert.encode.epic_corpus import encode_epic_corpus
from pyserini_repbert.interop.pyterrier.frames import pd, pt

Documents = Iterable[Mapping[str, Any]]


class _Documents(Corpus):
    """Documents with 'docno' and text fields, read once."""

    def __init__(self, documents: Documents, fields: Sequence[str], on_error: OnError | str) -> None:
        super().__init__('documents', on_error)
        self._documents, self._fields = documents, fields

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        for number, document in enumerate(self._documents, 1):
            absent = next((field for field in ('docno', *self._fields) if field not in document), None)
            item: Passage | BadPassage = BadPassage(f"there is no field '{absent}'")
            if absent is None and pd.isna(document['docno']):
                item = BadPassage("field 'docno' is empty")
            elif absent is None:
                texts = (document[field] for field in self._fields)
                item = Passage(str(document['docno']), ' '.join(str(text) for text in texts if not pd.isna(text)))
            yield f'document {number}', item

    def _first_place(self, docid: str) -> str:
        return 'an earlier document'  # a stream cannot be read again


class Indexer(pt.Indexer, ABC):  # type: ignore[misc]
    """Base of the indexers; subclasses say how passages are encoded.

    Parameters
    ----------
    output : the index folder
    encoder : catalog name or checkpoint folder
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    fields : of a document that are its text, joined by a space
    precision : of the model: 'float32', 'bfloat16', 'float16', or 'auto'
    on_error : 'refuse' raises InputError at the first document that cannot be used, 'skip' warns
    store_text : store the passages, for `PassageText`
    settings : of the encoding function that the subclass names

    Raises
    ------
    InputError
        by `index`, for a document without 'docno', a field or text, or with a docno that was used before
    """

    def __init__(
        self,
        output: str | Path,
        encoder: str | Path,
        device: str = 'cpu',
        fields: Sequence[str] = ('text',),
        precision: str = 'float32',
        on_error: OnError | str = OnError.REFUSE,
        store_text: bool = True,
        **settings: Any,
    ) -> None:
        self.output, self.encoder, self.device = Path(output), encoder, device
        self.fields, self.precision, self.on_error = tuple(fields), precision, OnError(on_error)
        self.store_text, self.settings = store_text, settings

    def index_inputs(self) -> list[list[str]]:
        """The fields of a document that are read."""
        return [['docno', *self.fields]]

    def index(self, iter: Documents, **_: object) -> Path:
        """Index the documents. Returns the index folder, for a retriever or a reranker."""
        self._encode(_Documents(iter, self.fields, self.on_error))
        return self.output

    @abstractmethod
    def _encode(self, corpus: Corpus) -> None:
        """Write the index folder."""


class RepBertIndexer(Indexer):
    """Documents to a dense bundle, for `RepBertRetriever`; `settings` are those of `encode.encode_corpus`."""

    def _encode(self, corpus: Corpus) -> None:
        encoder = document_encoder(self.encoder, self.device, precision=self.precision)
        encode_corpus(corpus, encoder, self.output, store_text=self.store_text, **self.settings)


class EpicIndexer(Indexer):
    """Documents to an EPIC bundle, for `Epic`; `settings` are those of `encode.epic_corpus.encode_epic_corpus`."""

    def _encode(self, corpus: Corpus) -> None:
        encoder = EpicEncoder(self.encoder, self.device, self.precision)
        encode_epic_corpus(corpus, encoder, self.output, store_text=self.store_text, **self.settings)
