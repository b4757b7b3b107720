"""Reranking with EPIC: a query costs a few sums, since passage vectors come from an index.

Use it as a second stage where monoBERT takes too long. Candidates that the index lacks are encoded
on the fly. EPIC section 3, https://arxiv.org/abs/2004.14245
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import InputError, MissingResourceError
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.epic import EpicBundle
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
from pyserini_repbert.systems.epic.encoder import EpicEncoder, check_fits
from pyserini_repbert.systems.epic.explaining import explain_indexed, explain_text
from pyserini_repbert.systems.epic.network import NAME
from pyserini_repbert.trace import SILENT, Trace

# Query terms in the reason for a hit.
REASON_TERMS = 5


class _Absent(NamedTuple):
    """A candidate without a stored vector: its query's number, its row in the list, its text."""

    number: int
    row: int
    text: str


class EpicReranker(Reranker):
    """Scores are inner products of sparse vectors over the vocabulary (EPIC eq. 5).

    A score is 0 where query and passage share no term.

    Of its work, an inference is a passage that was encoded on the fly. Its vector is pruned like
    those of the index but not quantised, so that scores differ by the error of quantising. If
    nothing is pruned, only the terms of queries are computed.

    Parameters
    ----------
    model : catalog name ('epic'), checkpoint folder, or an encoder, which has a device, precision
        and length of its own
    index : an EPIC bundle or its folder; None: every candidate's text is encoded
    missing : 'encode' the text of candidates that have no vector in the index, or 'refuse' them
    prune : without an index: how many of a vector's largest weights are kept, 0 for all
    max_length : wordpieces kept of a passage; default: as the index was built, else the
        checkpoint's limit
    verify : compare the index's files with their checksums when they have changed since the last
        time

    The other parameters are those of `MonoBertReranker`.
    """

    def __init__(
        self,
        model: str | Path | Checkpoint | EpicEncoder,
        device: str = 'cpu',
        index: StrPath | EpicBundle | None = None,
        missing: str = 'encode',
        precision: Precision | str = Precision.FLOAT32,
        prune: int = 0,
        token_budget: int | None = None,
        max_length: int | None = None,
        verify: bool = True,
    ) -> None:
        if missing not in ('encode', 'refuse'):
            raise InputError(f"missing '{missing}' is unknown: expected encode or refuse")
        self.missing = missing
        if prune < 0:
            raise InputError(
                f'prune {prune} was given, expected how many weights to keep, or 0 for all'
            )
        if index is not None and not isinstance(index, EpicBundle):
            index = EpicBundle(index, verify)
        if index is not None and max_length is None:
            max_length = index.settings.max_length
        if not isinstance(model, EpicEncoder):
            model = EpicEncoder(model, device, precision, max_length)
        self.index = index
        self.encoder = model
        self.checkpoint = model.checkpoint
        self.name = model.name
        self.precision = model.precision
        self.prune = prune
        self.token_budget = token_budget
        self.needs_text = index is None
        self.work: Work = Work()
        if index is not None:
            self.prune = index.settings.prune
            check_fits(index, model)

    @property
    def weights_sha256(self) -> str:
        """Checksum of the checkpoint's weights."""
        return self.checkpoint.weights_sha256

    def identity(self) -> Mapping[str, object]:
        identity = {
            **super().identity(),
            'max_length': self.encoder.limit,
            'prune': self.prune,
            'dtype': str(self.precision),
        }
        if self.index is not None:
            identity['index_weights'] = self.index.settings.weights
        return identity

    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Ranking], on_progress: Progress = int
    ) -> Scores:
        """Scores for the candidates of each query, float32 (n,) each.

        A text is encoded once for several queries.
        """
        vectors = self.encoder.encode_queries(queries, self.token_budget)
        scores: Scores = []
        absent: list[_Absent] = []
        for number, candidates in enumerate(lists):
            values, absent_rows = self._stored_scores(vectors[number], candidates)
            scores.append(values)
            for row in absent_rows:
                text = self._text(candidates[row], len(absent_rows))
                absent.append(_Absent(number, row, text))
            n_stored = len(candidates) - len(absent_rows)
            self.work.candidates += len(candidates)
            self.work.stored += n_stored
            on_progress(n_stored)
        if absent:
            self._score_texts(vectors, absent, scores, on_progress)
        return scores

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

    def _score_texts(
        self,
        queries: Sequence[TermVector],
        absent: Sequence[_Absent],
        scores: Scores,
        on_progress: Progress,
    ) -> None:
        """Encode the texts of candidates without a stored vector, and fill in their scores."""
        # Each text is encoded once, in the order of first occurrence.
        counts = Counter(candidate.text for candidate in absent)
        row_of = {text: row for row, text in enumerate(counts)}
        ids = self.encoder.tokenizer.flat_ids(list(counts), self.encoder.limit + 1)
        lengths = ids.lengths.tolist()
        self.work.inferences += len(counts)
        self.work.tokens += sum(map(self.encoder.input_tokens, lengths))
        for count, length in zip(counts.values(), lengths, strict=True):
            if length > self.encoder.limit:
                self.work.truncated += count
        if self.prune:
            vectors = self.encoder.encode_pruned(ids, self.prune, self.token_budget, on_progress)
            for number, row, text in absent:
                scores[number][row] = queries[number].dot(vectors[row_of[text]])
        else:
            # Only the terms of the queries are computed.
            of_queries = [queries[candidate.number].terms for candidate in absent]
            terms = np.unique(np.concatenate(of_queries))
            dense = self.encoder.encode_dense(ids, terms, self.token_budget, on_progress)
            columns = [np.searchsorted(terms, query.terms) for query in queries]
            for number, row, text in absent:
                weights = dense[row_of[text], columns[number]]
                scores[number][row] = weights @ queries[number].weights
        on_progress(len(absent) - len(counts))

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
        """The weights of each hit: of its vector in the index, if that has one.

        `query`, `hits`, `settings` and `trace` are those of `Reranker.explain`.
        """
        passages = []
        for hit in hits:
            index = self._index_of(hit)
            if index:
                explained = explain_indexed(
                    self.encoder, index, query, hit.docid, hit.text, settings.top
                )
            else:
                explained = explain_text(
                    self.encoder, query, hit.text or '', settings.top, self.prune
                )
            passages.append({'docid': hit.docid, **explained})
        return {'system': NAME, 'passages': passages}

    def _index_of(self, hit: Candidate) -> EpicBundle | None:
        """The index that explains a hit, if it has the hit; a hit without text has to be there."""
        if self.index is None:
            return None
        if hit.text is None or self.index.rows([hit.docid])[0] >= 0:
            return self.index
        return None

    def reason(self, query: str, hit: Candidate) -> str:
        """The terms that add most to the score."""
        contributions = explain_text(self.encoder, query, str(hit.text))['contributions']
        return ' + '.join(
            f'{term["term"]} {term["contribution"]:.2f}'
            for term in contributions[:REASON_TERMS]
            if term['contribution'] > 0
        )
