"""Why a reranker scores passages as it does, as JSON values, and why a hit is at its rank, in a
line.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyserini_repbert.fusion.interleaving import provenance
from pyserini_repbert.ranking import REASON_TERMS, Candidate, Ranker, Ranking, Reason, ReasonKind
from pyserini_repbert.rerank.base import ExplanationSettings, Reranker
from pyserini_repbert.trace import SILENT, Trace

SAMPLES = ExplanationSettings.samples
# Means the rankings of a collection that answer if none is named.
RANKINGS = 'rankings'
_LONGEST_LINE = 100  # characters of a sentence that a line shows
_MOST_WORDS = 20  # of a reason, as values of JSON
_LEAST_SHOWN = 0.005  # of a weight, which has two decimals in a line


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

    All have 'model', 'system' and 'query'. EPIC's and CEDR's have 'passages', one entry for each
    hit; other rerankers' have 'docids' and 'inferences', the model inputs that it took, with
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


def explain_rankings(
    name: str, rankers: Sequence[Ranker], query: str, hits: Ranking
) -> dict[str, Any]:
    """Why rankings of a collection have documents where they do, as values of JSON.

    Parameters
    ----------
    name : of the ranker to explain
    rankers : those that ranked
    query : its text
    hits : the documents, with their best passages
    """
    reasons = []
    for ranker in rankers:
        told = ranker.reasons(query, hits.docids)
        for docid in hits.docids:
            reasons += [reason_values(docid, own) for own in told.get(docid, ())]
    return {
        'model': name,
        'system': RANKINGS,
        'query': query,
        'docids': list(hits.docids),
        'reasons': reasons,
        'excerpts': [_excerpt_values(hit) for hit in hits if hit.excerpts],
    }


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
    first_stage: Mapping[str, Sequence[Reason]] | None = None,
) -> list[list[str]]:
    """The reasons for each hit, as lines: its rank in each first stage, or that it lacks the hit;
    what the first stages tell of it; and a reranker's.

    Parameters
    ----------
    query : its text
    hits : the answer
    names, inputs : the first stages and their rankings
    reranker : the last one, which read its first hits
    depth : the most hits that a first stage gave
    first_stage : what the first stages tell of a hit, by docid (`Ranker.reasons`)
    """
    origins = provenance([ranking.docids for ranking in inputs], hits.docids)
    reasons = []
    for position, (hit, ranks) in enumerate(zip(hits, origins, strict=True)):
        shown = []
        for name, rank, ranking in zip(names, ranks, inputs, strict=True):
            shown.append(f'{name} {rank}' if rank else _absent(name, ranking, depth))
        lines = [f'ranks: {", ".join(shown)}', *_passage_line(hit)]
        for told in (first_stage or {}).get(hit.docid, ()):
            lines += _reason_lines(told)
        if reranker and position < reranker.reads and hit.text is not None:
            reason = reranker.reason(query, hit)
            if reason:
                lines.append(f'why: {reason}')
        reasons.append(lines)
    return reasons


def _passage_line(hit: Candidate) -> list[str]:
    """Which passage decided, of a hit that has some."""
    if not hit.excerpts:
        return []
    passage = hit.excerpts[0]
    return [excerpt_line(passage.number, passage.start, passage.end)]


def _reason_lines(told: Reason) -> list[str]:
    """What a ranking tells of a hit, in a line, or two of a sentence and its words."""
    most = None if told.kind is ReasonKind.TOKENS else REASON_TERMS
    words = [own for own in told.words[:most] if own.weight >= _LEAST_SHOWN]
    if told.kind is not ReasonKind.SENTENCE:
        if not words:
            return []
        return [f'{told.kind}: {" + ".join(f"{own.word} {own.weight:.2f}" for own in words)}']
    lines = [f'sentence: {textwrap.shorten(told.sentence, _LONGEST_LINE, placeholder=" …")}']
    if words:
        without = ', '.join(f'{own.word} -{own.weight:.2f}' for own in words)
        lines.append(f'without: {without}')
    return lines


def reason_values(docid: str, told: Reason) -> dict[str, Any]:
    """What a ranking tells of a document, as values of JSON."""
    values: dict[str, Any] = {
        'docid': docid,
        'kind': str(told.kind),
        'ranking': told.ranking,
        'words': [{'word': own.word, 'weight': own.weight} for own in told.words[:_MOST_WORDS]],
    }
    if told.kind is ReasonKind.SENTENCE:
        values |= {'sentence': told.sentence, 'start': told.start, 'end': told.end}
    return values


def excerpt_line(number: int, start: int, end: int) -> str:
    """Which passage of a document decided, in a line, by its number and its characters."""
    return f'passage {number + 1} of the document, characters {start} to {end}'


def _absent(name: str, ranking: Ranking, depth: int | None) -> str:
    """The text for a hit that a ranking lacks: it may be below the depth."""
    if depth is None or len(ranking) < depth:
        return f'not in {name}'
    return f'{name} below {depth}'
