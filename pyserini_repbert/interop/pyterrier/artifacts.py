"""Index folders in PyTerrier: indexers write them, `pt.Artifact.load` opens them, `to_hf` and
`to_zenodo` share them.

PyTerrier finds the artifacts by this package's entry points; nothing is added to the folders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pyserini_repbert.data.passages import BadPassage, OnError, Passage
from pyserini_repbert.encode.corpus import encode_corpus
from pyserini_repbert.index.manifest import MANIFEST
from pyserini_repbert.indexes.kind import kind_of
from pyserini_repbert.interop.hits import Documents
from pyserini_repbert.interop.pyterrier.frames import pd, pt
from pyserini_repbert.interop.pyterrier.parameters import Configured
from pyserini_repbert.interop.pyterrier.rerankers import Rerank
from pyserini_repbert.interop.pyterrier.retrievers import HITS, RepBertRetriever
from pyserini_repbert.systems.encoders import document_encoder, term_weights_encoder

FORMAT = 'pyserini_repbert'
PACKAGE = 'pyserini-repbert[pyterrier]'
DENSE = 'dense_index'
EPIC = 'epic_index'


class DenseArtifact(pt.Artifact):  # type: ignore[misc]
    """A dense bundle."""

    ARTIFACT_TYPE = DENSE
    ARTIFACT_FORMAT = FORMAT
    ARTIFACT_PACKAGE_HINT = PACKAGE

    def retriever(
        self, encoder: str | Path | None = None, num_results: int = HITS, **settings: Any
    ) -> Any:
        """A `RepBertRetriever` of the bundle; default encoder: the one that it was built with."""
        return RepBertRetriever(self.path, encoder, num_results, **settings)


class EpicArtifact(pt.Artifact):  # type: ignore[misc]
    """An EPIC bundle."""

    ARTIFACT_TYPE = EPIC
    ARTIFACT_FORMAT = FORMAT
    ARTIFACT_PACKAGE_HINT = PACKAGE

    def reranker(self, model: str | Path, **settings: Any) -> Any:
        """A `Rerank` that reads the passages' vectors from the bundle."""
        return Rerank(model, index=self.path, **settings)


def bundle_metadata(path: str, listing: Sequence[str]) -> dict[str, str] | None:
    """PyTerrier's metadata of a bundle, which its manifest tells; None for any
    other folder.
    """
    if MANIFEST not in listing or not any(name.startswith('shard-') for name in listing):
        return None
    kind = EPIC if kind_of(path).index_type(path) == 'impact' else DENSE
    return {'type': kind, 'format': FORMAT, 'package_hint': PACKAGE}


class Indexer(Configured, pt.Indexer):  # type: ignore[misc]
    """Base of the indexers.

    Parameters
    ----------
    output : the index folder
    encoder : catalog name or checkpoint folder
    fields : of a document that are its text, joined by a space
    on_error : 'refuse' raises InputError at the first document that cannot be used, 'skip' warns
    settings : of `encode.encode_corpus`

    Attributes
    ----------
    open_encoder : of a subclass: opens the encoder of a checkpoint
    """

    open_encoder: ClassVar[Callable[..., Any]]

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
        self.on_error = OnError(on_error)
        self.output = Path(output)
        self.encoder = encoder
        self.device = device
        self.fields = tuple(fields)
        self.precision = precision
        self.store_text = store_text
        self.settings = settings

    def index_inputs(self) -> list[list[str]]:
        """The fields of a document that are read."""
        return [['docno', *self.fields]]

    def index(self, iter: Iterable[Mapping[str, Any]], **_: object) -> Path:
        """Index the documents. Returns the index folder, for a retriever or a reranker."""
        encoder = self.open_encoder(self.encoder, self.device, precision=self.precision)
        documents = Documents('documents', map(self._passage, iter), on_error=self.on_error)
        encode_corpus(documents, encoder, self.output, store_text=self.store_text, **self.settings)
        return self.output

    def _passage(self, document: Mapping[str, Any]) -> Passage | BadPassage:
        for field in ('docno', *self.fields):
            if field not in document:
                return BadPassage(f"there is no field '{field}'")
        if pd.isna(document['docno']):
            return BadPassage("field 'docno' is empty")
        texts = [document[field] for field in self.fields]
        text = ' '.join(str(text) for text in texts if not pd.isna(text))
        return Passage(str(document['docno']), text)


class RepBertIndexer(Indexer):
    """Documents to a dense bundle, for `RepBertRetriever`."""

    open_encoder = staticmethod(document_encoder)


class EpicIndexer(Indexer):
    """Documents to a bundle of EPIC's weights, or of a `SparseEncoder`'s, for `Rerank`."""

    open_encoder = staticmethod(term_weights_encoder)
