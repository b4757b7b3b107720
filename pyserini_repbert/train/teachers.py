"""Teachers: what scores the candidates of a query that a model learns from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from pyserini_repbert.data.runs import RunFormat, read_run, run_format
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.systems.encoders import document_encoder, query_encoder
from pyserini_repbert.systems.monobert.reranker import MonoBertReranker


class CandidateScorer(Protocol):
    """Something that scores the candidates of a query: a file of scores, or a teacher."""

    def scores(
        self, qid: str, query: str, docids: Sequence[str], texts: Sequence[str]
    ) -> list[float]:
        """The candidates' scores.

        Parameters
        ----------
        qid, query : the query's identifier and text
        docids, texts : the candidates' identifiers and texts
        """


class ScoreFile:
    """Scores from a run file in TREC's format; `where` names the source in errors.

    Raises InputError for a run of MS MARCO's format, which has no scores.
    """

    def __init__(self, path: str, where: str) -> None:
        self.path = path
        self.where = where
        if run_format(path) is not RunFormat.TREC:
            raise InputError(
                f"{where}: {path} has ranks alone: the teacher's scores were expected, in the "
                "format of TREC's runs"
            )
        self._scores = {}
        for qid, hits in read_run(path).items():
            self._scores[qid] = dict(zip(hits.docids, hits.scores, strict=True))

    def scores(
        self, qid: str, query: str, docids: Sequence[str], texts: Sequence[str]
    ) -> list[float]:
        """The file's scores of `qid` and `docids`; `query` and `texts` are not read.

        Raises InputError for a candidate that the file lacks.
        """
        known = self._scores.get(qid, {})
        for docid in docids:
            if docid not in known:
                raise InputError(
                    f"{self.where}: {self.path} has no score of '{docid}' for topic '{qid}'"
                )
        return [known[docid] for docid in docids]


class BiEncoderTeacher:
    """The cosine of a bi-encoder's vectors of query and passage; a passage's vector is computed
    once.
    """

    def __init__(self, model: Checkpoint) -> None:
        self._queries = query_encoder(model)
        self._passages = document_encoder(model, open_encoder=self._queries)
        self._vectors: dict[str, np.ndarray] = {}

    def scores(
        self, qid: str, query: str, docids: Sequence[str], texts: Sequence[str]
    ) -> list[float]:
        """Cosines of `query` and `texts`, regardless of `qid` and `docids`; 0 for a zero vector."""
        new = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        if new:
            vectors = _unit(self._passages.embed(new))
            self._vectors.update(zip(new, vectors, strict=True))
        (vector,) = _unit(self._queries.encode_batch([query]))
        return [float(self._vectors[text] @ vector) for text in texts]


class CrossEncoderTeacher:
    """The log-odds of relevance by a trained monoBERT."""

    def __init__(self, model: Checkpoint) -> None:
        self._reranker = MonoBertReranker(model)

    def scores(
        self, qid: str, query: str, docids: Sequence[str], texts: Sequence[str]
    ) -> list[float]:
        """log p - log(1 - p), with p the probability that `texts` (of `docids`) are relevant to
        `query`.
        """
        ranking = Ranking(docids, [0.0] * len(docids), texts)
        (scores,) = self._reranker.score_lists([query], [ranking])
        log_p = np.asarray(scores, dtype=np.float64)
        # A probability that is rounded to 1 has finite odds too.
        log_not_p = np.log(-np.expm1(np.minimum(log_p, -1e-300)))
        return [float(odds) for odds in log_p - log_not_p]


def _unit(vectors: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: np.ndarray = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    return unit
