"""Reranking with EPIC: passages' vectors come from an index, or are computed on the fly; a query costs a few sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.encode.epic import EpicEncoder
from pyserini_repbert.errors import InputError, MismatchError, MissingResourceError
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.models.checkpoint import Checkpoint
from pyserini_repbert.models.precision import Precision
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank.base import Progress, Reranker, Work, rescored
from pyserini_repbert.term_vectors import TermVector


class Missing(StrEnum):
    """What becomes of a candidate without a vector in the index."""

    ENCODE = 'encode'
    REFUSE = 'refuse'


class EpicReranker(Reranker):
    """Scores are inner products of sparse vectors over the vocabulary (EPIC eq. 5): 0 where no term is shared.

    A vector that is computed on the fly is pruned as those of the index are; it is not quantised, so that a score from
    the index differs by what the index's weights lose. Where nothing is pruned, only the query's terms are computed.

    Parameters
    ----------
    model : catalog name ('epic'), checkpoint folder, or an encoder
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    index : an EPIC bundle or its folder; None: every candidate's text is encoded
    missing : 'encode' the text of candidates that the index lacks, or 'refuse' them
    precision : of BERT: 'float32', 'bfloat16', 'float16', or 'auto'
    prune : without an index: how many weights of a vector are kept, 0 for all
    token_budget : padded tokens in a batch
    verify : compare the index's files with their checksums when they have changed since the last time

    Attributes
    ----------
    name, weights_sha256 : of the checkpoint
    work : what it has done so far; an inference is a passage that was encoded

    Raises
    ------
    UnknownNameError, MissingResourceError, DamagedFileError
        for a checkpoint or an index that is not there or not whole
    MismatchError
        for a checkpoint of another system, or an index made with another vocabulary or other weights
    InputError
        for settings that the model or the machine cannot meet
    """

    needs_text = False

    def __init__(
        self,
        model: str | Path | Checkpoint | EpicEncoder,
        device: str = 'cpu',
        index: StrPath | EpicBundle | None = None,
        missing: Missing | str = Missing.ENCODE,
        precision: Precision | str = Precision.FLOAT32,
        prune: int = 0,
        token_budget: int | None = None,
        verify: bool = True,
    ) -> None:
        if missing not in list(Missing):
            raise InputError(f"missing '{missing}' was given, expected {' or '.join(Missing)}")
        if prune < 0:
            raise InputError(f'prune {prune} was given, expected how many weights to keep, or 0 for all')
        self.index = index if index is None or isinstance(index, EpicBundle) else EpicBundle(index, verify)
        self.encoder = model if isinstance(model, EpicEncoder) else EpicEncoder(model, device, precision)
        self.missing = Missing(missing)
        self.prune = prune if self.index is None else self.index.settings.prune
        self.token_budget = token_budget
        self.work: Work = Work()
        if self.index is not None:
            check_fits(self.index, self.encoder)

    @property
    def name(self) -> str:
        """The checkpoint's catalog name or folder."""
        return self.encoder.name

    @property
    def weights_sha256(self) -> str:
        """Checksum of the checkpoint's weights."""
        return self.encoder.weights_sha256

    def identity(self) -> Mapping[str, object]:
        """The checkpoint, and every setting that changes a score."""
        settings: dict[str, object] = {'max_length': self.encoder.limit, 'prune': self.prune}
        if self.index is not None:
            settings['index_weights'] = self.index.settings.weights
        return {**super().identity(), **settings}

    def encode_query(self, query: str) -> TermVector:
        """A query's vector (EPIC eq. 1), for `rerank_with`: it can be made before there are candidates."""
        return self.encoder.encode_query(query)

    def rerank_with(
        self, query: TermVector, candidates: Sequence[Candidate], k: int | None = None
    ) -> list[Candidate]:
        """`rerank` for a query that is encoded already."""
        if k is not None and k < 0:
            raise InputError(f'k={k} was asked for, expected 0 or more')
        self._check('', candidates)
        return rescored(candidates, self._scores(query, candidates, None))[:k]

    def search_and_rerank(
        self, query: str, first_stage: Callable[[str], Sequence[Candidate]], k: int | None = None
    ) -> list[Candidate]:
        """A first stage and its reranking; the query is encoded while the first stage runs (EPIC section 3).

        Parameters
        ----------
        first_stage : the query to its candidates
        k : how many of the reranked to keep
        """
        with ThreadPoolExecutor(max_workers=1) as meanwhile:
            vector = meanwhile.submit(self.encode_query, query)
            candidates = first_stage(query)
            return self.rerank_with(vector.result(), candidates, k)

    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Sequence[Candidate]], on_progress: Progress | None = None
    ) -> list[NDArray[np.floating]]:
        """Scores for the candidates of each query, float32 (n,) each."""
        vectors = self.encoder.encode_queries(queries, self.token_budget)
        return [
            self._scores(query, candidates, on_progress) for query, candidates in zip(vectors, lists, strict=True)
        ]

    def _scores(
        self, query: TermVector, candidates: Sequence[Candidate], on_progress: Progress | None
    ) -> NDArray[np.float32]:
        self.work.candidates += len(candidates)
        if self.index is None:
            return self._encoded(query, candidates, on_progress)
        rows = self.index.rows([candidate.docid for candidate in candidates])
        absent = np.flatnonzero(rows < 0)
        if on_progress is not None:
            on_progress(len(candidates) - len(absent))
        if not len(absent):
            return self.index.score(rows, query)
        if self.missing is Missing.REFUSE:
            raise MissingResourceError(
                f"candidate '{candidates[absent[0]].docid}' (and {len(absent) - 1} more) has no vector in index "
                f'{self.index.folder}: index its corpus, or encode missing candidates on the fly'
            )
        scores = np.empty(len(candidates), dtype=np.float32)
        scores[absent] = self._encoded(query, [candidates[i] for i in absent.tolist()], on_progress)
        scores[rows >= 0] = self.index.score(rows[rows >= 0], query)
        return scores

    def _encoded(
        self, query: TermVector, candidates: Sequence[Candidate], on_progress: Progress | None
    ) -> NDArray[np.float32]:
        texts = []
        for candidate in candidates:
            if candidate.text is None:
                where = '' if self.index is None else f' and no vector in index {self.index.folder}'
                raise InputError(
                    f"candidate '{candidate.docid}' has no text{where}: name the corpus or an index that stores its "
                    'passages (--corpus, --index)'
                )
            texts.append(candidate.text)
        self.work.inferences += len(texts)
        if self.prune:
            vectors = self.encoder.encode_pruned(texts, self.prune, self.token_budget, on_progress)
            return np.asarray([query.dot(vector) for vector in vectors], dtype=np.float32)
        dense = self.encoder.encode_dense(texts, query.terms, self.token_budget, on_progress)
        return dense @ query.weights


def check_fits(index: EpicBundle, encoder: EpicEncoder) -> None:
    """Raises MismatchError where an index was made with another vocabulary, other weights or another variant."""
    settings = index.settings
    advice = f"use the model it was built with ('{settings.encoder}')"
    if (settings.vocabulary, settings.vocabulary_sha256) != (encoder.vocabulary, encoder.vocabulary_sha256):
        raise MismatchError(
            f"index {index.folder} has another vocabulary ({settings.vocabulary} terms) than model '{encoder.name}' "
            f'({encoder.vocabulary} terms): {advice}'
        )
    if settings.weights_sha256 != encoder.weights_sha256:
        raise MismatchError(f"index {index.folder} was built with other weights than model '{encoder.name}': {advice}")
    if settings.variant != encoder.variant:
        raise MismatchError(
            f"index {index.folder} was built with variant '{settings.variant}', model '{encoder.name}' has "
            f"'{encoder.variant}': {advice}"
        )
