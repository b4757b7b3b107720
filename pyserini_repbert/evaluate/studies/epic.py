"""What pruning and quantising EPIC's passage vectors costs (EPIC Table 1)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pyserini_repbert.data.passages import Corpus
from pyserini_repbert.data.runs import reciprocal_scores
from pyserini_repbert.data.topics import Qrels
from pyserini_repbert.encode.corpus import encode_corpus
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import NamedMeasure, evaluate
from pyserini_repbert.evaluate.overlap import overlap
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.models.term_vectors import TermVector
from pyserini_repbert.ranking import Query, Ranking, Run
from pyserini_repbert.systems.epic.encoder import EpicEncoder
from pyserini_repbert.systems.epic.encoding import prune_epic_bundle

_AGREEMENT_DEPTH = 10


class PruningResult(NamedTuple):
    """One row of the table."""

    prune: int  # weights that a passage keeps, the largest ones; 0 for all
    weights: str  # 'float16' or 'uint8'
    bytes_per_passage: float  # on disk
    milliseconds: float  # to score a query's candidates, query vector given; median over the topics
    means: dict[str, float]  # of the reranked run over all judged topics, by measure
    # mean share, 0 to 1, of a query's ten best hits that are also the first setting's ten best
    agreement: float


def compare_pruning(
    encoder: EpicEncoder,
    corpus: Corpus,
    topics: Sequence[Query],
    first: Run,
    qrels: Qrels,
    measures: Sequence[NamedMeasure],
    settings: Sequence[tuple[int, str]],
    folder: Path,
    k: int = 1000,
    on_progress: Callable[[int], object] = int,
) -> list[PruningResult]:
    """Rerank a first stage with each setting; only the passages among its hits are encoded, once.

    `settings` are (weights kept, 0 for all; 'float16' or 'uint8'); the others are compared with the
    first. `folder` is for the indexes: a finished one is used again, an unfinished one is
    completed. `k` hits of each topic are reranked.
    """
    asked = [
        (topic, first[topic.qid].docids[:k])
        for topic in topics
        if topic.qid in first and topic.qid in qrels
    ]
    if not asked:
        raise InputError(
            'no judged topic has hits in the run: check that topics, qrels and run belong together'
        )
    keep = 0 if any(prune == 0 for prune, _ in settings) else max(prune for prune, _ in settings)
    candidates = {docid for _, docids in asked for docid in docids}
    base = _candidates_index(encoder, corpus, candidates, keep, folder / f'candidates-{keep}')
    vectors = encoder.encode_queries([topic.text for topic, _ in asked])
    results: list[PruningResult] = []
    reference: Run = {}
    for prune, weights in settings:
        place = folder / f'top{prune}-{weights}'
        whole = (place / 'manifest.json').is_file()
        index = (
            EpicBundle(place)
            if whole
            else prune_epic_bundle(base, place, prune, weights, resume=True)
        )
        run, milliseconds = _reranked(index, asked, vectors)
        reference = reference or run
        means = evaluate(run, qrels, measures).means
        shares = [overlap(run[qid].docids, reference[qid].docids, _AGREEMENT_DEPTH) for qid in run]
        size = index.bytes_per_passage()
        results.append(
            PruningResult(prune, weights, size, milliseconds, means, float(np.mean(shares)))
        )
        on_progress(1)
    return results


def _candidates_index(
    encoder: EpicEncoder, corpus: Corpus, docids: set[str], keep: int, place: Path
) -> EpicBundle:
    """The candidates' vectors, with as many weights as the largest setting keeps."""
    passages = [passage for passage in corpus if passage.docid in docids]
    if missing := docids.difference(passage.docid for passage in passages):
        raise InputError(
            f"corpus {corpus.name} lacks hit '{min(missing)}' of the run: give the corpus it "
            f'searched'
        )
    encode_corpus(passages, encoder, place, prune=keep, resume=place.exists())
    return EpicBundle(place)


def _reranked(
    index: EpicBundle, asked: Sequence[tuple[Query, Sequence[str]]], vectors: Sequence[TermVector]
) -> tuple[Run, float]:
    """The reranked run, and the median milliseconds of scoring a query's candidates, after a
    pass that warms caches.
    """
    rows = [index.rows(docids) for _, docids in asked]
    for rows_of_topic, vector in zip(rows, vectors, strict=True):
        index.score(rows_of_topic, vector)
    run: Run = {}
    seconds = []
    for (topic, docids), rows_of_topic, vector in zip(asked, rows, vectors, strict=True):
        start = time.perf_counter()
        scores = index.score(rows_of_topic, vector)
        seconds.append(time.perf_counter() - start)
        order = np.argsort(-scores, kind='stable')  # ties keep the first stage's order
        run[topic.qid] = Ranking(
            [docids[place] for place in order.tolist()], reciprocal_scores(len(docids))
        )
    return run, 1000 * float(np.median(seconds))
