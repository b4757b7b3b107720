"""Why EPIC gives a passage its score: weights of query and passage terms, expansion terms, contributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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
    contributions = _contributions(encoder, TermVector.summed(query_tokens.ids, query_tokens.weights), vector)
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


def _contributions(encoder: EpicEncoder, query: TermVector, passage: TermVector) -> tuple[Contribution, ...]:
    terms = encoder.tokenizer.tokens(query.terms.tolist())
    weights = zip(query.weights.tolist(), passage.weights_of(query.terms).tolist(), strict=True)
    parts = [Contribution(term, one, other, one * other) for term, (one, other) in zip(terms, weights, strict=True)]
    return tuple(sorted(parts, key=lambda part: (-part.contribution, part.term)))
