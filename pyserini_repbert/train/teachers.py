"""Teachers: scores of a query's candidates, from a file or, on demand, from a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from pyserini_repbert.data.runs import read_run
from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint
from pyserini_repbert.models.monobert import SYSTEM as MONO
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.rerank import MonoBertReranker


class Scorer(Protocol):
    """Scores of a query's candidates."""

    def scores(self, qid: str, query: str, docids: Sequence[str], texts: Sequence[str]) -> list[float]:
        """A score for each candidate, in the teacher's own units."""


class ScoreFile:
    """Scores from a run file.

    Parameters
    ----------
    path : run file, TREC's format
    where : names the source in errors
    """

    def __init__(self, path: str, where: str) -> None:
        self.path, self.where = path, where
        self._scores = {
            qid: dict(zip(ranked.docids, ranked.scores, strict=True)) for qid, ranked in read_run(path).items()
        }

    def scores(self, qid: str, query: str, docids: Sequence[str], texts: Sequence[str]) -> list[float]:
        """The file's scores. Raises InputError for a candidate that the file lacks."""
        known = self._scores.get(qid, {})
        if missing := next((docid for docid in docids if docid not in known), None):
            raise InputError(f"{self.where}: {self.path} has no score of '{missing}' for topic '{qid}'")
        return [known[docid] for docid in docids]


class BiEncoderTeacher:
    """The cosine of a bi-encoder's vectors of query and passage; a passage's vector is computed once."""

    def __init__(self, model: Checkpoint) -> None:
        self._queries = RepBertQueryEncoder(model)
        self._passages = RepBertDocumentEncoder(model)
        self._vectors: dict[str, np.ndarray] = {}

    def scores(self, qid: str, query: str, docids: Sequence[str], texts: Sequence[str]) -> list[float]:
        """Cosines; that of a zero vector is 0."""
        new = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        if new:
            self._vectors |= zip(new, _unit(self._passages.embed(new)), strict=True)
        vector = _unit(self._queries.encode_batch([query]))[0]
        return [float(self._vectors[text] @ vector) for text in texts]


class CrossEncoderTeacher:
    """The log-odds of relevance by a trained monoBERT."""

    def __init__(self, model: Checkpoint) -> None:
        self._reranker = MonoBertReranker(model)

    def scores(self, qid: str, query: str, docids: Sequence[str], texts: Sequence[str]) -> list[float]:
        """log p - log(1 - p), with p the probability of relevance."""
        ranking = Ranking(docids, [0.0] * len(docids), texts)
        log_p = np.asarray(self._reranker.score_lists([query], [ranking])[0], dtype=np.float64)
        return list(map(float, log_p - np.log(-np.expm1(np.minimum(log_p, -1e-300)))))


def opened_teacher(model: Checkpoint) -> Scorer:
    """The teacher of a checkpoint: a cross-encoder if its system is monoBERT, else a bi-encoder."""
    if model.config.get('ranking', {}).get('system') == MONO:
        return CrossEncoderTeacher(model)
    return BiEncoderTeacher(model)


def _unit(vectors: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: np.ndarray = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    return unit
