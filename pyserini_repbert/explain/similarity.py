"""CEDR's similarity matrices for inspection: which passage tokens are similar to a query token, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from pyserini_repbert.errors import InputError
from pyserini_repbert.models.cedr.ranker import gather_evidence
from pyserini_repbert.rerank.cedr import CedrReranker


class SimilarityMap(NamedTuple):
    """The similarities of one layer."""

    layer: int  # 0 for the embedding output, l for layer l
    query: list[str]  # q wordpieces, as the model read them
    passage: list[str]  # d wordpieces
    values: NDArray[np.float32]  # (q, d), cosines (CEDR eq. 1)

    def window(self, start: int, width: int) -> SimilarityMap:
        """The map of `width` passage tokens from `start` on."""
        shown = slice(start, start + width)
        return self._replace(passage=self.passage[shown], values=self.values[:, shown])

    def best_window(self, width: int) -> int:
        """The start of the `width` consecutive passage tokens with the greatest sum of similarities; 0 if all fit."""
        if len(self.passage) <= width:
            return 0
        return int(np.argmax(np.convolve(self.values.sum(axis=0, dtype=np.float64), np.ones(width), 'valid')))

    def best_matches(self, k: int) -> list[list[tuple[str, int, float]]]:
        """For each query token, the `k` most similar passage tokens, most similar first; ties by position.

        Each is a token, its position from 0, and the cosine.
        """
        orders = np.argsort(-self.values, axis=1, kind='stable')[:, :k]
        return [
            [(self.passage[place], int(place), float(row[place])) for place in order]
            for row, order in zip(self.values, orders, strict=True)
        ]


def similarity_maps(
    reranker: CedrReranker, query: str, passage: str, layers: Sequence[int] | None = None
) -> list[SimilarityMap]:
    """The similarity maps of a query and a passage, cut as CEDR cuts them.

    Parameters
    ----------
    layers : 0 is the embedding output; None: all
    """
    layers = range(reranker.n_layers + 1) if layers is None else layers
    if strange := [layer for layer in layers if not 0 <= layer <= reranker.n_layers]:
        raise InputError(f'layer {strange[0]} was asked for, expected 0 (embeddings) to {reranker.n_layers}')
    pair = reranker.layout.cut(*reranker.tokenizer.ids([query, passage]))
    for what, ids in zip(('query', 'passage'), pair, strict=True):
        if not ids:
            raise InputError(f'the {what} has no words: there is nothing to compare')
    with torch.inference_mode():
        evidence = gather_evidence(reranker.ranker.bert, reranker.layout.collate([pair], reranker.device))
    values = evidence.similarity[0, :, : len(pair.query)].cpu().numpy()
    tokens = [reranker.tokenizer.tokens(ids) for ids in pair]
    return [SimilarityMap(layer, tokens[0], tokens[1], values[layer]) for layer in layers]
