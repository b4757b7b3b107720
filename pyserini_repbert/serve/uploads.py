"""Runs and judgments that clients send, as the text of a file or as JSON: read, fused and evaluated."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pyserini_repbert.data.identifiers import identifier_problem
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.data.topics import Qrels, read_qrels
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import Evaluation, evaluate, parse_measures
from pyserini_repbert.evaluate.significance import compare
from pyserini_repbert.fusion.interleaving import provenance
from pyserini_repbert.fusion.methods import ALPHA, RRF_K, fuse
from pyserini_repbert.ranking import NO_HITS, Ranking, Run, by_score
from pyserini_repbert.serve.schemas.runs import SentHit, SentRun
from pyserini_repbert.serve.settings import Limits

_Read = TypeVar('_Read')


def named_runs(sent: Sequence[SentRun], limits: Limits) -> dict[str, Run]:
    """Runs by name; one without a name is 'run N', N from 1.

    Raises InputError for a malformed line or hit, a docid twice in a ranking, too many hits for a query, two runs with
    one name, and a run with both text and rankings or with neither.
    """
    found: dict[str, Run] = {}
    for number, own in enumerate(sent, 1):
        name = own.name or f'run {number}'
        if name in found:
            raise InputError(f"two runs have the name '{name}': tell them apart")
        if (own.text is None) == (own.rankings is None):
            raise InputError(f"run '{name}': give either its text, or its rankings")
        found[name] = _from_hits(name, own.rankings or {}) if own.text is None else _read(own.text, name, read_run)
        deepest = max((len(ranking) for ranking in found[name].values()), default=0)
        if deepest > limits.hits:
            raise InputError(f"run '{name}' has {deepest:,} hits for a query, at most {limits.hits:,} are taken")
    return found


def _read(text: str, name: str, read: Callable[[Path], _Read]) -> _Read:
    """Read a text with a reader of files, whose errors then name `name` instead of the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'sent'
        path.write_bytes(text.encode('utf-8', 'surrogatepass'))
        try:
            return read(path)
        except InputError as error:
            raise InputError(str(error).replace(str(path), name)) from error


def _from_hits(name: str, rankings: Mapping[str, Sequence[SentHit]]) -> Run:
    run: Run = {}
    for qid, hits in rankings.items():
        docids = [hit.docid for hit in hits]
        for identifier in (qid, *docids):
            if problem := identifier_problem(identifier):
                raise InputError(f"run '{name}': identifier {identifier[:60]!r} {problem}")
        if len(set(docids)) < len(docids):
            raise InputError(f"run '{name}', query '{qid}': a docid comes twice")
        run[qid] = by_score(docids, [hit.score for hit in hits])
    return run


def fused(
    runs: Mapping[str, Run], method: str, hits: int, alpha: float | None, rrf_k: float | None, with_provenance: bool
) -> dict[str, Any]:
    """The body of the answer to a fusion: hits by qid.

    `with_provenance` adds each hit's rank and score in every run. Raises what `fusion.fuse` raises.
    """
    inputs = list(runs.values())
    run = fuse(inputs, method, hits, ALPHA if alpha is None else alpha, RRF_K if rrf_k is None else rrf_k)
    rankings: dict[str, list[dict[str, Any]]] = {}
    for qid, ranking in run.items():
        own = [part.get(qid, NO_HITS) for part in inputs]
        places = provenance([part.docids for part in own], ranking.docids)
        entries = rankings[qid] = []
        for rank, (hit, ranks) in enumerate(zip(ranking, places, strict=True), 1):
            entry: dict[str, Any] = {'docid': hit.docid, 'score': hit.score, 'rank': rank}
            if with_provenance:
                entry['provenance'] = [
                    {'ranking': name, 'rank': place, 'score': None if place is None else part.scores[place - 1]}
                    for name, part, place in zip(runs, own, ranks, strict=True)
                ]
            entries.append(entry)
    return {'method': method, 'runs': list(runs), 'rankings': rankings}


def judgments(text: str) -> Qrels:
    """Qrels from the text of a file. Raises InputError for a malformed line."""
    return _read(text, 'qrels', read_qrels)


def evaluated(
    runs: Mapping[str, Run], qrels: Qrels, measures: Sequence[str], texts: Mapping[str, str], show: int
) -> dict[str, Any]:
    """The body of the answer to an evaluation: means, paired tests against the first run, and topics.

    Topics come by the difference of the first measure, the largest first.

    Parameters
    ----------
    texts : text of topics by qid, where it is known
    show : how many hits of each ranking go with a topic

    Raises
    ------
    UnknownNameError, InputError
        for a measure that `parse_measures` refuses
    """
    chosen = parse_measures(measures)
    found = {name: evaluate(run, qrels, chosen) for name, run in runs.items()}
    baseline, *others = found
    compared = others if len(qrels) > 1 else []
    tests = [(name, test) for name in compared for test in compare(found[baseline], found[name])]
    return {
        'judged_topics': len(qrels),
        'measures': [one.name for one in chosen],
        'baseline': baseline,
        'runs': [
            {'run': name, 'means': own.means, 'topics_without_hits': len(own.without_hits)}
            for name, own in found.items()
        ],
        'comparisons': [{'run': name, **_finite(test._asdict())} for name, test in tests],
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
    """The values, None for NaN and infinity, which JSON lacks: t is infinite if all topics differ by the same."""
    return {key: None if isinstance(own, float) and not math.isfinite(own) else own for key, own in values.items()}
