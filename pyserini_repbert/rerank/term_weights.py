"""Reranking by term weights, with passage vectors from an index: a query costs a few sums.

Candidates that the index lacks are encoded on the fly. EPIC section 3,
https://arxiv.org/abs/2004.14245
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.checksums import remembered_digest
from pyserini_repbert.encode.term_weights import TermWeightsEncoder, check_fits
from pyserini_repbert.errors import InputError, MissingResourceError
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.manifest import MANIFEST
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint
from pyserini_repbert.models.precision import Precision
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
from pyserini_repbert.rerank.term_explanations import explain_indexed, explain_text, reason_text
from pyserini_repbert.trace import SILENT, Trace


@dataclass(frozen=True, slots=True)
class AbsentCandidate:
    """A candidate without a stored vector: its query's number, its row in the list, its text."""

    number: int
    row: int
    text: str


@dataclass(frozen=True, slots=True)
class QueryTextPair:
    """A query's vector, and the number of the text that it scores."""

    query: TermVector
    text: int


class TermWeightsReranker(Reranker, recorded_as='TermWeightsReranker'):
    """Scores are inner products of sparse vectors over the vocabulary (EPIC eq. 5).

    A score is 0 where query and passage share no term. Of its work, an inference is a passage that
    was encoded on the fly. Its vector is pruned like the index's vectors but not quantised, so that
    scores differ by the error of quantising.

    A subclass names its model's encoder, `encoder_class`.

    Parameters
    ----------
    model : catalog name, folder, or an encoder, which has its own device, precision and length
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    index : a bundle of the model's weights, or its folder; None: every candidate's text is encoded
    missing : 'encode' the text of candidates that have no vector in the index, or 'refuse' them
    precision : 'float32', 'bfloat16', 'float16', or 'auto'
    prune : without an index: how many of a vector's largest weights are kept, 0 for all
    token_budget : padded tokens in a batch; default: by device
    max_length : tokens kept of a passage; default: as the index was built, otherwise the model's
        limit
    verify : compare the index's files with their checksums when they have changed since the last
        time

    Raises InputError for a `missing` or `prune` that it does not have, MismatchError for an index
    of another model.
    """

    encoder_class: ClassVar[type[Any]]

    def __init__(
        self,
        model: str | Path | Checkpoint | TermWeightsEncoder,
        device: str = 'cpu',
        index: StrPath | TermWeightsBundle | None = None,
        missing: str = 'encode',
        precision: Precision | str = Precision.FLOAT32,
        prune: int = 0,
        token_budget: int | None = None,
        max_length: int | None = None,
        verify: bool = True,
    ) -> None:
        _check_settings(missing, prune)
        chosen = Precision(precision)
        if index is not None and not isinstance(index, TermWeightsBundle):
            index = TermWeightsBundle(index, verify)
        if index is not None and max_length is None:
            max_length = index.settings.max_length
        encoder: TermWeightsEncoder
        if isinstance(model, TermWeightsEncoder):
            encoder = model
        else:
            encoder = self.encoder_class(model, device, chosen, max_length)
        self.encoder = encoder
        self.name = encoder.name
        self.precision = encoder.precision
        self.token_budget = token_budget
        self.missing = missing
        self.index = index
        self.prune = prune
        self.needs_text = index is None
        self.work: Work = Work()
        if index is not None:
            self.prune = index.settings.prune
            check_fits(index, encoder)

    @property
    def weights_sha256(self) -> str:
        """Checksum of the model's weights."""
        return self.encoder.weights_sha256

    def identity(self) -> Mapping[str, object]:
        identity = {**super().identity(), 'prune': self.prune, 'dtype': str(self.precision)}
        if self.index is not None:
            identity['index_weights'] = self.index.settings.weights
            # The manifest has the digests of all that is stored.
            identity['index_sha256'] = remembered_digest(self.index.folder / MANIFEST)
        identity['max_length'] = self.encoder.limit
        return identity

    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Ranking], on_progress: Progress = int
    ) -> Scores:
        """Scores for the candidates of each query, float32 (n,) each.

        A text is encoded only once for several queries.
        """
        vectors = self.encoder.encode_queries(queries, self.token_budget)
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

    def _score_texts(
        self,
        queries: Sequence[TermVector],
        absent: Sequence[AbsentCandidate],
        scores: Scores,
        on_progress: Progress,
    ) -> None:
        """Encode the texts of candidates without a stored vector, and fill in their scores."""
        # Each text is encoded once, in the order of first occurrence.
        counts = Counter(candidate.text for candidate in absent)
        text_numbers = {text: number for number, text in enumerate(counts)}
        pairs = [
            QueryTextPair(queries[candidate.number], text_numbers[candidate.text])
            for candidate in absent
        ]
        self.work.inferences += len(counts)
        passages = self._read_texts(counts)
        pair_scores = self._score_pairs(pairs, passages, on_progress)
        for candidate, score in zip(absent, pair_scores, strict=True):
            scores[candidate.number][candidate.row] = score
        on_progress(len(absent) - len(counts))

    def _read_texts(self, counts: Counter[str]) -> Any:
        """The encoder's inputs of texts. Each counts as often as it is a candidate."""
        return list(counts)

    def _score_pairs(
        self, pairs: Sequence[QueryTextPair], passages: Any, on_progress: Progress
    ) -> list[float]:
        """The score of each pair; `passages` are all texts, as `_read_texts` gives them."""
        vectors = self.encoder.encode_pruned(passages, self.prune, self.token_budget, on_progress)
        return [pair.query.dot(vectors[pair.text]) for pair in pairs]

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
        """The weights of each hit: from its vector in the index, if there is one.

        Parameters
        ----------
        query : its text
        hits : checked by `check`
        settings : `top` is how many expansion terms are shown
        trace : not used

        Returns the values of `explain_text` for each hit; the form is called 'epic'.
        """
        passages = []
        for hit in hits:
            explained = self._explain_hit(query, hit, settings.top)
            passages.append({'docid': hit.docid, **explained})
        return {'system': 'epic', 'passages': passages}

    def _explain_hit(self, query: str, hit: Candidate, top: int) -> dict[str, Any]:
        """The weights of a hit. A hit without text must be in the index."""
        if self.index is not None:
            is_stored = self.index.rows([hit.docid])[0] >= 0
            if hit.text is None or is_stored:
                return explain_indexed(self.encoder, self.index, query, hit.docid, hit.text, top)
        return explain_text(self.encoder, query, hit.text or '', top, self.prune)

    def reason(self, query: str, hit: Candidate) -> str:
        """The terms that add most to the score."""
        explained = explain_text(self.encoder, query, hit.text or '', prune=self.prune)
        return reason_text(explained['contributions'])


def _check_settings(missing: str, prune: int) -> None:
    """Raise InputError for values that a reranker by term weights does not have."""
    if missing not in ('encode', 'refuse'):
        raise InputError(f"missing '{missing}' is unknown: expected encode or refuse")
    if prune < 0:
        raise InputError(
            f'prune {prune} was given, expected how many weights to keep, or 0 for all'
        )
