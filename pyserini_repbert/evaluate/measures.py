"""Measures by name, computed by ir_measures (which starts no JVM): per topic, and over all
judged topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.data.topics import MAX_GRADE, Qrels
from pyserini_repbert.data.values import has_surrogates
from pyserini_repbert.errors import InputError, MissingDependencyError, UnknownNameError
from pyserini_repbert.ranking import Ranking, Run

# Outside of these, trec_eval's code in C aborts, reads memory that is not its own, or computes
# another measure: it
# sorts cut-offs by 32-bit differences, and rounds levels of recall.
_RANGES = {
    'cutoff': (1, 2**31 - 1),
    'rel': (1, MAX_GRADE),
    'min_rel': (0, MAX_GRADE),
    'max_rel': (1, MAX_GRADE),
    'recall': (0, 1),
    'p': (0, 1),
    'alpha': (0, 1),
    'beta': (0, 1000),
    'T': (0, 1000),
}
_DECIMALS = {'recall': 2, 'beta': 4}
_IN_PERL = 'gdeval'  # the provider of ir_measures that runs a program
_MAX_GRADE_IN_PERL = 4
_NO_DOCUMENT = ' '  # no docid has white space


class NamedMeasure(NamedTuple):
    """A measure of ir_measures under the name that the user gave: 'MRR@10', although ir_measures
    calls it RR@10.
    """

    name: str
    measure: Any


class Evaluation(NamedTuple):
    """One run's values."""

    values: dict[
        str, dict[str, float]
    ]  # by measure name and qid, for every judged topic in the order of the qrels
    means: dict[
        str, float
    ]  # by measure name, over all judged topics (the mean; the sum for counts such as NumRet)
    without_hits: tuple[str, ...]  # judged topics that the run has no hits for; each counts 0


def parse_measures(names: Iterable[str]) -> list[NamedMeasure]:
    """Measures from names of ir_measures, 'nDCG@10', 'AP(rel=2)@1000', or of trec_eval,
    'ndcg_cut_10'; each once.
    """
    return [_parse(name) for name in dict.fromkeys(names)]


def _is_in_perl(named: NamedMeasure) -> bool:
    """Whether ir_measures runs a program in perl to compute a measure, as for ERR@10."""
    import ir_measures

    providers = (
        one for one in ir_measures.DefaultPipeline.providers if one.supports(named.measure)
    )
    return next((one.NAME for one in providers if one.is_available()), '') == _IN_PERL


def _parse(name: str) -> NamedMeasure:
    import ir_measures

    try:
        measure = _of_trec_eval(name) or ir_measures.parse_measure(name)
        able = [
            provider
            for provider in ir_measures.DefaultPipeline.providers
            if provider.supports(measure)
        ]
    except (NameError, ValueError, TypeError, KeyError, AssertionError, SyntaxError) as error:
        known = [known for known in ir_measures.measures.registry if known.isascii()]
        base = name.partition('@')[0].partition('(')[0]
        if 'param cutoff' in str(error):
            raise UnknownNameError(
                f"measure '{name}' needs a cut-off, as in '{base}@10'"
            ) from error
        if base in known:
            hint = (
                f"expected a form such as '{base}@10' or 'AP(rel=2)@1000' "
                f'({str(error).partition(";")[0]})'
            )
        else:
            hint = 'expected nDCG@10, MRR@10, AP, R@1000, P@10 or another of https://ir-measur.es'
        near = '' if base in known else did_you_mean(base, known)
        raise UnknownNameError(f"measure '{name}' is unknown{near}: {hint}") from error
    if problem := _problem(measure.params):
        raise InputError(f"measure '{name}': {problem}")
    if not able:
        raise UnknownNameError(
            f"measure '{name}' is known, but not with these parameters: see https://ir-measur.es"
        )
    if not any(provider.is_available() for provider in able):
        if able[0].NAME == _IN_PERL:
            raise MissingDependencyError(f"measure '{name}' needs the program perl: install it")
        package = f'ir-measures[{able[0].NAME}]'
        raise MissingDependencyError.of(package, f"measure '{name}'", f"'{package}'")
    return NamedMeasure(name, measure)


def _problem(parameters: Mapping[str, Any]) -> str | None:
    """What is wrong with the parameters of a measure; None where all can be computed with."""
    for parameter, value in parameters.items():
        if parameter == 'gains':
            grades = [*value, *value.values()]
            if not all(type(grade) is int and 0 <= grade <= MAX_GRADE for grade in grades):
                return (
                    f'gains map grades from 0 to {MAX_GRADE} to gains from 0 to {MAX_GRADE}, '
                    f'as in {{1:0,2:10}}'
                )
        elif parameter in _RANGES:
            least, most = _RANGES[parameter]
            decimals = _DECIMALS.get(parameter)
            if (
                isinstance(value, bool)
                or not least <= value <= most
                or (decimals and round(value, decimals) != value)
            ):
                exact = f', with {decimals} decimals at most,' if decimals else ''
                return (
                    f'{parameter} is {value}, a number from {least} to {most}{exact} was expected'
                )
    return None


