"""Reranking by weights of terms, with passage vectors from an index: a query costs a few sums.

Candidates that the index lacks are encoded on the fly. EPIC section 3,
https://arxiv.org/abs/2004.14245
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.encode.impact_encoder import ImpactEncoder, check_fits
from pyserini_repbert.errors import InputError, MissingResourceError
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.models.term_vectors import TermVector
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.rerank.base import (
    NO_TEXT,
    ExplanationSettings,
    Progress,
    Reranker,
    Scores,
    Work,
)
from pyserini_repbert.rerank.impact_explanations import reason_text
from pyserini_repbert.trace import SILENT, Trace

EncoderT = TypeVar('EncoderT', bound=ImpactEncoder)


class AbsentCandidate(NamedTuple):
    """A candidate without a stored vector: its query's number, its row in the list, its text."""

    number: int
    row: int
    text: str


def check_impact_settings(missing: str, prune: int) -> None:
    """Raise InputError for values of the parameters of `ImpactReranker` that it does not have."""
    if missing not in ('encode', 'refuse'):
        raise InputError(f"missing '{missing}' is unknown: expected encode or refuse")
    if prune < 0:
        raise InputError(
            f'prune {prune} was given, expected how many weights to keep, or 0 for all'
        )


def opened_bundle(index: StrPath | EpicBundle | None, verify: bool) -> EpicBundle | None:
    """The bundle in a folder; one that is open, and None, as they are.

    `verify` compares the index's files with their checksums when they have changed since the last
    time.
    """
    if index is None or isinstance(index, EpicBundle):
        return index
    return EpicBundle(index, verify)


class ImpactReranker(Reranker):
    """Base of the rerankers whose scores are inner products of sparse vectors over a vocabulary.

    A score is 0 where query and passage share no term. Subclasses encode and explain. Of its work,
    an inference is a passage that was encoded on the fly.

    Parameters
    ----------
    encoder : of queries and passages
    index : a bundle; None: every candidate's text is encoded
    missing : 'encode' the text of candidates that have no vector in the index, or 'refuse' them
    prune : without an index: how many of a vector's largest weights are kept, 0 for all
    """

    def __init__(
        self, encoder: ImpactEncoder, index: EpicBundle | None, missing: str, prune: int
    ) -> None:
        self.missing = missing
        self.index = index
        self.name = encoder.name
        self.prune = prune
        self.needs_text = index is None
        self.work: Work = Work()
        if index is not None:
            self.prune = index.settings.prune
            check_fits(index, encoder)

    def identity(self) -> Mapping[str, object]:
        identity = {**super().identity(), 'prune': self.prune, 'dtype': str(self.precision)}
        if self.index is not None:
            identity['index_weights'] = self.index.settings.weights
        return identity

    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Ranking], on_progress: Progress = int
    ) -> Scores:
        """Scores for the candidates of each query, float32 (n,) each.

        A text is encoded once for several queries.
        """
        vectors = self._encode_queries(queries)
        scores: Scores = []
        absent: list[AbsentCandidate] = []
        for number, candidates in enumerate(lists):
            values, absent_rows = self._stored_scores(vectors[number], candidates)
            scores.append(values)
            for row in absent_rows:
                text = self._text(candidates[row], len(absent_rows))
                absent.append(AbsentCandidate(number, row, text))
            n_stored = len(candidates) - len(absent_rows)
            self.work.candidates += len(candidates)
            self.work.stored += n_stored
            on_progress(n_stored)
        if absent:
            self._score_texts(vectors, absent, scores, on_progress)
        return scores

    @abstractmethod
    def _encode_queries(self, queries: Sequence[str]) -> list[TermVector]:
        """The vectors of queries."""

    @abstractmethod
    def _score_texts(
        self,
        queries: Sequence[TermVector],
        absent: Sequence[AbsentCandidate],
        scores: Scores,
        on_progress: Progress,
    ) -> None:
        """Encode the texts of candidates without a stored vector, and fill in their scores."""

    @abstractmethod
    def _explain_hit(
        self, query: str, hit: Candidate, index: EpicBundle | None, top: int
    ) -> dict[str, Any]:
        """The weights of a hit, of its vector in the index, if one is given, or of its text.

        `top` is how many expansion terms are shown.
        """

    def _stored_scores(
        self, query: TermVector, candidates: Ranking
    ) -> tuple[NDArray[np.float32], list[int]]:
        """Scores by stored vectors, float32 (n,), and the rows of candidates that have none.

        The scores of these are not set.
        """
        values = np.empty(len(candidates), dtype=np.float32)
        if self.index is None:
            return values, list(range(len(candidates)))
        rows = self.index.rows(candidates.docids)
        is_stored = rows >= 0
        values[is_stored] = self.index.score(rows[is_stored], query)
        return values, np.flatnonzero(~is_stored).tolist()

    def _text(self, candidate: Candidate, n_absent: int) -> str:
        """The text of a candidate without a vector.

        Raises MissingResourceError if such candidates are refused, InputError if it has no text.
        `n_absent` is how many such candidates its list has.
        """
        no_vector = '' if self.index is None else f'no vector in index {self.index.folder}'
        if no_vector and self.missing == 'refuse':
            raise MissingResourceError(
                f"candidate '{candidate.docid}' (one of {n_absent}) has {no_vector}: index its "
                'corpus, or encode missing candidates on the fly'
            )
        if candidate.text is None:
            raise InputError(
                f"candidate '{candidate.docid}' has {no_vector}, and {NO_TEXT}",
                parameters=('corpus', 'index'),
            )
        return candidate.text

    def explain(
        self, query: str, hits: Ranking, settings: ExplanationSettings, trace: Trace = SILENT
    ) -> dict[str, Any]:
        """The weights of each hit, in EPIC's form: of its vector in the index, if that has one.

        `query`, `hits`, `settings` and `trace` are those of `Reranker.explain`.
        """
        passages = []
        for hit in hits:
            explained = self._explain_hit(query, hit, self._index_of(hit), settings.top)
            passages.append({'docid': hit.docid, **explained})
        return {'system': 'epic', 'passages': passages}

    def _index_of(self, hit: Candidate) -> EpicBundle | None:
        """The index that explains a hit, if it has the hit; a hit without text has to be there."""
        if self.index is None:
            return None
        if hit.text is None or self.index.rows([hit.docid])[0] >= 0:
            return self.index
        return None

    def reason(self, query: str, hit: Candidate) -> str:
        """The terms that add most to the score."""
        return reason_text(self._explain_hit(query, hit, None, 10)['contributions'])
