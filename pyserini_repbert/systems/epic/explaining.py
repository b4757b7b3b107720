"""What EPIC sees in a passage: term weights, and their shares of the score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyserini_repbert.errors import InputError
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.models.term_vectors import TermVector, largest
from pyserini_repbert.rerank.impact_explanations import (
    contributions,
    explained_passage,
    strongest_terms,
)
from pyserini_repbert.systems.epic.encoder import EpicEncoder, TokenWeights


def explain_text(
    encoder: EpicEncoder, query: str, passage: str, top: int = 10, prune: int = 0
) -> dict[str, Any]:
    """EPIC's score of a passage that is given as a text, taken apart into values of JSON.

    Every term has a 'term' and its weights.

    - 'query_terms': the query's wordpieces in order, with their importances (EPIC eq. 1, Figure 3)
    - 'passage_terms': the passage's wordpieces in order, with their weights in its vector (EPIC eq.
      4, Figure 4)
    - 'expansions': the `top` strongest terms that the text lacks, strongest first (EPIC Figure 4)
    - 'contributions': for distinct query terms, greatest first, the weights in the vectors of query
      and passage, and their product 'contribution'; the products sum to 'score' (EPIC eq. 5)
    - 'quality': of the passage, 0 to 1 (EPIC eq. 3)
    - 'precision': what the model ran in

    Parameters
    ----------
    encoder : of queries and passages
    query, passage : texts
    top : how many expansion terms are shown
    prune : how many of the passage's largest weights count, 0 for all
    """
    vector = largest(encoder.encode_dense([passage])[0], prune)
    return _explained(encoder, query, vector, passage, top)


def explain_indexed(
    encoder: EpicEncoder,
    index: EpicBundle,
    query: str,
    docid: str,
    text: str | None = None,
    top: int = 10,
) -> dict[str, Any]:
    """`explain_text` for a passage in an index, from its stored vector, pruned and quantised.

    Parameters
    ----------
    encoder : the one that the index was built with
    index : an EPIC bundle
    query : its text
    docid : of the passage
    text : of the passage; default: the one in the index, if that stores texts; without a text,
        there are no wordpieces of the passage, and its quality is None
    top : how many expansion terms are shown
    """
    passage = explained_passage(index, encoder, docid, text)
    return _explained(encoder, query, passage.vector, passage.text, top)


def _explained(
    encoder: EpicEncoder, query: str, vector: TermVector, text: str | None, top: int
) -> dict[str, Any]:
    """The values of `explain_text`, from a passage's vector and, if it is known, its text."""
    if top < 0:
        raise InputError(f'{top} expansions were asked for, expected 0 or more')
    (query_tokens,) = encoder.query_weights([query])
    ids: list[int] = []
    quality: float | None = None
    if text is not None:
        (passage,) = encoder.passage_weights([text])
        ids = passage.ids
        quality = passage.quality
    weights = vector.as_dict()
    others = strongest_terms(vector, ids, top)
    shares = _contributions(encoder, query_tokens, vector)
    return {
        'score': sum(share['contribution'] for share in shares),
        'quality': quality,
        'precision': encoder.precision,
        'query_terms': _weighted(encoder, query_tokens.ids, query_tokens.weights.tolist()),
        'passage_terms': _weighted(encoder, ids, [weights.get(term, 0.0) for term in ids]),
        'expansions': _weighted(encoder, others, [weights[term] for term in others]),
        'contributions': shares,
    }


def _contributions(
    encoder: EpicEncoder, query: TokenWeights, passage: TermVector
) -> list[dict[str, Any]]:
    """What each distinct query term adds to the score, greatest first."""
    summed = TermVector.summed(query.ids, query.weights)
    terms = encoder.tokenizer.tokens(summed.terms.tolist())
    query_weights = summed.weights.tolist()
    passage_weights = passage.weights_of(summed.terms).tolist()
    return contributions(terms, query_weights, passage_weights)


def _weighted(
    encoder: EpicEncoder, ids: Sequence[int], weights: Sequence[float]
) -> list[dict[str, Any]]:
    terms = encoder.tokenizer.tokens(ids)
    return [{'term': term, 'weight': weight} for term, weight in zip(terms, weights, strict=True)]
