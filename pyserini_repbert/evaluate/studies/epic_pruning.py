"""Storage, latency and quality of pruned and quantised EPIC vectors (EPIC section 3, Table 1)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pyserini_repbert.data.passages import Corpus, Passage
from pyserini_repbert.data.runs import reciprocal_scores
from pyserini_repbert.data.topics import Qrels
from pyserini_repbert.encode.epic import EpicEncoder
from pyserini_repbert.encode.epic_corpus import encode_epic_corpus, prune_epic_bundle
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import NamedMeasure, evaluate
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.models.term_vectors import TermVector
from pyserini_repbert.ranking import Query, Ranking, Run

_AGREEMENT_DEPTH = 10


@dataclass(frozen=True)
class PruningResult:
    """One row of the table.

    Attributes
    ----------
    prune : weights that a passage keeps, the largest ones; 0 for all
    weights : 'float16' or 'uint8'
    bytes_per_passage : on disk
    milliseconds : to score a query's candidates, query vector given; median over the topics
    means : measure name -> value of the reranked run over all judged topics
    agreement : mean share, 0 to 1, of a query's ten best hits that are also among the first setting's ten best
    """

    prune: int
    weights: str
    bytes_per_passage: float
    milliseconds: float
    means: dict[str, float]
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
    on_progress: Callable[[int], object] | None = None,
) -> list[PruningResult]:
    """Rerank a first stage with each setting; only the passages among its hits are encoded, once.

    Parameters
    ----------
    settings : (weights kept, 0 for all; 'float16' or 'uint8'); the others are compared with the first
    folder : for the indexes; a finished one is used again, an unfinished one is completed
    k : hits of each topic that are reranked
    on_progress : called with 1 after each setting

    Raises
    ------
    InputError
        where no topic has hits, or a hit is not in the corpus
    """
    asked = [(topic, first[topic.qid].docids[:k]) for topic in topics if topic.qid in first and topic.qid in qrels]
    if not asked:
        raise InputError('no judged topic has hits in the run: check that topics, qrels and run belong together')
    base = _candidates_index(encoder, corpus, {docid for _, docids in asked for docid in docids}, settings, folder)
    vectors = encoder.encode_queries([topic.text for topic, _ in asked])
    results: list[PruningResult] = []
    reference: Run | None = None
    for prune, weights in settings:
        place = folder / f'top{prune}-{weights}'
        if (place / 'manifest.json').is_file():
            index = EpicBundle(place)
        else:
            index = prune_epic_bundle(base, place, prune, weights, resume=True)
        run, milliseconds = _reranked(index, asked, vectors)
        reference = reference or run
        means = evaluate(run, qrels, measures).means
        agreement = _agreement(run, reference)
        results.append(PruningResult(prune, weights, index.bytes_per_passage(), milliseconds, means, agreement))
        if on_progress is not None:
            on_progress(1)
    return results


def _candidates_index(
    encoder: EpicEncoder, corpus: Corpus, wanted: set[str], settings: Sequence[tuple[int, str]], folder: Path
) -> EpicBundle:
    """The candidates' vectors, with as many weights as the largest setting keeps."""
    keep = 0 if any(prune == 0 for prune, _ in settings) else max(prune for prune, _ in settings)
    place = folder / f'candidates-{keep}'
    passages: list[Passage] = [passage for passage in corpus if passage.docid in wanted]
    if len(passages) < len(wanted):
        lost = min(wanted - {passage.docid for passage in passages})
        raise InputError(f"corpus {corpus.name} lacks hit '{lost}' of the run: give the corpus that was searched")
    encode_epic_corpus(passages, encoder, place, prune=keep, resume=place.exists())
    return EpicBundle(place)


def _reranked(
    index: EpicBundle, asked: Sequence[tuple[Query, Sequence[str]]], vectors: Sequence[TermVector]
) -> tuple[Run, float]:
    """The reranked run, and the median milliseconds of scoring a query's candidates, after a pass that warms caches."""
    rows = [index.rows(docids) for _, docids in asked]
    for own, vector in zip(rows, vectors, strict=True):
        index.score(own, vector)
    run: Run = {}
    seconds = []
    for (topic, docids), own, vector in zip(asked, rows, vectors, strict=True):
        start = time.perf_counter()
        scores = index.score(own, vector)
        seconds.append(time.perf_counter() - start)
        order = np.argsort(-scores, kind='stable')  # ties keep the first stage's order
        run[topic.qid] = Ranking([docids[place] for place in order.tolist()], reciprocal_scores(len(docids)))
    return run, 1000 * float(np.median(seconds))


def _agreement(run: Run, reference: Run) -> float:
    shares = []
    for qid, ranking in run.items():
        best = set(reference[qid].docids[:_AGREEMENT_DEPTH])
        shares.append(len(best.intersection(ranking.docids[:_AGREEMENT_DEPTH])) / len(best) if best else 1.0)
    return float(np.mean(shares))
