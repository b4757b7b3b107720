"""RepBERT (Zhan et al., 2020): one BERT encodes queries and passages into vectors whose inner
product is the score.

Use it as a first stage: passages are encoded once, a query costs one short forward pass and a
matrix product. https://arxiv.org/abs/2006.15498
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from pyserini_repbert.models.bert import Bert
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.precision import on_device

NAME = 'repbert'
MAX_QUERY_TOKENS = 20  # RepBERT section 4.3.1; wordpieces, [CLS] and [SEP] not counted
MAX_PASSAGE_TOKENS = 256  # RepBERT section 4.3.1, likewise
QUERY_TYPE = 0  # RepBERT footnote 2: the token type of queries
PASSAGE_TYPE = 1  # RepBERT footnote 2: of passages


class RepBert(nn.Module):
    """The encoder shared by queries and passages (RepBERT section 3.1).

    `normalised` scales vectors to length 1, as sentence encoders for the cosine do; RepBERT does
    not.
    """

    def __init__(self, config: BertConfig, normalised: bool = False) -> None:
        super().__init__()
        self.bert = Bert(config)
        self.normalised = normalised

    def forward(
        self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor | None = None
    ) -> Tensor:
        """Embeddings of texts: `[CLS] text [SEP]` in, one vector out.

        Mean over all attended tokens, [CLS] and [SEP] included, of the last layer (RepBERT eq. 2):
        float32 (n, h). Token type 0 is for queries, 1 for passages; parameters and errors are those
        of `Bert.forward`.
        """
        hidden: Tensor = self.bert(input_ids, token_type_ids, attention_mask).float()
        if attention_mask is None:
            vectors = hidden.mean(dim=1)
        else:
            weights = on_device(attention_mask, hidden.device).to(hidden.dtype)
            vectors = torch.einsum('nlh,nl->nh', hidden, weights) / weights.sum(dim=1, keepdim=True)
        return functional.normalize(vectors, dim=1) if self.normalised else vectors
