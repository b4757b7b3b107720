"""What a recipe names, opened: passages, on disk with 28 bytes of memory each, topics to train
on, and teachers.
"""

from __future__ import annotations

import random
import tempfile
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from pyserini_repbert.data.passages import Passage, PassageTexts
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.data.topics import normal_form
from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import numbered_lines
from pyserini_repbert.index.docids import DocidColumn, Docids, mapped_bytes
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.names.texts import open_texts
from pyserini_repbert.names.topics import load_topics
from pyserini_repbert.ranking import Query, Ranking
from pyserini_repbert.rerank import MonoBertReranker
from pyserini_repbert.tasks.recipe import (
    Source,
    Validation,
)


def open_passages(source: Source) -> PassageTexts:
    """Passage texts by docid: from an index that stores them, or from a corpus, read once to a
    temporary file.
    """
    if source.corpus is None:
        return open_texts(None, source.index, ())
    return DiskTexts(
        open_corpus(source.corpus, source.corpus_format, source.fields, keep_empty=True)
    )


def source_topics(source: Source | Validation, sample: int = 0, seed: int = 0) -> list[Query]:
    """The topics of a source in their order, only those in its `qids` file if it has one; none for
    a source without.

    With `sample`, that many of them, drawn by the seed.
    """
    if source.topics is None:
        return []
    topics = load_topics(source.topics)
    if source.qids is not None:
        chosen = {
            qid
            for _, line in numbered_lines(source.qids, 'list of qids')
            for qid in line.split()[:1]
        }
        topics = [query for query in topics if query.qid in chosen]
    if sample and sample < len(topics):
        drawn = set(random.Random(f'{seed} sample').sample(range(len(topics)), sample))
        topics = [query for number, query in enumerate(topics) if number in drawn]
    return topics


class DiskTexts:
    """Passages written to temporary files as they are read; of passages with one docid, the first
    counts.

    The files vanish with the object; processes that are forked from this one can read them too.
    """

    def __init__(self, corpus: Iterable[Passage]) -> None:
        ends = array('q', [0])
        with tempfile.TemporaryDirectory(prefix='passages.') as folder:
            docids = Path(folder, 'docids')
            texts = Path(folder, 'texts')
            with (
                open(docids, 'w', encoding='utf-8', newline='\n') as names,
                open(texts, 'wb') as stream,
            ):
                for passage in corpus:
                    names.write(f'{passage.docid}\n')
                    ends.append(ends[-1] + stream.write(passage.text.encode()))
            self._rows = Docids([DocidColumn(docids, len(ends) - 1)]).rows
            self._rows([])  # sorts the docids now, before processes are forked
            self._texts = mapped_bytes(texts)
        self._ends = ends

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """The texts in the order asked for; None for a docid that the corpus lacks."""
        rows = self._rows(docids).tolist()
        return [
            None if row < 0 else self._texts[self._ends[row] : self._ends[row + 1]].decode()
            for row in rows
        ]


class Guard:
    """Says which queries may be trained on, by their text, since one qid may name different queries
    in two collections.

    To train on a test topic is an error; validation topics are left out of training.
    """

    def __init__(self, test: Iterable[str] = (), validation: Iterable[str] = ()) -> None:
        self._test = {normal_form(text) for text in test}
        self._validation = {normal_form(text) for text in validation}

    def admits(self, text: str, where: str) -> bool:
        """Whether a query may be trained on.

        Raises InputError, which begins with `where`, for a test topic.
        """
        normalised = normal_form(text)
        if normalised in self._test:
            raise InputError(
                f'{where}: {text[:60]!r} is a test topic: take it out of the training data, '
                'or set allow_test_topics: true'
            )
        return normalised not in self._validation


class ScoreFile:
    """Scores from a run file in TREC's format; `where` names the source in errors."""

    def __init__(self, path: str, where: str) -> None:
        self.path = path
        self.where = where
        run = read_run(path)
        self._scores = {
            qid: dict(zip(hits.docids, hits.scores, strict=True)) for qid, hits in run.items()
        }

    def scores(
        self, qid: str, query: str, docids: Sequence[str], texts: Sequence[str]
    ) -> list[float]:
        """The file's scores. Raises InputError for a candidate that the file lacks."""
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
        self._queries = RepBertQueryEncoder(model)
        self._passages = RepBertDocumentEncoder(model)
        self._vectors: dict[str, np.ndarray] = {}

    def scores(
        self, qid: str, query: str, docids: Sequence[str], texts: Sequence[str]
    ) -> list[float]:
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

    def scores(
        self, qid: str, query: str, docids: Sequence[str], texts: Sequence[str]
    ) -> list[float]:
        """log p - log(1 - p), with p the probability of relevance."""
        ranking = Ranking(docids, [0.0] * len(docids), texts)
        log_p = np.asarray(self._reranker.score_lists([query], [ranking])[0], dtype=np.float64)
        return list(map(float, log_p - np.log(-np.expm1(np.minimum(log_p, -1e-300)))))


def _unit(vectors: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: np.ndarray = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    return unit
