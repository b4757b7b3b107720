"""Reranking by the weights of terms of a `SparseEncoder`, from an index or on the fly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyserini_repbert.files import StrPath
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.models.precision import Precision
from pyserini_repbert.models.term_vectors import TermVector
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank.base import Progress, Scores
from pyserini_repbert.rerank.impacts import (
    AbsentCandidate,
    ImpactReranker,
    check_impact_settings,
    opened_bundle,
)
from pyserini_repbert.systems.sparse_encoder.encoder import SparseTextEncoder
from pyserini_repbert.systems.sparse_encoder.explaining import explain_indexed, explain_text


class SparseEncoderReranker(ImpactReranker):
    """Scores are inner products of the weights of query and passage.

    Of its work, an inference is a passage that was encoded on the fly. Its vector is pruned like
    those of the index, and is not rounded.

    Parameters
    ----------
    model : a folder of a `SparseEncoder`, or an encoder, which has a device, precision and length
        of its own
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    index : a bundle or its folder; None: every candidate's text is encoded
    missing : 'encode' the text of candidates that have no vector in the index, or 'refuse' them
    precision : 'float32', 'bfloat16', 'float16', or 'auto'
    prune : without an index: how many of a vector's largest weights are kept, 0 for all
    max_length : tokens kept of a passage; default: as the index was built, else as the folder says
    verify : compare the index's files with their checksums when they have changed since the last
        time
    """

    def __init__(
        self,
        model: str | Path | SparseTextEncoder,
        device: str = 'cpu',
        index: StrPath | EpicBundle | None = None,
        missing: str = 'encode',
        precision: Precision | str = Precision.FLOAT32,
        prune: int = 0,
        max_length: int | None = None,
        verify: bool = True,
    ) -> None:
        check_impact_settings(missing, prune)
        chosen = Precision(precision)
        bundle = opened_bundle(index, verify)
        if bundle is not None and max_length is None:
            max_length = bundle.settings.max_length
        if not isinstance(model, SparseTextEncoder):
            model = SparseTextEncoder(model, device, chosen, max_length)
        self.encoder = model
        self.precision = model.precision
        super().__init__(model, bundle, missing, prune)

    @property
    def weights_sha256(self) -> str:
        """Checksum over the files of the folder."""
        return self.encoder.weights_sha256

    def identity(self) -> Mapping[str, object]:
        return {**super().identity(), 'max_length': self.encoder.limit}

    def _encode_queries(self, queries: Sequence[str]) -> list[TermVector]:
        return self.encoder.encode_queries(queries)

    def _score_texts(
        self,
        queries: Sequence[TermVector],
        absent: Sequence[AbsentCandidate],
        scores: Scores,
        on_progress: Progress,
    ) -> None:
        # Each text is encoded once, in the order of first occurrence.
        counts = Counter(candidate.text for candidate in absent)
        texts = list(counts)
        row_of = {text: row for row, text in enumerate(texts)}
        vectors = self.encoder.encode_pruned(texts, self.prune, on_progress)
        self.work.inferences += len(texts)
        for number, row, text in absent:
            scores[number][row] = queries[number].dot(vectors[row_of[text]])
        on_progress(len(absent) - len(texts))

    def _explain_hit(
        self, query: str, hit: Candidate, index: EpicBundle | None, top: int
    ) -> dict[str, Any]:
        if index is not None:
            return explain_indexed(self.encoder, index, query, hit.docid, hit.text, top)
        return explain_text(self.encoder, query, hit.text or '', top, self.prune)
