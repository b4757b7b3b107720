"""Reranking with EPIC: a query costs a few sums, since passage vectors come from an index.

Use it as a second stage where monoBERT takes too long. Candidates that the index lacks are encoded
on the fly. EPIC section 3, https://arxiv.org/abs/2004.14245
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pyserini_repbert.files import StrPath
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint
from pyserini_repbert.models.precision import Precision
from pyserini_repbert.models.term_vectors import TermVector
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank.base import Progress, Scores
from pyserini_repbert.rerank.impacts import (
    AbsentCandidate,
    ImpactReranker,
    check_impact_settings,
    opened_bundle,
)
from pyserini_repbert.systems.epic.encoder import EpicEncoder
from pyserini_repbert.systems.epic.explaining import explain_indexed, explain_text


class EpicReranker(ImpactReranker):
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
        check_impact_settings(missing, prune)
        chosen = Precision(precision)
        bundle = opened_bundle(index, verify)
        if bundle is not None and max_length is None:
            max_length = bundle.settings.max_length
        if not isinstance(model, EpicEncoder):
            model = EpicEncoder(model, device, chosen, max_length)
        self.encoder = model
        self.checkpoint = model.checkpoint
        self.precision = model.precision
        self.token_budget = token_budget
        super().__init__(model, bundle, missing, prune)

    @property
    def weights_sha256(self) -> str:
        """Checksum of the checkpoint's weights."""
        return self.checkpoint.weights_sha256

    def identity(self) -> Mapping[str, object]:
        return {**super().identity(), 'max_length': self.encoder.limit}

    def _encode_queries(self, queries: Sequence[str]) -> list[TermVector]:
        return self.encoder.encode_queries(queries, self.token_budget)

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

    def _explain_hit(
        self, query: str, hit: Candidate, index: EpicBundle | None, top: int
    ) -> dict[str, Any]:
        if index is not None:
            return explain_indexed(self.encoder, index, query, hit.docid, hit.text, top)
        return explain_text(self.encoder, query, hit.text or '', top, self.prune)
