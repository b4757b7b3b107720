"""Measures by name, computed by ir_measures (which starts no JVM): per topic, and over all judged topics."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.data.topics import Qrels
from pyserini_repbert.errors import InputError, MissingDependencyError, UnknownNameError
from pyserini_repbert.ranking import Ranking


class NamedMeasure(NamedTuple):
    """A measure of ir_measures under the name that the user gave: 'MRR@10', although ir_measures calls it RR@10."""

    name: str
    measure: Any


class Evaluation(NamedTuple):
    """One run's values.

    Attributes
    ----------
    values : measure name -> qid -> value, for every judged topic in the order of the qrels
    means : measure name -> aggregate over all judged topics (the mean; the sum for counts such as NumRet)
    without_hits : judged topics that the run has no hits for; each counts 0
    """

    values: dict[str, dict[str, float]]
    means: dict[str, float]
    without_hits: tuple[str, ...]


def parse_measures(names: Iterable[str]) -> list[NamedMeasure]:
    """Measures from names in ir_measures' form: 'nDCG@10', 'MRR@10', 'R@1000', 'AP(rel=2)@1000', …; each once.

    Raises
    ------
    UnknownNameError
        for a name that ir_measures does not know or cannot parse, with the nearest names
    InputError
        for a `rel` below 1
    MissingDependencyError
        for a measure that needs a package which is not installed
    """
    return [_parse(name) for name in dict.fromkeys(names)]


def _parse(name: str) -> NamedMeasure:
    import ir_measures

    providers = ir_measures.DefaultPipeline.providers
    try:
        measure = ir_measures.parse_measure(name)
        able = [provider for provider in providers if provider.supports(measure)]
    except (NameError, ValueError, TypeError, KeyError, AssertionError, SyntaxError) as error:
        known = [known for known in ir_measures.measures.registry if known.isascii()]
        base = name.partition('@')[0].partition('(')[0]
        if 'param cutoff' in str(error):
            raise UnknownNameError(f"measure '{name}' needs a cut-off, as in '{base}@10'") from error
        if base in known:
            hint = f"expected a form such as '{base}@10' or 'AP(rel=2)@1000' ({str(error).partition(';')[0]})"
        else:
            hint = f'known are {", ".join(sorted(known))}'
        near = '' if base in known else _in_trec_eval(name) or did_you_mean(base, known)
        raise UnknownNameError(f"measure '{name}' is unknown{near}: {hint}") from error
    if (grade := measure.params.get('rel', 1)) < 1:
        raise InputError(
            f"measure '{name}': rel is {grade}, a grade of at least 1 was expected: unjudged passages have 0"
        )
    if not able:
        raise UnknownNameError(f"measure '{name}' is known, but not with these parameters: see https://ir-measur.es")
    if not any(provider.is_available() for provider in able):
        package = f'ir-measures[{able[0].NAME}]'
        raise MissingDependencyError.of(package, f"measure '{name}'", f"'{package}'")
    return NamedMeasure(name, measure)


def _in_trec_eval(name: str) -> str:
    """' (did you mean …?)' with ir_measures' name for a measure of trec_eval; '' for any other name."""
    import ir_measures

    try:
        found = ir_measures.parse_trec_measure(name)
    except ValueError:
        return ''
    return f" (did you mean '{found[0]}'?)" if len(found) == 1 else ''


def judged_only(run: Mapping[str, Ranking], qrels: Qrels) -> dict[str, Ranking]:
    """The run without hits that are not judged for their topic: Sakai's condensed lists (SIGIR 2007).

    Judgments that were pooled from other systems then do less harm to a new one.
    """
    condensed = {}
    for qid, ranking in run.items():
        known = qrels.get(qid, {})
        hits = [hit for hit in ranking if hit.docid in known]
        condensed[qid] = Ranking((hit.docid for hit in hits), (hit.score for hit in hits))
    return condensed


def evaluate(run: Mapping[str, Ranking], qrels: Qrels, measures: Sequence[NamedMeasure]) -> Evaluation:
    """Evaluate a run over all judged topics. Hits are ranked by score, as evaluators rank those of a run file.

    A judged topic without hits counts 0; a topic that is not judged does not count.

    Parameters
    ----------
    run : rankings by qid
    qrels : grades by qid and docid, at least one topic
    measures : from `parse_measures`

    Raises
    ------
    InputError
        for grades from which a measure cannot be computed
    """
    import ir_measures

    judged = {
        qid: dict(zip(run[qid].docids, run[qid].scores, strict=True)) for qid in qrels if qid in run and run[qid].docids
    }
    values = {named.name: dict.fromkeys(qrels, 0.0) for named in measures}
    names: dict[str, list[str]] = {}
    for named in measures:
        names.setdefault(str(named.measure), []).append(named.name)
    if judged:
        wanted = list({str(named.measure): named.measure for named in measures}.values())
        try:
            for metric in ir_measures.iter_calc(wanted, qrels, judged):
                for name in names[str(metric.measure)]:
                    values[name][metric.query_id] = float(metric.value)
        except (ValueError, TypeError, ArithmeticError, subprocess.SubprocessError) as error:
            grades = [grade for own in qrels.values() for grade in own.values()]
            why = ' '.join(str(error).split())[:120]
            raise InputError(
                f'{", ".join(map(str, wanted))} cannot be computed on grades from {min(grades)} to {max(grades)} '
                f'({why}): give fewer measures, or other judgments'
            ) from error
    means = {}
    for named in measures:
        total = named.measure.aggregator()
        for value in values[named.name].values():
            total.add(value)
        means[named.name] = float(total.result())
    return Evaluation(values, means, tuple(qid for qid in qrels if qid not in judged))
