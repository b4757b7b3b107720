"""monoBERT's network: a BERT that reads a query and one candidate together.

Use it as a second stage, on hundreds of candidates of a first stage: each takes one model input.
Rodrigo Nogueira, Wei Yang, Kyunghyun Cho, and Jimmy Lin: Multi-Stage Document Ranking with BERT,
2019, section 3.2. https://arxiv.org/abs/1910.14424
"""

from __future__ import annotations

from pyserini_repbert.models.cross_encoder import CrossEncoder

NAME = 'monobert'


class MonoBert(CrossEncoder):
    """monoBERT, the pointwise relevance classifier (Multi-Stage section 3.2).

    Token type 0 for `[CLS] query [SEP]`, 1 for `candidate [SEP]`. Cross-encoders of
    sentence-transformers have the same form. Takes the parameters of `CrossEncoder`.
    """
