"""monoBERT's network: a cross-encoder of a query and one candidate."""

from __future__ import annotations

from pyserini_repbert.models.cross_encoder import CrossEncoder

NAME = 'monobert'


class MonoBert(CrossEncoder):
    """monoBERT, the pointwise relevance classifier (Nogueira et al., 2019, section 3.2).

    Use it as a second stage, on hundreds of candidates of a first stage: one model input each.
    Token type 0 for `[CLS] query [SEP]`, 1 for `candidate [SEP]`. Cross-encoders of
    sentence-transformers have the same form.
    """
