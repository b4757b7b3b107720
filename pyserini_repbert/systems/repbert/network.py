"""RepBERT's network: one BERT that encodes queries and passages; inner products are scores.

Use it as a first stage: passages are encoded once; a query costs one short forward pass and a
matrix product. Jingtao Zhan, Jiaxin Mao, Yiqun Liu, Min Zhang, and Shaoping Ma: RepBERT:
Contextualized Text Embeddings for First-Stage Retrieval, 2020. https://arxiv.org/abs/2006.15498
"""

from __future__ import annotations

from torch import Tensor, nn

from pyserini_repbert.models.bert import Bert
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.pooling import mean_of_tokens


class RepBert(nn.Module):
    """The encoder shared by queries and passages (RepBERT section 3.1).

    Parameters
    ----------
    config : the sizes of its BERT
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.bert = Bert(config)

    def forward(
        self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor | None = None
    ) -> Tensor:
        """Embeddings of texts: `[CLS] text [SEP]` in, one vector out.

        Mean over all attended tokens, [CLS] and [SEP] included, of the last layer (RepBERT eq. 2):
        float32 (n, h). Token type 0 is for queries, 1 for passages; parameters and errors are as in
        `Bert.forward`.
        """
        hidden: Tensor = self.bert(input_ids, token_type_ids, attention_mask).float()
        return mean_of_tokens(hidden, attention_mask)
