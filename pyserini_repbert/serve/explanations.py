"""Why a hit is where it is, as JSON values: term contributions, similarity maps, pair matrices, scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pyserini_repbert.errors import InputError
from pyserini_repbert.explain.epic import explain_text
from pyserini_repbert.ranking import Query, Ranking
from pyserini_repbert.rerank.aggregation import Aggregation
from pyserini_repbert.rerank.base import Reranker, ordered
from pyserini_repbert.serve.rerankers import RememberingDuoBert, Rerankers
from pyserini_repbert.trace import Notes, Trace

_DIGITS = 6
SAMPLES = 3  # m of the method 'sample' in a pair matrix


def explanation(
    rerankers: Rerankers, name: str, query: str, hits: Ranking, options: Mapping[str, Any], trace: Trace
) -> dict[str, Any]:
    """How a reranker explains hits with texts. Only in the queue of the rerankers.

    Parameters
    ----------
    options : 'top' expansions of EPIC; 'layers' of CEDR's maps; 'samples' and 'seed' of duoBERT's method 'sample'

    Returns
    -------
    an object with 'model', 'system' and 'query'; for 'epic' and 'cedr' also 'passages', one entry a hit; for 'duobert'
    and 'monobert' also 'docids', 'probabilities' and 'inferences', the model inputs that it took, with 'methods' and
    'samples' or 'scores' and 'histogram'
    """
    system = rerankers.system(name)
    trace.begins(name, 0, 'inputs')
    trace.advance(0)
    head: dict[str, Any] = {'model': name, 'system': system, 'query': query}
    if system == 'duobert':
        return head | _pairs(rerankers.opened(name), query, hits, options, trace)
    if system == 'monobert':
        return head | _scores(rerankers.opened(name), query, hits, trace)
    if system == 'epic':
        reranker = rerankers.opened(name)
        top = int(options.get('top', 10))
        passages = [explain_text(reranker.encoder, query, hit.text or '', top).as_json() for hit in hits]
    elif system == 'own':
        raise InputError(f"reranker '{name}' explains nothing: ask for EPIC, CEDR, duoBERT or monoBERT")
    else:
        passages = [_maps(rerankers.similarity_model(name), query, hit.text or '', options) for hit in hits]
    return head | {'passages': [{'docid': hit.docid} | passage for hit, passage in zip(hits, passages, strict=True)]}


def _maps(model: Any, query: str, text: str, options: Mapping[str, Any]) -> dict[str, Any]:
    last = model.config.num_hidden_layers
    maps = model.maps(query, text, list(options.get('layers') or [last]))
    return {
        'n_layers': last,
        'query_tokens': maps[0].query,
        'passage_tokens': maps[0].passage,
        'maps': [
            {'layer': heat_map.layer, 'values': np.round(heat_map.values.astype(float), 4).tolist()}
            for heat_map in maps
        ],
    }


def _pairs(
    duo: RememberingDuoBert, query: str, hits: Ranking, options: Mapping[str, Any], trace: Trace
) -> dict[str, Any]:
    duo.check(query, hits)
    notes = Notes(trace)
    with duo.counted([hits], notes) as counting:
        (differences,) = counting.pair_differences([query], [hits], on_progress=trace.advance)
    probabilities = np.round(1 / (1 + np.exp(-differences)), _DIGITS).tolist()
    for place, row in enumerate(probabilities):
        row[place] = None  # no passage is compared with itself
    samples, seed = min(int(options.get('samples', SAMPLES)), max(len(hits) - 1, 1)), int(options.get('seed', 0))
    methods = {}
    for method in Aggregation:
        sampled = samples if method is Aggregation.SAMPLE else None
        scores = duo.with_settings(method=method, samples=sampled, seed=seed).aggregated(query, differences)
        methods[str(method)] = {'scores': _rounded(scores), 'order': list(ordered(hits, scores).docids)}
    return {
        'docids': list(hits.docids),
        'probabilities': probabilities,
        'methods': methods,
        'samples': samples,
        'inferences': notes.cost.inferences if notes.cost else 0,
    }


def _scores(reranker: Reranker, query: str, hits: Ranking, trace: Trace) -> dict[str, Any]:
    ranking = reranker.rank([Query('0', query)], {'0': hits}, None, trace)['0']
    by_docid = dict(zip(ranking.docids, ranking.scores, strict=True))
    scores = np.array([by_docid[docid] for docid in hits.docids])
    counts, edges = np.histogram(scores, bins=min(20, max(len(scores), 1)))
    return {
        'docids': list(hits.docids),
        'scores': _rounded(scores),
        'probabilities': _rounded(np.exp(scores)),
        'histogram': {'counts': counts.tolist(), 'edges': _rounded(edges)},
        'inferences': reranker.inferences(len(hits)),
    }


def _rounded(values: Any) -> list[float]:
    rounded: list[float] = np.round(np.asarray(values, dtype=float), _DIGITS).tolist()
    return rounded


def layers(text: str) -> Sequence[int]:
    """The layers in '12' or '0,6,12'. Raises InputError for another form."""
    parts = [part.strip() for part in text.split(',')]
    if not all(part.isascii() and part.isdigit() and len(part) <= 3 for part in parts):
        raise InputError(f"layers '{text[:40]}': whole numbers with commas were expected, '0,6' say")
    return [int(part) for part in parts]