def _of_trec_eval(name: str) -> Any:
    """The measure that trec_eval calls so: map, ndcg_cut_10, recip_rank; None for any other
    name.
    """
    import ir_measures
    import pytrec_eval

    if name in pytrec_eval.supported_nicknames:  # a set of measures
        return None
    try:
        measures = ir_measures.parse_trec_measure(name)
    except ValueError:
        return None
    return measures[0] if len(measures) == 1 else None


def judged_only(run: Mapping[str, Ranking], qrels: Qrels) -> Run:
    """The run without hits that are not judged for their topic: Sakai's condensed lists (SIGIR
    2007).

    Judgments that were pooled from other systems then do less harm to a new one.
    """
    return {
        qid: Ranking.of([hit for hit in hits if hit.docid in qrels.get(qid, {})])
        for qid, hits in run.items()
    }


def any_judged(run: Mapping[str, Ranking], qrels: Qrels) -> bool:
    """Whether a hit of any topic is judged for any topic."""
    docids = {docid for grades in qrels.values() for docid in grades}
    return any(not docids.isdisjoint(hits.docids) for hits in run.values())


def by_rank(run: Mapping[str, Ranking]) -> Run:
    """The run with the scores 1, 1/2, 1/3, …, so that an evaluator, which sorts by score, keeps
    its order.
    """
    from pyserini_repbert.data.runs import reciprocal_scores

    return {
        qid: Ranking(ranking.docids, reciprocal_scores(len(ranking)))
        for qid, ranking in run.items()
    }


def evaluate(
    run: Mapping[str, Ranking], qrels: Qrels, measures: Sequence[NamedMeasure]
) -> Evaluation:
    """Evaluate a run over all judged topics.

    Hits are ranked by score, as evaluators rank those of a run file.

    A judged topic without hits counts 0; a topic that is not judged does not count. The qrels have
    at least one topic, and grades from -`MAX_GRADE` to `MAX_GRADE`.
    """
    by_measure: dict[Any, dict[str, float]] = {
        named.measure: dict.fromkeys(qrels, 0.0) for named in measures
    }
    judged = {qid: run[qid] for qid in qrels if qid in run and run[qid].docids}
    if judged:
        qids = list(judged)
        for metric in _computed(measures, judged, qrels):
            by_measure[metric.measure][qids[int(metric.query_id)]] = float(metric.value)
    values = {named.name: by_measure[named.measure] for named in measures}
    means = {}
    for named in measures:
        total = named.measure.aggregator()
        for value in values[named.name].values():
            total.add(value)
        means[named.name] = float(total.result())
    return Evaluation(values, means, tuple(qid for qid in qrels if qid not in judged))


def _computed(
    measures: Sequence[NamedMeasure], run: Mapping[str, Ranking], qrels: Qrels
) -> list[Any]:
    """Metrics of ir_measures, whose `query_id` is the place of a topic in `run`, from '0': perl
    takes only numbers.
    """
    import ir_measures

    grades: Qrels = {}
    scores: dict[str, dict[str, float]] = {}
    for place, (qid, ranking) in enumerate(run.items()):
        docids = ' '.join([*ranking.docids, *qrels[qid]])
        if '\0' in docids or has_surrogates(docids):  # code in C would crash
            raise InputError(
                f"topic '{qid}' has a docid with a character that no identifier can have"
            )
        scores[str(place)] = dict(zip(ranking.docids, ranking.scores, strict=True))
        # Without a grade of at least 0, trec_eval would count with the grades of the topic before.
        all_negative = max(qrels[qid].values(), default=0) < 0
        grades[str(place)] = {**qrels[qid], _NO_DOCUMENT: 0} if all_negative else qrels[qid]
    wanted = list(dict.fromkeys(named.measure for named in measures))
    given = [grade for judged in grades.values() for grade in judged.values()]
    least = min(given, default=0)
    most = max(given, default=0)
    in_perl = [named.name for named in measures if _is_in_perl(named)]
    if not -MAX_GRADE <= least <= most <= MAX_GRADE:
        why = f'expected {-MAX_GRADE} to {MAX_GRADE}'
    elif in_perl and most > _MAX_GRADE_IN_PERL:
        why = f'{", ".join(in_perl)}: expected grades up to {_MAX_GRADE_IN_PERL}'
    else:
        try:
            return list(ir_measures.iter_calc(wanted, grades, scores))
        except Exception as error:  # code of several packages raises nearly anything
            plain = isinstance(error, ValueError | TypeError | ArithmeticError)
            why = ' '.join(str(error).split())[:120] if plain else type(error).__name__
    raise InputError(
        f'{", ".join(map(str, wanted))} cannot be computed on grades from {least} to {most} '
        f'({why}): '
        'give fewer measures, or other judgments'
    )
