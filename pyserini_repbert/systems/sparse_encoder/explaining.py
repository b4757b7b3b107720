"""Why a `SparseEncoder` scores a passage as it does: weights of terms, and their products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyserini_repbert.errors import InputError
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.models.term_vectors import TermVector
from pyserini_repbert.rerank.impact_explanations import (
    contributions,
    explained_passage,
    strongest_terms,
)
from pyserini_repbert.systems.sparse_encoder.encoder import SparseTextEncoder


def explain_text(
    encoder: SparseTextEncoder, query: str, passage: str, top: int = 10, prune: int = 0
) -> dict[str, Any]:
    """The score of a passage that is given as a text, taken apart into values of JSON.

    The form is that of `systems.epic.explaining.explain_text`.

    - 'query_terms': the query's tokens in order with their weights in its vector, then the `top`
      strongest terms that the query lacks
    - 'passage_terms': the passage's tokens in order, with their weights in its vector
    - 'expansions': the `top` strongest terms that the passage lacks, strongest first
    - 'contributions': for each term of both vectors, greatest first, its weights and their product;
      the products sum to 'score'
    - 'quality': None
    - 'precision': what the model ran in

    Parameters
    ----------
    encoder : of queries and passages
    query, passage : texts
    top : how many expansion terms are shown of each
    prune : how many of the passage's largest weights count, 0 for all
    """
    (vector,) = encoder.encode_pruned([passage], prune)
    return _explained(encoder, query, vector, passage, top)


def explain_indexed(
    encoder: SparseTextEncoder,
    index: EpicBundle,
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
        there are no tokens of the passage, and all its terms count as expansions
    top : how many expansion terms are shown of each
    """
    passage = explained_passage(index, encoder, docid, text)
    return _explained(encoder, query, passage.vector, passage.text, top)


def _explained(
    encoder: SparseTextEncoder, query: str, vector: TermVector, text: str | None, top: int
) -> dict[str, Any]:
    """The values of `explain_text`, from a passage's vector and, if it is known, its text."""
    if top < 0:
        raise InputError(f'{top} expansions were asked for, expected 0 or more')
    query_vector = encoder.encode_query(query)
    query_ids = encoder.text_terms(query)
    passage_ids = encoder.text_terms(text) if text is not None else []
    query_expansions = strongest_terms(query_vector, query_ids, top)
    shares = _contributions(encoder, query_vector, vector)
    return {
        'score': sum(share['contribution'] for share in shares),
        'quality': None,
        'precision': encoder.precision,
        'query_terms': _weighted(encoder, query_vector, [*query_ids, *query_expansions]),
        'passage_terms': _weighted(encoder, vector, passage_ids),
        'expansions': _weighted(encoder, vector, strongest_terms(vector, passage_ids, top)),
        'contributions': shares,
    }


def _weighted(
    encoder: SparseTextEncoder, vector: TermVector, terms: Sequence[int]
) -> list[dict[str, Any]]:
    """Terms with their weights in a vector, 0 for one that it lacks."""
    weights = vector.as_dict()
    names = encoder.term_names(terms)
    weighted = []
    for name, term in zip(names, terms, strict=True):
        weighted.append({'term': name, 'weight': weights.get(term, 0.0)})
    return weighted


def _contributions(
    encoder: SparseTextEncoder, query: TermVector, passage: TermVector
) -> list[dict[str, Any]]:
    """What each term of both vectors adds to the score, greatest first."""
    terms = np.intersect1d(query.terms, passage.terms)
    names = encoder.term_names(terms.tolist())
    query_weights = query.weights_of(terms).tolist()
    passage_weights = passage.weights_of(terms).tolist()
    return contributions(names, query_weights, passage_weights)
