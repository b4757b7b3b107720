"""A reranker's speed and quality: both by number of BERT layers, and speed by document length (CEDR Figure 2)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyserini_repbert.data.runs import reciprocal_scores
from pyserini_repbert.data.topics import Qrels
from pyserini_repbert.evaluate.measures import NamedMeasure, evaluate
from pyserini_repbert.ranking import Candidate, Query, Ranking, Run

if TYPE_CHECKING:
    from pyserini_repbert.models.cedr.layout import Pair
    from pyserini_repbert.rerank.base import Progress, Reranker
    from pyserini_repbert.rerank.cedr import CedrReranker

_QUERY_LENGTH = 4  # wordpieces of the queries that rates by document length are measured with
_LEAST_DOCUMENTS = 4


class LayerResult(NamedTuple):
    """The speed and quality of a reranker that runs some of its layers.

    Attributes
    ----------
    documents_per_second : reranked, from text to score
    means : measure name -> value over all judged topics, of the reranked candidates alone
    """

    documents_per_second: float
    means: dict[str, float]


def layer_curve(
    reranker_of: Callable[[int], Reranker],
    layers: Sequence[int],
    queries: Sequence[Query],
    lists: Sequence[Sequence[Candidate]],
    qrels: Qrels,
    measures: Sequence[NamedMeasure],
    on_progress: Progress | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[int, LayerResult]:
    """Speed and quality by number of layers (CEDR Figure 2b).

    Parameters
    ----------
    reranker_of : gives the reranker that runs that many layers
    queries, lists : topics, and the candidates of each with their texts
    on_progress : called with the number of documents done since the last call
    clock : seconds
    """
    n_documents = sum(map(len, lists))
    found = {}
    for n_layers in layers:
        reranker = reranker_of(n_layers)
        start = clock()
        ranked = reranker.rerank_many([query.text for query in queries], lists, on_progress=on_progress)
        seconds = clock() - start
        run: Run = {
            query.qid: Ranking([item.docid for item in items], reciprocal_scores(len(items)))
            for query, items in zip(queries, ranked, strict=True)
        }
        found[n_layers] = LayerResult(n_documents / seconds, evaluate(run, qrels, measures).means)
    return found


def length_rates(
    reranker: CedrReranker,
    lengths: Sequence[int],
    least_seconds: float = 1.0,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[int, float]:
    """Documents scored per second by document length in wordpieces (CEDR Figure 2a).

    Documents are random wordpieces, and the time is the model's, without tokenisation. A document that is longer than
    the reranker reads is cut, and counts under its full length.

    Parameters
    ----------
    least_seconds : for which each length is measured, at least
    clock : seconds
    """
    rates = {}
    for length in lengths:
        pairs = _random_pairs(reranker, length)
        reranker.score_pairs(pairs)
        done, seconds = 0, 0.0
        start = clock()
        while done == 0 or seconds < least_seconds:
            reranker.score_pairs(pairs)
            done += len(pairs)
            seconds = clock() - start
        rates[length] = done / seconds
    return rates


def _random_pairs(reranker: CedrReranker, length: int) -> list[Pair]:
    generator = random.Random(length)
    vocabulary = range(reranker.tokenizer.vocab_size)
    n = max(_LEAST_DOCUMENTS, reranker.token_budget // (length + _QUERY_LENGTH))
    drawn = [generator.choices(vocabulary, k=_QUERY_LENGTH + length) for _ in range(n)]
    return [reranker.layout.cut(ids[:_QUERY_LENGTH], ids[_QUERY_LENGTH:]) for ids in drawn]


def by_measure(found: Mapping[str, Mapping[int, LayerResult]]) -> dict[str, dict[str, dict[int, float]]]:
    """Panels for `plot_lines`: each measure, then 'documents/s' -> model -> layers -> value."""
    names = list(next(iter(next(iter(found.values())).values())).means)
    panels = {
        name: {model: {n: result.means[name] for n, result in curve.items()} for model, curve in found.items()}
        for name in names
    }
    rates = {model: {n: result.documents_per_second for n, result in curve.items()} for model, curve in found.items()}
    return {**panels, 'documents/s': rates}
