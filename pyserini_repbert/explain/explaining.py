"""Why a reranker scores passages as it does, as JSON values, and why a hit is at its rank, in a
line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyserini_repbert.fusion.interleaving import provenance
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.rerank.base import ExplanationSettings, Reranker
from pyserini_repbert.trace import SILENT, Trace

SAMPLES = ExplanationSettings.samples


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
    """Why a reranker scores hits as it does, as values of JSON.

    All have 'model', 'system' and 'query'; those of EPIC and CEDR 'passages', one entry a hit;
    those of other rerankers 'docids' and 'inferences', the model inputs that it took, with
    'probabilities' (duoBERT, monoBERT), or 'scores' (others) and perhaps 'tables'
    (`Reranker.explain`). Of documents, 'excerpts' says which passage of each is explained.

    Parameters
    ----------
    reranker : of a paper, or your own
    query : its text
    hits : with texts; EPIC explains the stored vector of a hit that its index has, with or without
        text
    top : expansion terms of EPIC
    layers : of CEDR's maps, 0 for the embeddings; none: the last
    samples, seed : of duoBERT's method 'sample'
    trace : gets the progress, in model inputs
    """
    name = Path(reranker.name).name
    trace.begins(name, 0, 'inputs')
    trace.advance(0)
    reranker.check(query, hits)
    settings = ExplanationSettings(top=top, layers=layers, samples=samples, seed=seed)
    values = reranker.explain(query, hits, settings, trace)
    explained = {'model': name, 'system': values.pop('system'), 'query': query, **values}
    if any(hits.excerpts):
        explained['excerpts'] = [_excerpt_values(hit) for hit in hits if hit.excerpts]
    return explained


def _excerpt_values(hit: Candidate) -> dict[str, Any]:
    """Which passage of a document is explained."""
    passage = hit.excerpts[0]
    return {
        'docid': hit.docid,
        'number': passage.number,
        'start': passage.start,
        'end': passage.end,
    }


def hit_reasons(
    query: str,
    hits: Ranking,
    names: Sequence[str],
    inputs: Sequence[Ranking],
    reranker: Reranker | None = None,
    depth: int | None = None,
    stage_reasons: Mapping[str, str] | None = None,
) -> list[list[str]]:
    """The reasons for each hit, as lines: its rank in each first stage, '-' where it lacks the hit;
    what else a first stage says of it; and a reranker's.

    Parameters
    ----------
    query : its text
    hits : the answer
    names, inputs : the first stages and their rankings
    reranker : the last one, which read its first hits
    depth : the most hits that a first stage gave
    stage_reasons : what first stages say of hits, by docid (`Ranker.reasons`)
    """
    origins = provenance([ranking.docids for ranking in inputs], hits.docids)
    reasons = []
    for position, (hit, ranks) in enumerate(zip(hits, origins, strict=True)):
        shown = []
        for name, rank, ranking in zip(names, ranks, inputs, strict=True):
            shown.append(f'{name} {rank or _absent(ranking, depth)}')
        lines = [f'ranks: {", ".join(shown)}', *_first_stage_lines(hit, stage_reasons or {})]
        if reranker and position < reranker.reads and hit.text is not None:
            reason = reranker.reason(query, hit)
            if reason:
                lines.append(f'why: {reason}')
        reasons.append(lines)
    return reasons


def _first_stage_lines(hit: Candidate, stage_reasons: Mapping[str, str]) -> list[str]:
    """Which passage decided, and what first stages say, of a hit of which that is known."""
    lines = []
    if hit.excerpts:
        passage = hit.excerpts[0]
        lines.append(excerpt_line(passage.number, passage.start, passage.end))
    lines += stage_reasons.get(hit.docid, '').splitlines()
    return lines


def excerpt_line(number: int, start: int, end: int) -> str:
    """Which passage of a document decided, in a line, by its number and its characters."""
    return f'passage: {number} (characters {start} to {end})'


def _absent(ranking: Ranking, depth: int | None) -> str:
    """What stands for the rank of a hit that a ranking lacks: it may be below the depth."""
    if depth is None or len(ranking) < depth:
        return '-'
    return f'>{depth}'
