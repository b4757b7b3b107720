"""Reranking by the term weights of a `SparseEncoder`, from an index or on the fly."""

from __future__ import annotations

from pyserini_repbert.rerank.term_weights import TermWeightsReranker
from pyserini_repbert.systems.sparse_encoder.encoder import SparseTextEncoder


class SparseEncoderReranker(TermWeightsReranker, recorded_as='SparseEncoderReranker'):
    """Reranks by the weights of a `SparseEncoder`.

    Parameters and errors are as in `TermWeightsReranker`; `token_budget` does nothing, because
    sentence-transformers makes its own batches.
    """

    encoder_class = SparseTextEncoder
