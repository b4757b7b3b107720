"""What EPIC sees in a passage: term weights, and their shares of the score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyserini_repbert.errors import InputError, MissingResourceError
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.models.term_vectors import TermVector, largest
from pyserini_repbert.systems.epic.encoder import EpicEncoder, check_fits


def explain_text(
    encoder: EpicEncoder, query: str, passage: str, top: int = 10, prune: int = 0
) -> dict[str, Any]:
    """EPIC's score of a passage that is given as a text, taken apart into values of JSON.

    Of the passage's weights, the `prune` largest count (0: all). Every term has a 'term' and its
    weights.

    - 'query_terms': the query's wordpieces in order, with their importances (EPIC eq. 1, Figure 3)
    - 'passage_terms': the passage's wordpieces in order, with their weights in its vector (EPIC eq.
      4, Figure 4)
    - 'expansions': the `top` strongest terms that the text lacks, strongest first (EPIC Figure 4)
    - 'contributions': for distinct query terms, greatest first, the weights in the vectors of query
      and passage, and their product 'contribution'; the products sum to 'score' (EPIC eq. 5)
    - 'quality': of the passage, 0 to 1 (EPIC eq. 3)
    - 'precision': what the model ran in
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
    """`explain_text` for a passage in an index, from its stored vector, pruned and quantised as it
    is.

    The text is that of the index, if it stores texts and none is given; without one, there are no
    wordpieces of the passage, and its quality is None.
    """
    check_fits(index, encoder)
    row = int(index.rows([docid])[0])
    if row < 0:
        raise MissingResourceError(
            f"index {index.folder} has no passage '{docid}': check the docid, or give its text",
            parameters=('passage',),
        )
    return _explained(encoder, query, index.vector(row), text or index.texts([docid])[0], top)


def _explained(
    encoder: EpicEncoder, query: str, vector: TermVector, text: str | None, top: int
) -> dict[str, Any]:
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
    shares = [
        {'term': term, 'query_weight': one, 'passage_weight': other, 'contribution': one * other}
        for term, (one, other) in zip(terms, pairs, strict=True)
    ]
    shares.sort(key=lambda share: (-share['contribution'], share['term']))
    return {
        'score': sum(share['contribution'] for share in shares),
        'quality': passage.quality if passage else None,
        'precision': encoder.precision,
        'query_terms': _weighted(encoder, query_tokens.ids, query_tokens.weights.tolist()),
        'passage_terms': _weighted(encoder, ids, [weights.get(term, 0.0) for term in ids]),
        'expansions': _weighted(encoder, others, [weights[term] for term in others]),
        'contributions': shares,
    }


def _weighted(
    encoder: EpicEncoder, ids: Sequence[int], weights: Sequence[float]
) -> list[dict[str, Any]]:
    terms = encoder.tokenizer.tokens(ids)
    return [{'term': term, 'weight': weight} for term, weight in zip(terms, weights, strict=True)]
