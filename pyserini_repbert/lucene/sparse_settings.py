"""How a Lucene index is searched."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert.errors import InputError
from pyserini_repbert.lucene.index_record import record_of, recorded_language
from pyserini_repbert.lucene.languages import ENGLISH, check_language

MODELS = ('bm25', 'ql')


@dataclass(frozen=True, slots=True)
class Rm3:
    """RM3 pseudo-relevance feedback; the defaults are Anserini's."""

    fb_terms: int = 10
    fb_docs: int = 10
    original_query_weight: float = 0.5

    def __post_init__(self) -> None:
        is_weight = 0 <= self.original_query_weight <= 1
        if self.fb_terms < 1 or self.fb_docs < 1 or not is_weight:
            raise InputError(
                f'{self}: expected at least one term and one document, and a weight from 0 to 1'
            )


@dataclass(frozen=True, slots=True)
class Sdm:
    """The sequential dependence model's weights; the defaults are Anserini's.

    Attributes
    ----------
    terms, ordered, unordered : term weights, of ordered pairs, and of pairs within a window
    """

    terms: float = 0.85
    ordered: float = 0.10
    unordered: float = 0.05

    def __post_init__(self) -> None:
        weights = (self.terms, self.ordered, self.unordered)
        if not all(0 <= weight < float('inf') for weight in weights) or not any(weights):
            raise InputError(f'{self}: expected weights from 0 on, and one above 0')


@dataclass(frozen=True, slots=True)
class Rocchio:
    """Rocchio's pseudo-relevance feedback on terms; the defaults are Anserini's.

    Attributes
    ----------
    top_fb_terms, top_fb_docs : terms that are added, of so many of the best hits
    bottom_fb_terms, bottom_fb_docs : terms that are removed, of so many of the last hits;
        without `use_negative`, none are
    alpha, beta, gamma : weights of the query, of the best hits, and of the last
    use_negative : whether the last hits count
    """

    top_fb_terms: int = 10
    top_fb_docs: int = 10
    bottom_fb_terms: int = 10
    bottom_fb_docs: int = 10
    alpha: float = 1.0
    beta: float = 0.75
    gamma: float = 0.0
    use_negative: bool = False

    def __post_init__(self) -> None:
        least = min(self.top_fb_terms, self.top_fb_docs, self.bottom_fb_terms, self.bottom_fb_docs)
        weights = (self.alpha, self.beta, self.gamma)
        if least < 1 or not all(0 <= weight < float('inf') for weight in weights):
            raise InputError(
                f'{self}: expected at least one term and one document each, and weights from 0 on'
            )


@dataclass(frozen=True, slots=True)
class SparseSettings:
    """How a Lucene index is searched.

    Attributes
    ----------
    model : 'bm25' or 'ql' (query likelihood with Dirichlet smoothing)
    k1, b : of BM25; the defaults are Anserini's; 0.82 and 0.68 are tuned for MS MARCO passages
    mu : of query likelihood
    rm3 : expand queries by RM3 feedback: False, True for Anserini's defaults, or parameters
    rocchio : expand queries by Rocchio's feedback: False, True or parameters; one kind of feedback
        at most
    language : of the analyzer: 'en', 'de', …
    sdm : sequential dependence model: False, True for Anserini's weights, or weights
    """

    model: str = 'bm25'
    k1: float = 0.9
    b: float = 0.4
    mu: float = 1000.0
    rm3: Rm3 | bool = False
    rocchio: Rocchio | bool = False
    sdm: Sdm | bool = False
    language: str = ENGLISH

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise InputError(
                f"sparse model '{self.model}' is unknown: expected one of {', '.join(MODELS)}"
            )
        check_language(self.language)
        if self.rm3 and self.rocchio:
            raise InputError('RM3 and Rocchio were given: a query takes one kind of feedback')
        if self.k1 < 0 or not 0 <= self.b <= 1 or self.mu <= 0:
            raise InputError(
                f'k1={self.k1} b={self.b} mu={self.mu}: expected k1 >= 0, b from 0 to 1, mu > 0'
            )


def default_settings(folder: Path) -> SparseSettings:
    """BM25 with the k1, b and language in an index's record, otherwise with Anserini's defaults."""
    manifest = record_of(folder)
    language = recorded_language(folder) or ENGLISH
    try:
        return SparseSettings(k1=float(manifest['k1']), b=float(manifest['b']), language=language)
    except (ValueError, KeyError, TypeError):
        return SparseSettings(language=language)
