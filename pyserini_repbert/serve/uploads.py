"""Runs and judgments that clients send, as text of a run file or as JSON: fused and evaluated."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import Evaluation, evaluate, parse_measures
from pyserini_repbert.evaluate.significance import compare
from pyserini_repbert.formats.identifiers import identifier_problem
from pyserini_repbert.formats.runs import read_run
from pyserini_repbert.formats.topics import Qrels, read_qrels
from pyserini_repbert.fusion.interleaving import provenance
from pyserini_repbert.fusion.methods import ALPHA, RRF_K, fuse
from pyserini_repbert.ranking import NO_HITS, Ranking, Run, by_score
from pyserini_repbert.serve.settings import Limits

_RUNS = 10


def named_runs(sent: Sequence[Mapping[str, Any]], limits: Limits) -> dict[str, Run]:
    """Runs by name, from objects with 'name' and either 'text' (a run file's) or 'rankings' (hits by qid).

    Raises
    ------
    InputError
        for a malformed line or hit, two runs of a name, or more than ten runs
    """
    if not 1 <= len(sent) <= _RUNS:
        raise InputError(f'{len(sent)} runs were given, expected 1 to {_RUNS}')
    found: dict[str, Run] = {}
    for number, own in enumerate(sent, 1):
        name = str(own.get('name') or f'run {number}')
        text, rankings = own.get('text'), own.get('rankings')
        if name in found:
            raise InputError(f"two runs have the name '{name}': tell them apart")
        if (text is None) == (rankings is None):
            raise InputError(f"run '{name}': give either its text, or its rankings")
        found[name] = _from_text(name, text) if text is not None else _from_hits(name, rankings or {})
        deepest = max((len(ranking) for ranking in found[name].values()), default=0)
        if deepest > limits.hits:
            raise InputError(f"run '{name}' has {deepest:,} hits for a query, at most {limits.hits:,} are taken")
    return found


def _from_text(name: str, text: str) -> Run:
    found: Run = _read(text, name, read_run)
    return found


def _read(text: str, name: str, read: Any) -> Any:
    """A text read by a reader of files; its errors name `name` instead of a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'sent'
        path.write_bytes(text.encode('utf-8', 'surrogatepass'))
        try:
            return read(path)
        except InputError as error:
            raise InputError(str(error).replace(str(path), name)) from error


def _from_hits(name: str, rankings: Mapping[str, Sequence[Mapping[str, Any]]]) -> Run:
    run: Run = {}
    for qid, hits in rankings.items():
        docids, scores = [str(hit['docid']) for hit in hits], [float(hit['score']) for hit in hits]
        for identifier in (qid, *docids):
            if problem := identifier_problem(identifier):
                raise InputError(f"run '{name}': identifier {identifier[:60]!r} {problem}")
        if len(set(docids)) < len(docids):
            raise InputError(f"run '{name}', query '{qid}': a docid comes twice")
        if not all(map(math.isfinite, scores)):
            raise InputError(f"run '{name}', query '{qid}': a score is not a finite number")
        run[qid] = by_score(docids, scores)
    return run


def fused(
    runs: Mapping[str, Run], method: str, hits: int, alpha: float | None, rrf_k: float | None, with_provenance: bool
) -> dict[str, Any]:
    """The rankings of the fused run, hits by qid, each with its rank and score in every run where that is asked for."""
    inputs = list(runs.values())
    run = fuse(inputs, method, hits, ALPHA if alpha is None else alpha, RRF_K if rrf_k is None else rrf_k)
    rankings: dict[str, list[dict[str, Any]]] = {}
    for qid, ranking in run.items():
        own = [part.get(qid, NO_HITS) for part in inputs]
        places = provenance([part.docids for part in own], ranking.docids)
        rankings[qid] = []
        for rank, (hit, ranks) in enumerate(zip(ranking, places, strict=True), 1):
            entry: dict[str, Any] = {'docid': hit.docid, 'score': hit.score, 'rank': rank}
            if with_provenance:
                entry['provenance'] = [
                    {'ranking': name, 'rank': place, 'score': None if place is None else part.scores[place - 1]}
                    for name, part, place in zip(runs, own, ranks, strict=True)
                ]
            rankings[qid].append(entry)
    return {'method': method, 'runs': list(runs), 'rankings': rankings}


def judgments(text: str) -> Qrels:
    """Qrels from the text of a file. Raises InputError for a malformed line."""
    found: Qrels = _read(text, 'qrels', read_qrels)
    return found


def evaluated(
    runs: Mapping[str, Run], qrels: Qrels, measures: Sequence[str], texts: Mapping[str, str], show: int
) -> dict[str, Any]:
    """The runs' measures, the tests of each against the first, and topics, those with the largest differences first.

    Parameters
    ----------
    texts : of topics by qid, where they are known
    show : how many hits of each ranking go with a topic
    """
    chosen = parse_measures(measures)
    found = {name: evaluate(run, qrels, chosen) for name, run in runs.items()}
    baseline, *others = found
    tests = []
    if len(qrels) > 1:
        tests = [
            {'run': name, **_finite(test._asdict())}
            for name in others
            for test in compare(found[baseline], found[name])
        ]
    return {
        'judged_topics': len(qrels),
        'measures': [one.name for one in chosen],
        'baseline': baseline,
        'runs': [
            {'run': name, 'means': own.means, 'topics_without_hits': len(own.without_hits)}
            for name, own in found.items()
        ],
        'comparisons': tests,
        'topics': _topics(runs, found, qrels, texts, show),
    }


def _topics(
    runs: Mapping[str, Run], found: Mapping[str, Evaluation], qrels: Qrels, texts: Mapping[str, str], show: int
) -> list[dict[str, Any]]:
    baseline, *others = found
    first = next(iter(found[baseline].values))
    topics: list[dict[str, Any]] = []
    for qid, grades in qrels.items():
        values = {name: {key: own[qid] for key, own in ev.values.items()} for name, ev in found.items()}
        difference = max((values[name][first] - values[baseline][first] for name in others), key=abs, default=0.0)
        topic: dict[str, Any] = {
            'qid': qid,
            'text': texts.get(qid),
            'values': values,
            'difference': difference,
            'relevant': sum(grade > 0 for grade in grades.values()),
        }
        if show:
            topic['rankings'] = {name: _shown(run.get(qid, NO_HITS)[:show], grades) for name, run in runs.items()}
        topics.append(topic)
    return sorted(topics, key=lambda topic: -abs(topic['difference']))


def _shown(ranking: Ranking, grades: Mapping[str, int]) -> list[dict[str, Any]]:
    return [{'docid': hit.docid, 'score': hit.score, 'grade': grades.get(hit.docid)} for hit in ranking]


def _finite(values: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no infinity: a difference that is the same in all topics has no t."""
    return {key: None if isinstance(own, float) and not math.isfinite(own) else own for key, own in values.items()}
