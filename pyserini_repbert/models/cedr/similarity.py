"""Contextual similarity: the cosine of each query and document token in each layer of BERT (CEDR eq. 1)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from pyserini_repbert.models.bert import Bert
from pyserini_repbert.models.cedr.layout import PairBatch

_LEAST_NORM = 1e-9  # added to norms, so that a zero vector has similarity 0


class Evidence(NamedTuple):
    """What a CEDR head reads of n pairs.

    Attributes
    ----------
    similarity : float32 (n, channels, q, d), cosines, 0 where there is no token; channel 0 is of the embedding output,
        channel l of layer l; no channels if similarities were not asked for
    cls : float32 (n, h), the last layer's [CLS] before BERT's pooler, averaged over the parts of a document
    query_mask : bool (n, q), True at tokens
    document_mask : bool (n, d), True at tokens
    """

    similarity: Tensor
    cls: Tensor
    query_mask: Tensor
    document_mask: Tensor


def cosine_matrix(query: Tensor, document: Tensor, query_mask: Tensor, document_mask: Tensor) -> Tensor:
    """Cosine of each query vector with each document vector (CEDR eq. 1): float32 (n, q, d), 0 where a mask is False.

    Parameters
    ----------
    query : (n, q, h)
    document : (n, d, h)
    query_mask, document_mask : bool (n, q), (n, d)
    """
    query, document = query.float(), document.float()
    query_norm = query.norm(dim=2).unsqueeze(2) + _LEAST_NORM
    document_norm = document.norm(dim=2).unsqueeze(1) + _LEAST_NORM
    with torch.autocast(query.device.type, enabled=False):  # half precision would blur exact matches
        cosine: Tensor = torch.bmm(query, document.transpose(1, 2)) / (query_norm * document_norm)
    return cosine.masked_fill(~(query_mask.unsqueeze(2) & document_mask.unsqueeze(1)), 0.0)


def gather_evidence(bert: Bert, batch: PairBatch, similarity: bool = True) -> Evidence:
    """Run BERT over a batch, keeping only [CLS] and, if `similarity` is true, the similarities of each layer.

    Query vectors are taken from the row of a document's first part, as in the released code.
    """
    matrices = []
    hidden = batch.input_ids
    for hidden in bert.each_layer(batch.input_ids, batch.token_type_ids, batch.attention_mask, batch.position_ids):
        if similarity:
            vectors = hidden.flatten(0, 1)
            query, document = vectors[batch.query_index], vectors[batch.document_index]
            matrices.append(cosine_matrix(query, document, batch.query_mask, batch.document_mask))
    cls = batch.part_weights @ hidden[:, 0].float()
    shape = (*batch.query_index.shape, batch.document_index.shape[1])
    stacked = torch.stack(matrices, dim=1) if matrices else cls.new_zeros((shape[0], 0, *shape[1:]))
    return Evidence(stacked, cls, batch.query_mask, batch.document_mask)
