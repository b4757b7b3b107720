"""monoBERT (Nogueira et al., 2019): BERT reads a query and one candidate, and judges whether it is relevant.

Use it as a second stage, on hundreds of candidates of a first stage: one model input each.
https://arxiv.org/abs/1910.14424, section 3.2. Cross-encoders of sentence-transformers have the same form.
"""

from __future__ import annotations

from pyserini_repbert.models.cross_encoder import CrossEncoder

SYSTEM = 'monobert'


class MonoBert(CrossEncoder):
    """Pointwise relevance classifier: token type 0 for `[CLS] query [SEP]`, 1 for `candidate [SEP]`."""
