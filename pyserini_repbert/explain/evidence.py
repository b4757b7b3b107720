"""What EPIC and CEDR see in a passage: term weights and their shares of the score; similarities, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from pyserini_repbert.encode.epic import EpicEncoder
from pyserini_repbert.errors import InputError, MissingResourceError
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.models.term_vectors import TermVector, largest
from pyserini_repbert.rerank.cedr import CedrReranker
from pyserini_repbert.rerank.epic import check_fits


class Weighted(NamedTuple):
    """A wordpiece and its weight."""

    term: str
    weight: float


class Contribution(NamedTuple):
    """A query term, its weights in the vectors of query and passage, and their product: its share of the score."""

    term: str
    query_weight: float
    passage_weight: float
    contribution: float


@dataclass(frozen=True)
class Explanation:
    """A score of EPIC, taken apart; without a text, there are no wordpieces and no quality of the passage."""

    query: tuple[Weighted, ...]  # its wordpieces in order, with their importances (EPIC eq. 1, Figure 3)
    passage: tuple[Weighted, ...]  # its wordpieces in order, with their weights in its vector (EPIC eq. 4, Figure 4)
    expansions: tuple[Weighted, ...]  # the strongest terms that the text lacks, strongest first (EPIC Figure 4)
    contributions: tuple[Contribution, ...]  # of distinct query terms, greatest first; they sum to the score (eq. 5)
    score: float  # the inner product of the vectors of query and passage
    quality: float | None  # of the passage, 0 to 1 (EPIC eq. 3)
    precision: str

    def as_json(self) -> dict[str, Any]:
        """The explanation as values of JSON."""
        parts = {'query_terms': self.query, 'passage_terms': self.passage, 'expansions': self.expansions}
        listed = {name: [term._asdict() for term in terms] for name, terms in parts.items()}
        listed['contributions'] = [part._asdict() for part in self.contributions]
        return {'score': self.score, 'quality': self.quality, 'precision': self.precision, **listed}


def explain_text(encoder: EpicEncoder, query: str, passage: str, top: int = 10, prune: int = 0) -> Explanation:
    """Explain the score of a passage that is given as a text, of whose weights the `prune` largest count (0: all)."""
    vector = largest(encoder.encode_dense([passage])[0], prune)
    return _explained(encoder, query, vector, passage, top)


def explain_indexed(
    encoder: EpicEncoder, index: EpicBundle, query: str, docid: str, text: str | None = None, top: int = 10
) -> Explanation:
    """Explain the score of a passage in an index, from its stored vector, pruned and quantised as it is.

    The text is that of the index, if it stores texts and none is given.
    """
    check_fits(index, encoder)
    row = int(index.rows([docid])[0])
    if row < 0:
        raise MissingResourceError(
            f"index {index.folder} has no passage '{docid}': check the docid, or give its text", parameters=('passage',)
        )
    return _explained(encoder, query, index.vector(row), text or index.texts([docid])[0], top)


def _explained(encoder: EpicEncoder, query: str, vector: TermVector, text: str | None, top: int) -> Explanation:
    if top < 0:
        raise InputError(f'{top} expansions were asked for, expected 0 or more')
    (query_tokens,) = encoder.query_weights([query])
    passage = None if text is None else encoder.passage_weights([text])[0]
    ids = passage.ids if passage else []
    weights = vector.as_dict()
    others = sorted(weights.keys() - set(ids), key=lambda term: (-weights[term], term))[:top]
    summed = TermVector.summed(query_tokens.ids, query_tokens.weights)
    terms = encoder.tokenizer.tokens(summed.terms.tolist())
    pairs = zip(summed.weights.tolist(), vector.weights_of(summed.terms).tolist(), strict=True)
    shares = [Contribution(term, one, other, one * other) for term, (one, other) in zip(terms, pairs, strict=True)]
    contributions = tuple(sorted(shares, key=lambda part: (-part.contribution, part.term)))
    return Explanation(
        _named(encoder, query_tokens.ids, query_tokens.weights.tolist()),
        _named(encoder, ids, [weights.get(term, 0.0) for term in ids]),
        _named(encoder, others, [weights[term] for term in others]),
        contributions,
        sum(part.contribution for part in contributions),
        passage.quality if passage else None,
        encoder.precision,
    )


def _named(encoder: EpicEncoder, ids: Sequence[int], weights: Sequence[float]) -> tuple[Weighted, ...]:
    return tuple(map(Weighted, encoder.tokenizer.tokens(ids), weights))


class SimilarityMap(NamedTuple):
    """The similarities of one layer."""

    layer: int  # 0 for the embedding output, l for layer l
    query: list[str]  # q wordpieces, as the model read them
    passage: list[str]  # d wordpieces
    values: NDArray[np.float32]  # (q, d), cosines (CEDR eq. 1)

    def best_window(self, width: int) -> int:
        """The start of the `width` consecutive passage tokens with the greatest sum of similarities; 0 if all fit."""
        if len(self.passage) <= width:
            return 0
        return int(np.argmax(np.convolve(self.values.sum(axis=0, dtype=np.float64), np.ones(width), 'valid')))

    def best_matches(self, k: int) -> list[list[tuple[str, int, float]]]:
        """The `k` best passage tokens for each query token, ties by position: (token, position from 0, cosine)."""
        orders = np.argsort(-self.values, axis=1, kind='stable')[:, :k]
        return [
            [(self.passage[place], int(place), float(row[place])) for place in order]
            for row, order in zip(self.values, orders, strict=True)
        ]


def similarity_maps(
    reranker: CedrReranker, query: str, passage: str, layers: Sequence[int] | None = None
) -> list[SimilarityMap]:
    """The similarity maps of a query and a passage, cut as CEDR cuts them; layer 0 is the embedding output."""
    layers = range(reranker.n_layers + 1) if layers is None else layers
    if strange := [layer for layer in layers if not 0 <= layer <= reranker.n_layers]:
        raise InputError(f'layer {strange[0]} was asked for, expected 0 (embeddings) to {reranker.n_layers}')
    pair = reranker.layout.cut(*reranker.tokenizer.ids([query, passage]))
    if not all(pair):
        raise InputError(f'the {"passage" if pair.query else "query"} has no words: there is nothing to compare')
    with torch.inference_mode():
        evidence = reranker.ranker.evidence(reranker.layout.collate([pair], reranker.device), similarity=True)
    values = evidence.similarity[0, :, : len(pair.query)].cpu().numpy()
    tokens = [reranker.tokenizer.tokens(ids) for ids in pair]
    return [SimilarityMap(layer, tokens[0], tokens[1], values[layer]) for layer in layers]
