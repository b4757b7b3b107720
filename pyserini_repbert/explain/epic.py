"""Why EPIC gives a passage its score: weights of query and passage terms, expansion terms, contributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyserini_repbert.encode.epic import EpicEncoder
from pyserini_repbert.errors import InputError, MissingResourceError
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.models.term_vectors import TermVector, largest
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
    """A score, taken apart.

    Attributes
    ----------
    query : the query's wordpieces in order, with their importances (EPIC eq. 1, Figure 3)
    passage : the passage's wordpieces in order, with their weights in the passage's vector (EPIC eq. 4, Figure 4);
        empty where the text is not known
    expansions : the vector's strongest terms that the passage does not contain, strongest first (EPIC Figure 4); where
        the text is not known, the vector's strongest terms
    contributions : one for each distinct term of the query, greatest first; they sum to the score (EPIC eq. 5)
    score : the inner product of the vectors of query and passage
    quality : of the passage, 0 to 1 (EPIC eq. 3); None where the text is not known
    precision : of the model
    """

    query: tuple[Weighted, ...]
    passage: tuple[Weighted, ...]
    expansions: tuple[Weighted, ...]
    contributions: tuple[Contribution, ...]
    score: float
    quality: float | None
    precision: str = 'float32'


def explain_text(encoder: EpicEncoder, query: str, passage: str, top: int = 10, prune: int = 0) -> Explanation:
    """Explain the score of a passage that is given as a text.

    Parameters
    ----------
    top : how many expansions
    prune : how many of the largest weights of the passage's vector are kept, 0 for all

    Raises
    ------
    InputError
        for a negative number of expansions
    """
    vector = largest(encoder.encode_dense([passage])[0], prune)
    return _explained(encoder, query, vector, passage, top)


def explain_indexed(
    encoder: EpicEncoder, index: EpicBundle, query: str, docid: str, text: str | None = None, top: int = 10
) -> Explanation:
    """Explain the score of a passage in an index, from its stored vector, pruned and quantised as it is.

    Parameters
    ----------
    text : of the passage; default: from the index, if it stores texts
    top : how many expansions

    Raises
    ------
    MissingResourceError
        where the index has no such docid
    MismatchError
        where the index was made with another model
    InputError
        for a negative number of expansions
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
    query_vector = TermVector.summed(*query_tokens)
    ids: list[int] = []
    quality = None
    if text is not None:
        (found,) = encoder.passage_weights([text])
        ids, quality = found.ids, found.quality
    own = vector.as_dict()
    others = sorted(own.keys() - set(ids), key=lambda term: (-own[term], term))[:top]
    contributions = _contributions(encoder, query_vector, vector)
    return Explanation(
        _named(encoder, query_tokens.ids, query_tokens.weights.tolist()),
        _named(encoder, ids, [own.get(term, 0.0) for term in ids]),
        _named(encoder, others, [own[term] for term in others]),
        contributions,
        sum(part.contribution for part in contributions),
        quality,
        encoder.precision,
    )


def _named(encoder: EpicEncoder, ids: Sequence[int], weights: Sequence[float]) -> tuple[Weighted, ...]:
    return tuple(map(Weighted, encoder.tokenizer.tokens(ids), weights))


def _contributions(encoder: EpicEncoder, query: TermVector, passage: TermVector) -> tuple[Contribution, ...]:
    names = encoder.tokenizer.tokens(query.terms.tolist())
    weights = passage.weights_of(query.terms).tolist()
    parts = [
        Contribution(name, one, other, one * other)
        for name, one, other in zip(names, query.weights.tolist(), weights, strict=True)
    ]
    return tuple(sorted(parts, key=lambda part: (-part.contribution, part.term)))
