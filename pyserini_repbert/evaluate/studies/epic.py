"""What pruning and quantising EPIC's passage vectors costs (EPIC Table 1)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pyserini_repbert.data.ordering import reciprocal_scores
from pyserini_repbert.data.passages import Corpus
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.encode.corpus import encode_corpus
from pyserini_repbert.encode.pruning import prune_bundle
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import Evaluation, NamedMeasure, evaluate
from pyserini_repbert.evaluate.overlap import overlap
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.models.term_vectors import TermVector
from pyserini_repbert.ranking import Query, Ranking, Run
from pyserini_repbert.systems.epic.encoder import EpicEncoder

_AGREEMENT_DEPTH = 10


class PruningSetting(NamedTuple):
    """How passage vectors are stored.

    Attributes
    ----------
    prune : how many of a passage's largest weights are kept; 0 for all
    weights : 'float16' or 'uint8'
    """

    prune: int
    weights: str


class PruningResult(NamedTuple):
    """One row of the table.

    Attributes
    ----------
    setting : how the vectors are stored
    bytes_per_passage : on disk
    milliseconds : to score a query's candidates, query vector given; median over the topics
    evaluation : of the reranked run over all judged topics
    agreement : mean share, 0 to 1, of a query's ten best hits that are also the first setting's
        ten best
    """

    setting: PruningSetting
    bytes_per_passage: float
    milliseconds: float
    evaluation: Evaluation
    agreement: float


class _Request(NamedTuple):
    """A topic, its vector, and the candidates that are reranked."""

    topic: Query
    vector: TermVector
    docids: Sequence[str]


class _Reranked(NamedTuple):
    """A reranked run, and the median milliseconds of scoring a query's candidates."""

    run: Run
    milliseconds: float


def compare_pruning(
    encoder: EpicEncoder,
    corpus: Corpus,
    topics: Sequence[Query],
    first: Run,
    qrels: Qrels,
    measures: Sequence[NamedMeasure],
    settings: Sequence[PruningSetting],
    folder: Path,
    *,
    k: int = 1000,
    on_progress: Callable[[int], object] = int,
) -> list[PruningResult]:
    """Rerank a first stage with each setting; only the passages among its hits are encoded, once.

    Parameters
    ----------
    encoder : the EPIC checkpoint
    corpus : that the first stage searched
    topics, qrels, measures : what is asked, and how answers are scored
    first : the first stage's run
    settings : the others are compared with the first one
    folder : for the indexes: a finished one is used again, an unfinished one is completed
    k : hits of each topic that are reranked
    on_progress : called with 1 after each setting
    """
    judged = [topic for topic in topics if topic.qid in first and topic.qid in qrels]
    if not judged:
        raise InputError(
            'no judged topic has hits in the run: check that topics, qrels and run belong together'
        )
    vectors = encoder.encode_queries([topic.text for topic in judged])
    requests = [
        _Request(topic, vector, first[topic.qid].docids[:k])
        for topic, vector in zip(judged, vectors, strict=True)
    ]
    base = _candidates_index(encoder, corpus, requests, settings, folder)
    results: list[PruningResult] = []
    reference: Run = {}
    for setting in settings:
        index = _pruned_index(base, setting, folder)
        reranked = _rerank(index, requests)
        reference = reference or reranked.run
        result = PruningResult(
            setting=setting,
            bytes_per_passage=index.bytes_per_passage(),
            milliseconds=reranked.milliseconds,
            evaluation=evaluate(reranked.run, qrels, measures),
            agreement=_mean_overlap(reranked.run, reference),
        )
        results.append(result)
        on_progress(1)
    return results


def _candidates_index(
    encoder: EpicEncoder,
    corpus: Corpus,
    requests: Iterable[_Request],
    settings: Sequence[PruningSetting],
    folder: Path,
) -> TermWeightsBundle:
    """The candidates' vectors, with as many weights as the largest setting keeps."""
    docids: set[str] = set()
    for request in requests:
        docids.update(request.docids)
    passages = [passage for passage in corpus if passage.docid in docids]
    missing = docids.difference(passage.docid for passage in passages)
    if missing:
        raise InputError(
            f"corpus {corpus.name} lacks hit '{min(missing)}' of the run: give the corpus it "
            f'searched'
        )
    kept = [setting.prune for setting in settings]
    most = 0 if 0 in kept else max(kept)
    path = folder / f'candidates-{most}'
    encode_corpus(passages, encoder, path, prune=most, resume=path.exists())
    return TermWeightsBundle(path)


def _pruned_index(
    base: TermWeightsBundle, setting: PruningSetting, folder: Path
) -> TermWeightsBundle:
    """The index of a setting; if it is missing, it is made from one with more weights."""
    # `base` was compared with model, corpus and run, so an index with its name was made from it.
    path = folder / f'{base.folder.name}-top{setting.prune}-{setting.weights}'
    if (path / 'manifest.json').is_file():
        return TermWeightsBundle(path)
    return prune_bundle(base, path, setting.prune, setting.weights, resume=True)


def _mean_overlap(run: Run, reference: Run) -> float:
    shares = [
        overlap(ranking.docids, reference[qid].docids, _AGREEMENT_DEPTH)
        for qid, ranking in run.items()
    ]
    return float(np.mean(shares))


def _rerank(index: TermWeightsBundle, requests: Sequence[_Request]) -> _Reranked:
    """Rerank candidates, and time it, after a pass that warms caches."""
    rows = [index.rows(request.docids) for request in requests]
    for request, candidates in zip(requests, rows, strict=True):
        index.score(candidates, request.vector)
    run: Run = {}
    seconds = []
    for request, candidates in zip(requests, rows, strict=True):
        start = time.perf_counter()
        scores = index.score(candidates, request.vector)
        seconds.append(time.perf_counter() - start)
        # Ties keep the first stage's order.
        order = np.argsort(-scores, kind='stable').tolist()
        docids = [request.docids[position] for position in order]
        run[request.topic.qid] = Ranking(docids, reciprocal_scores(len(docids)))
    return _Reranked(run, 1000 * float(np.median(seconds)))
