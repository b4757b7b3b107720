"""Why a hit is where it is, as JSON values: term contributions, similarity maps, pair matrices, scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyserini_repbert.errors import InputError
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.rerank.aggregation import Aggregation
from pyserini_repbert.rerank.base import ordered
from pyserini_repbert.serve.rerankers import RememberingDuoBert, Rerankers

if TYPE_CHECKING:
    from pyserini_repbert.rerank.base import Progress

_DIGITS = 6
SAMPLES = 3  # m of the method 'sample' in a pair matrix


def explanation(
    rerankers: Rerankers,
    name: str,
    query: str,
    hits: Ranking,
    options: Mapping[str, Any],
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """How a reranker explains hits with texts. Only in the rerank lane.

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
    head: dict[str, Any] = {'model': name, 'system': system, 'query': query}
    if system in ('epic', 'cedr'):
        explained = _epic if system == 'epic' else _maps
        passages = [{'docid': hit.docid} | explained(rerankers, name, query, hit.text or '', options) for hit in hits]
        return head | {'passages': passages}
    if system == 'duobert':
        return head | _pairs(rerankers, name, query, hits, options, on_progress)
    return head | _scores(rerankers, name, query, hits, on_progress)


def _epic(rerankers: Rerankers, name: str, query: str, text: str, options: Mapping[str, Any]) -> dict[str, Any]:
    from pyserini_repbert.explain.epic import explain_text

    reranker: Any = rerankers.opened(name)
    return explain_text(reranker.encoder, query, text, int(options.get('top', 10))).as_json()


def _maps(rerankers: Rerankers, name: str, query: str, text: str, options: Mapping[str, Any]) -> dict[str, Any]:
    model = rerankers.similarity_model(name)
    last = model.config.num_hidden_layers
    maps = model.maps(query, text, list(options.get('layers') or [last]))
    return {
        'n_layers': last,
        'query_tokens': maps[0].query,
        'passage_tokens': maps[0].passage,
        'maps': [{'layer': own.layer, 'values': np.round(own.values.astype(float), 4).tolist()} for own in maps],
    }


def _pairs(
    rerankers: Rerankers, name: str, query: str, hits: Ranking, options: Mapping[str, Any], on_progress: Progress | None
) -> dict[str, Any]:
    reranker = rerankers.opened(name)
    if not isinstance(reranker, RememberingDuoBert):
        raise InputError(f"'{name}' compares no pairs")
    reranker.check(query, hits)
    before = reranker.work.inferences
    differences = reranker.with_options({}).differences(query, hits, on_progress)
    probabilities = 1 / (1 + np.exp(-differences))
    samples, seed = min(int(options.get('samples', SAMPLES)), max(len(hits) - 1, 1)), int(options.get('seed', 0))
    methods = {}
    for method in Aggregation:
        chosen = {'method': method} | ({'samples': samples, 'seed': seed} if method is Aggregation.SAMPLE else {})
        scores = reranker.with_options(chosen).reranker.aggregated(query, differences)
        methods[str(method)] = {'scores': _rounded(scores), 'order': list(ordered(hits, scores).docids)}
    return {
        'docids': list(hits.docids),
        'probabilities': [
            [None if i == j else own for j, own in enumerate(row)]
            for i, row in enumerate(np.round(probabilities, _DIGITS).tolist())
        ],
        'methods': methods,
        'samples': samples,
        'inferences': reranker.work.inferences - before,
    }


def _scores(rerankers: Rerankers, name: str, query: str, hits: Ranking, on_progress: Progress | None) -> dict[str, Any]:
    reranker = rerankers.opened(name)
    reranker.check(query, hits)
    (scores,) = reranker.score_lists([query], [hits], on_progress)
    counts, edges = np.histogram(scores, bins=min(20, max(len(scores), 1)))
    return {
        'docids': list(hits.docids),
        'scores': _rounded(scores),
        'probabilities': _rounded(np.exp(scores)),
        'histogram': {'counts': counts.tolist(), 'edges': _rounded(edges)},
        'inferences': reranker.inferences(len(hits)),
    }


def _rounded(values: Any) -> list[float]:
    found: list[float] = np.round(np.asarray(values, dtype=float), _DIGITS).tolist()
    return found


def layers(text: str) -> Sequence[int]:
    """The layers in '12' or '0,6,12'. Raises InputError for another form."""
    parts = [part.strip() for part in text.split(',')]
    if not all(part.isascii() and part.isdigit() and len(part) <= 3 for part in parts):
        raise InputError(f"layers '{text[:40]}': whole numbers with commas were expected, '0,6' say")
    return [int(part) for part in parts]
