"""Why a model of term weights scores a passage as it does: the weights, and their products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pyserini_repbert.encode.term_weights import PassageTokens, TermWeightsEncoder, check_fits
from pyserini_repbert.errors import InputError, MissingResourceError
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.models.term_vectors import TermVector
from pyserini_repbert.ranking import REASON_TERMS


def explain_text(
    encoder: TermWeightsEncoder, query: str, passage: str, top: int = 10, prune: int = 0
) -> dict[str, Any]:
    """The score of a passage given as text, taken apart into values of JSON.

    Every term has a 'term' and its weights.

    - 'query_terms': the query's tokens in order, with their weights (EPIC eq. 1, Figure 3), then
      the `top` strongest terms of its vector that the query lacks; EPIC has none of these
    - 'passage_terms': the passage's tokens in order, with their weights in its vector (EPIC eq. 4,
      Figure 4)
    - 'expansions': the `top` strongest terms that the passage lacks, strongest first (EPIC Figure
      4)
    - 'contributions': greatest first, the weights of a term in the vectors of query and passage,
      and their product 'contribution'; the products sum to 'score' (EPIC eq. 5). EPIC has all
      distinct query terms here, other models the terms of both vectors
    - 'quality': of the passage, 0 to 1 (EPIC eq. 3); None for other models
    - 'precision': what the model ran in

    Parameters
    ----------
    encoder : of queries and passages
    query, passage : texts
    top : how many expansion terms are shown of each
    prune : how many of the passage's largest weights count, 0 for all

    Raises InputError for a `top` below 0.
    """
    (vector,) = encoder.encode_pruned([passage], prune)
    return _explanation(encoder, query, vector, passage, top)


def explain_indexed(
    encoder: TermWeightsEncoder,
    index: TermWeightsBundle,
    query: str,
    docid: str,
    text: str | None = None,
    top: int = 10,
) -> dict[str, Any]:
    """`explain_text` for a passage in an index, from its stored vector, pruned and rounded.

    Parameters
    ----------
    encoder : the one that the index was built with
    index : a bundle
    query : its text
    docid : of the passage
    text : of the passage; default: the one in the index, if that stores texts; without a text,
        there are no tokens of the passage, all its terms count as expansions, and its quality is
        None
    top : how many expansion terms are shown of each

    Raises
    ------
    InputError : a `top` below 0
    MismatchError : an index of another encoder
    MissingResourceError : a docid that the index lacks
    """
    check_fits(index, encoder)
    row = int(index.rows([docid])[0])
    if row < 0:
        raise MissingResourceError(
            f"index {index.folder} has no passage '{docid}': check the docid, or give its text",
            parameters=('passage',),
        )
    if not text:
        (text,) = index.texts([docid])
    return _explanation(encoder, query, index.vector(row), text, top)


def contributions(
    encoder: TermWeightsEncoder, query: TermVector, passage: TermVector, lists_absent: bool = False
) -> list[dict[str, Any]]:
    """What each term adds to a score, greatest first: its weights, and their product.

    Parameters
    ----------
    encoder : names the terms
    query, passage : their vectors
    lists_absent : whether terms of the query that the passage lacks are listed, too
    """
    terms = query.terms
    if not lists_absent:
        terms = np.intersect1d(terms, passage.terms)
    names = encoder.term_names(terms.tolist())
    query_weights = query.weights_of(terms).tolist()
    passage_weights = passage.weights_of(terms).tolist()
    shares: list[dict[str, Any]] = [
        {
            'term': name,
            'query_weight': of_query,
            'passage_weight': of_passage,
            'contribution': of_query * of_passage,
        }
        for name, of_query, of_passage in zip(names, query_weights, passage_weights, strict=True)
    ]
    shares.sort(key=lambda share: (-share['contribution'], share['term']))
    return shares


def reason_text(shares: Sequence[Mapping[str, Any]]) -> str:
    """The terms that add most to a score, in a line: 'bitter 1.79 + let 1.28'."""
    return ' + '.join(
        f'{share["term"]} {share["contribution"]:.2f}'
        for share in shares[:REASON_TERMS]
        if share['contribution'] > 0
    )


def _explanation(
    encoder: TermWeightsEncoder, query: str, vector: TermVector, text: str | None, top: int
) -> dict[str, Any]:
    """The values of `explain_text`, from a passage's vector and, if it is known, its text."""
    if top < 0:
        raise InputError(f'{top} expansions were asked for, expected 0 or more')
    asked = encoder.query_tokens(query)
    passage = PassageTokens([]) if text is None else encoder.passage_tokens(text)
    query_expansions = _strongest_terms(asked.vector, asked.ids, top)
    expansions = _strongest_terms(vector, passage.ids, top)
    shares = contributions(encoder, asked.vector, vector, lists_absent=not encoder.expands_queries)
    return {
        'score': sum(share['contribution'] for share in shares),
        'quality': passage.quality,
        'precision': encoder.precision,
        'query_terms': [
            *_weighted(encoder, asked.ids, asked.weights.tolist()),
            *_weighted_by(encoder, asked.vector, query_expansions),
        ],
        'passage_terms': _weighted_by(encoder, vector, passage.ids),
        'expansions': _weighted_by(encoder, vector, expansions),
        'contributions': shares,
    }


def _strongest_terms(vector: TermVector, others: Sequence[int], top: int) -> list[int]:
    """The `top` terms of the greatest weights that are not among others, strongest first."""
    weights = vector.as_dict()
    terms = sorted(weights.keys() - set(others), key=lambda term: (-weights[term], term))
    return terms[:top]


def _weighted_by(
    encoder: TermWeightsEncoder, vector: TermVector, terms: Sequence[int]
) -> list[dict[str, Any]]:
    """Terms with their weights in a vector, 0 for one that it lacks."""
    weights = vector.weights_of(np.array(terms, dtype=np.int64))
    return _weighted(encoder, terms, weights.tolist())


def _weighted(
    encoder: TermWeightsEncoder, terms: Sequence[int], weights: Sequence[float]
) -> list[dict[str, Any]]:
    """Terms with their weights, as values of JSON."""
    names = encoder.term_names(terms)
    return [{'term': name, 'weight': weight} for name, weight in zip(names, weights, strict=True)]
