"""Why a reranker scores passages as it does, as JSON values, and why a hit is at its rank, in a
line.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from pathlib import Path
from typing import Any

import numpy as np

from pyserini_repbert.errors import InputError
from pyserini_repbert.explain.evidence import explain_indexed, explain_text, similarity_maps
from pyserini_repbert.fusion.interleaving import provenance
from pyserini_repbert.ranking import Candidate, Query, Ranking
from pyserini_repbert.rerank.aggregation import Aggregation
from pyserini_repbert.rerank.base import Reranker, rescored
from pyserini_repbert.rerank.cedr import CedrReranker
from pyserini_repbert.rerank.cross_encoder import MonoBertReranker
from pyserini_repbert.rerank.duobert import DuoBertReranker
from pyserini_repbert.rerank.epic import EpicReranker
from pyserini_repbert.rerank.sentence import SentenceCrossEncoderReranker
from pyserini_repbert.trace import SILENT, Notes, Trace

_DIGITS = 6
_WORDS = 5  # query terms in a line
SAMPLES = 3  # m of the method 'sample' in a pair matrix


def explanation(
    reranker: Reranker,
    query: str,
    hits: Ranking,
    top: int = 10,
    layers: Sequence[int] = (),
    samples: int = SAMPLES,
    seed: int = 0,
    trace: Trace = SILENT,
) -> dict[str, Any]:
    """Why a reranker of one of the papers scores hits as it does, as values of JSON.

    All have 'model', 'system' and 'query'; those of EPIC and CEDR 'passages', one entry a hit;
    those of duoBERT and monoBERT 'docids', 'probabilities' and 'inferences', the model inputs that
    it took.

    Parameters
    ----------
    hits : with texts; EPIC explains the stored vector of a hit that its index has, with or without
        text
    top : expansion terms of EPIC
    layers : of CEDR's maps, 0 for the embeddings; none: the last
    samples, seed : of duoBERT's method 'sample'
    """
    name = Path(reranker.name).name
    trace.begins(name, 0, 'inputs')
    trace.advance(0)
    reranker.check(query, hits)
    if isinstance(reranker, DuoBertReranker):
        system = 'duobert'
        values = _pairs(reranker, query, hits, samples, seed, trace)
    elif isinstance(reranker, MonoBertReranker | SentenceCrossEncoderReranker):
        system = 'monobert'
        values = _scores(reranker, query, hits, trace)
    elif isinstance(reranker, EpicReranker):
        system = 'epic'
        values = {'passages': [_weights(reranker, query, hit, top) for hit in hits]}
    elif isinstance(reranker, CedrReranker):
        system = 'cedr'
        values = {'passages': [_maps(reranker, query, hit, layers) for hit in hits]}
    else:
        raise InputError(
            f"reranker '{name}' explains nothing: ask for EPIC, CEDR, duoBERT or monoBERT"
        )
    return {'model': name, 'system': system, 'query': query, **values}


def _weights(reranker: EpicReranker, query: str, hit: Candidate, top: int) -> dict[str, Any]:
    index = reranker.index
    if index is not None and (hit.text is None or index.rows([hit.docid])[0] >= 0):
        explained = explain_indexed(reranker.encoder, index, query, hit.docid, hit.text, top)
    else:
        explained = explain_text(reranker.encoder, query, hit.text or '', top, reranker.prune)
    return {'docid': hit.docid, **explained}


def _maps(
    reranker: CedrReranker, query: str, hit: Candidate, layers: Sequence[int]
) -> dict[str, Any]:
    maps = similarity_maps(reranker, query, hit.text or '', layers or [reranker.n_layers])
    return {
        'docid': hit.docid,
        'n_layers': reranker.n_layers,
        'query_tokens': maps[0].query,
        'passage_tokens': maps[0].passage,
        'maps': [
            {'layer': one.layer, 'values': np.round(one.values.astype(float), 4).tolist()}
            for one in maps
        ],
    }


def _pairs(
    duo: DuoBertReranker, query: str, hits: Ranking, samples: int, seed: int, trace: Trace
) -> dict[str, Any]:
    notes = Notes(trace)
    with duo.counted([hits], notes) as counting:
        (differences,) = counting.pair_differences([query], [hits], on_progress=trace.advance)
    probabilities = np.round(1 / (1 + np.exp(-differences)), _DIGITS).tolist()
    for place, row in enumerate(probabilities):
        row[place] = None  # no passage is compared with itself
    samples = min(samples, max(len(hits) - 1, 1))
    methods = {}
    for method in Aggregation:
        sampled = samples if method is Aggregation.SAMPLE else None
        scores = duo.with_settings(method=method, samples=sampled, seed=seed).aggregated(
            query, differences
        )
        methods[str(method)] = {
            'scores': _rounded(scores),
            'order': list(rescored(hits, scores).docids),
        }
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
    is_log = isinstance(reranker, MonoBertReranker)  # of a probability; others give logits
    return {
        'docids': list(hits.docids),
        'scores': _rounded(scores),
        'probabilities': _rounded(np.exp(scores) if is_log else 1 / (1 + np.exp(-scores))),
        'inferences': reranker.inferences(len(hits)),
    }


def _rounded(values: Any) -> list[float]:
    rounded: list[float] = np.round(np.asarray(values, dtype=float), _DIGITS).tolist()
    return rounded


def hit_reasons(
    query: str,
    hits: Ranking,
    names: Sequence[str],
    inputs: Sequence[Ranking],
    reranker: Reranker | None = None,
    depth: int | None = None,
) -> list[list[str]]:
    """The reasons for each hit, as lines: its rank in each first stage, '-' where it lacks the hit;
    and a reranker's.

    `inputs` are the rankings of the first stages, each with at most `depth` hits. `reranker` is the
    last one, which read its first hits.
    """
    origins = provenance([ranking.docids for ranking in inputs], hits.docids)
    absent = ['-' if depth is None or len(ranking) < depth else f'>{depth}' for ranking in inputs]
    reasons = []
    for place, (hit, known) in enumerate(zip(hits, origins, strict=True)):
        ranks = [
            f'{name} {rank or other}'
            for name, rank, other in zip(names, known, absent, strict=True)
        ]
        reasons.append([f'ranks: {", ".join(ranks)}'])
        if (
            reranker
            and place < reranker.reads
            and hit.text is not None
            and (why := reason_of(reranker, query, hit))
        ):
            reasons[-1].append(f'why: {why}')
    return reasons


def reason_of(reranker: Reranker, query: str, hit: Candidate) -> str:
    """Why a reranker gives a hit with a text its score, in a line."""
    if isinstance(reranker, EpicReranker):
        shares = explain_text(reranker.encoder, query, str(hit.text))['contributions'][:_WORDS]
        positive = [share for share in shares if share['contribution'] > 0]
        return ' + '.join(f'{share["term"]} {share["contribution"]:.2f}' for share in positive)
    if isinstance(reranker, CedrReranker):
        if not all(reranker.tokenizer.ids([query, str(hit.text)])):
            return ''
        (last,) = similarity_maps(reranker, query, str(hit.text), [reranker.n_layers])
        best = [matches[0] for matches in last.best_matches(1)]
        pairs = sorted(zip(last.query, best, strict=True), key=lambda pair: -pair[1][2])[:_WORDS]
        return ', '.join(f'{word}~{match} {value:.2f}' for word, (match, _, value) in pairs)
    if isinstance(reranker, SentenceCrossEncoderReranker):
        return f'scored {hit.score:.4f} by the model, which is no probability'
    if isinstance(reranker, MonoBertReranker):
        return f'relevant with p = {exp(min(hit.score, 0.0)):.4f}'
    return f'{hit.score:.4f} from comparisons with the others'
