"""Index folders in PyTerrier: indexers write them, `pt.Artifact.load` opens them, `to_hf` and `to_zenodo` share them.

PyTerrier finds the artifacts by this package's entry points; nothing is added to the folders.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyserini_repbert.data.corpus import BadPassage, Corpus, OnError, Passage
from pyserini_repbert.encode.corpus import encode_corpus
from pyserini_repbert.encode.encoders import document_encoder
from pyserini_repbert.encode.epic import EpicEncoder
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.index.manifest import MANIFEST, manifest_kind
from pyserini_repbert.interop.pyterrier.frames import pd, pt
from pyserini_repbert.interop.pyterrier.rerankers import Rerank
from pyserini_repbert.interop.pyterrier.retrievers import HITS, RepBertRetriever

FORMAT = 'pyserini_repbert'
PACKAGE = 'pyserini-repbert[pyterrier]'
DENSE, EPIC = 'dense_index', 'epic_index'


class DenseArtifact(pt.Artifact):  # type: ignore[misc]
    """A dense bundle."""

    ARTIFACT_TYPE, ARTIFACT_FORMAT, ARTIFACT_PACKAGE_HINT = DENSE, FORMAT, PACKAGE

    def retriever(self, encoder: str | Path | None = None, num_results: int = HITS, **settings: Any) -> Any:
        """A `RepBertRetriever` of the bundle; default encoder: the one that it was built with."""
        return RepBertRetriever(self.path, encoder, num_results, **settings)


class EpicArtifact(pt.Artifact):  # type: ignore[misc]
    """An EPIC bundle."""

    ARTIFACT_TYPE, ARTIFACT_FORMAT, ARTIFACT_PACKAGE_HINT = EPIC, FORMAT, PACKAGE

    def reranker(self, model: str | Path, **settings: Any) -> Any:
        """A `Rerank` that reads the passages' vectors from the bundle."""
        return Rerank(model, index=self.path, **settings)


def bundle_metadata(path: str, listing: Sequence[str]) -> dict[str, str] | None:
    """PyTerrier's metadata of a dense or an EPIC bundle, which its manifest tells; None for any other folder."""
    if MANIFEST not in listing or not any(name.startswith('shard-') for name in listing):
        return None
    kind = EPIC if manifest_kind(path) == EpicBundle.settings_kind.kind else DENSE
    return {'type': kind, 'format': FORMAT, 'package_hint': PACKAGE}


class _Documents(Corpus):
    """Documents with 'docno' and text fields, read once."""

    def __init__(self, documents: Iterable[Mapping[str, Any]], fields: Sequence[str], on_error: OnError | str) -> None:
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
    fields : of a document that are its text, joined by a space
    on_error : 'refuse' raises InputError at the first document that cannot be used, 'skip' warns
    settings : of the encoding function that the subclass names
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

    def index(self, iter: Iterable[Mapping[str, Any]], **_: object) -> Path:
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
    """Documents to an EPIC bundle, for `Rerank`; `settings` are those of `encode.encode_corpus`."""

    def _encode(self, corpus: Corpus) -> None:
        encoder = EpicEncoder(self.encoder, self.device, self.precision)
        encode_corpus(corpus, encoder, self.output, store_text=self.store_text, **self.settings)
