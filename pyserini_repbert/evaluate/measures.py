"""Measures by name, per topic and over all judged topics.

ir_measures computes them, and starts no JVM.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.data.qrels import MAX_GRADE, Qrels
from pyserini_repbert.data.values import has_surrogates
from pyserini_repbert.errors import InputError, MissingDependencyError, UnknownNameError
from pyserini_repbert.ranking import Ranking, Run

# Outside of these, trec_eval's code in C aborts, reads memory that is not its own, or computes
# another measure: it sorts cut-offs by 32-bit differences, and rounds levels of recall.
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
# Providers that compute each topic separately.
_BY_TOPIC = frozenset({'pytrec_eval', 'judged', 'msmarco', 'compat', 'accuracy'})
_TOPICS_AT_ONCE = 256
_MAX_GRADE_IN_PERL = 4
_NO_DOCUMENT = ' '  # no docid has white space


class NamedMeasure(NamedTuple):
    """A measure of ir_measures under the name that the user gave.

    'MRR@10' stays 'MRR@10', although ir_measures calls it RR@10.
    """

    name: str
    measure: Any


class Evaluation(NamedTuple):
    """One run's values.

    Attributes
    ----------
    values : by measure name and qid, for every judged topic in the order of the qrels
    means : by measure name, over all judged topics: the mean; the sum for counts such as NumRet
    without_hits : judged topics that the run has no hits for; each counts 0
    """

    values: dict[str, dict[str, float]]
    means: dict[str, float]
    without_hits: tuple[str, ...]

    @property
    def n_topics(self) -> int:
        """How many topics are judged."""
        return len(next(iter(self.values.values())))

    def is_sum(self, measure: str) -> bool:
        """Whether the one value of a measure is the sum over topics, not the mean."""
        mean = fmean(self.values[measure].values())
        return not math.isclose(self.means[measure], mean, abs_tol=1e-9)


def parse_measures(names: Iterable[str]) -> list[NamedMeasure]:
    """Measures from names of ir_measures or of trec_eval, each once.

    'nDCG@10' and 'AP(rel=2)@1000' are names of ir_measures, 'ndcg_cut_10' is one of trec_eval.
    """
    return [_parse(name) for name in dict.fromkeys(names)]


def _parse(name: str) -> NamedMeasure:
    import ir_measures

    try:
        measure = _of_trec_eval(name) or ir_measures.parse_measure(name)
        providers = _providers_of(measure)
    except (NameError, ValueError, TypeError, KeyError, AssertionError, SyntaxError) as error:
        raise UnknownNameError(_unknown_message(name, error)) from error
    for parameter, value in measure.params.items():
        problem = _parameter_problem(parameter, value)
        if problem:
            raise InputError(f"measure '{name}': {problem}")
    if not providers:
        raise UnknownNameError(
            f"measure '{name}' is known, but not with these parameters: see https://ir-measur.es"
        )
    if any(provider.is_available() for provider in providers):
        return NamedMeasure(name, measure)
    if providers[0].NAME == _IN_PERL:
        raise MissingDependencyError(f"measure '{name}' needs the program perl: install it")
    package = f'ir-measures[{providers[0].NAME}]'
    raise MissingDependencyError.of(package, f"measure '{name}'", f"'{package}'")


def _providers_of(measure: Any) -> list[Any]:
    """What ir_measures can compute a measure with, the preferred one first."""
    import ir_measures

    providers = ir_measures.DefaultPipeline.providers
    return [provider for provider in providers if provider.supports(measure)]


def _is_in_perl(named: NamedMeasure) -> bool:
    """Whether ir_measures runs a program in perl to compute a measure, as for ERR@10."""
    for provider in _providers_of(named.measure):
        if provider.is_available():
            return bool(provider.NAME == _IN_PERL)
    return False


def _unknown_message(name: str, error: Exception) -> str:
    """What is wrong with the name of a measure that ir_measures could not parse."""
    import ir_measures

    known = [measure for measure in ir_measures.measures.registry if measure.isascii()]
    base = name.partition('@')[0].partition('(')[0]
    if 'param cutoff' in str(error):
        return f"measure '{name}' needs a cut-off, as in '{base}@10'"
    if base in known:
        why = str(error).partition(';')[0]
        expected = f"expected a form such as '{base}@10' or 'AP(rel=2)@1000' ({why})"
        return f"measure '{name}' is unknown: {expected}"
    near = did_you_mean(base, known)
    expected = 'expected nDCG@10, MRR@10, AP, R@1000, P@10 or another of https://ir-measur.es'
    return f"measure '{name}' is unknown{near}: {expected}"


def _parameter_problem(parameter: str, value: Any) -> str:
    """What is wrong with a parameter of a measure; '' if it can be computed with."""
    if parameter == 'gains':
        return _gains_problem(value)
    if parameter not in _RANGES:
        return ''
    least, most = _RANGES[parameter]
    decimals = _DECIMALS.get(parameter)
    is_within = not isinstance(value, bool) and least <= value <= most
    if is_within and (decimals is None or round(value, decimals) == value):
        return ''
    exact = f', with {decimals} decimals at most,' if decimals else ''
    return f'{parameter} is {value}, a number from {least} to {most}{exact} was expected'


def _gains_problem(gains: Mapping[Any, Any]) -> str:
    """What is wrong with gains by grade; '' if they can be computed with."""
    if all(type(grade) is int and 0 <= grade <= MAX_GRADE for grade in [*gains, *gains.values()]):
        return ''
    return (
        f'gains map grades from 0 to {MAX_GRADE} to gains from 0 to {MAX_GRADE}, as in {{1:0,2:10}}'
    )


def _of_trec_eval(name: str) -> Any:
    """The measure that trec_eval calls so; None for any other name.

    Its names are map, ndcg_cut_10, recip_rank and others.
    """
    import ir_measures
    import pytrec_eval

    # These are names of sets of measures.
    if name in pytrec_eval.supported_nicknames:
        return None
    try:
        measures = ir_measures.parse_trec_measure(name)
    except ValueError:
        return None
    return measures[0] if len(measures) == 1 else None


def judged_only(run: Mapping[str, Ranking], qrels: Qrels) -> Run:
    """The run without hits that are not judged for their topic.

    These are Sakai's condensed lists (SIGIR 2007).

    Judgments that were pooled from other systems then do less harm to a new one.
    """
    condensed = {}
    for qid, hits in run.items():
        judged = qrels.get(qid, {})
        condensed[qid] = Ranking.of([hit for hit in hits if hit.docid in judged])
    return condensed


def judged_docids(qrels: Qrels) -> set[str]:
    """The docids that are judged for any topic."""
    docids: set[str] = set()
    for grades in qrels.values():
        docids.update(grades)
    return docids


def by_rank(run: Mapping[str, Ranking]) -> Run:
    """The run with the scores 1, 1/2, 1/3, …

    An evaluator, which sorts by score, then keeps its order.
    """
    from pyserini_repbert.data.ordering import reciprocal_scores

    return {
        qid: Ranking(ranking.docids, reciprocal_scores(len(ranking)))
        for qid, ranking in run.items()
    }


def evaluate(
    run: Mapping[str, Ranking], qrels: Qrels, measures: Sequence[NamedMeasure]
) -> Evaluation:
    """Evaluate a run over all judged topics.

    Hits are ranked by score, as evaluators rank the hits of a run file.

    A judged topic without hits counts 0; a topic that is not judged does not count. The qrels have
    at least one topic, and grades from -`MAX_GRADE` to `MAX_GRADE`.
    """
    rankings = ((qid, run[qid]) for qid in qrels if qid in run)
    return evaluate_topics(rankings, qrels, measures)


def evaluate_topics(
    rankings: Iterable[tuple[str, Ranking]], qrels: Qrels, measures: Sequence[NamedMeasure]
) -> Evaluation:
    """`evaluate` of a run that comes topic by topic: some hundred topics are held at once."""
    by_measure: dict[Any, dict[str, float]] = {
        named.measure: dict.fromkeys(qrels, 0.0) for named in measures
    }
    with_hits: set[str] = set()
    judged = ((qid, hits) for qid, hits in rankings if qid in qrels and hits.docids)
    size = _TOPICS_AT_ONCE if _are_of_topics(measures) else None
    while block := dict(islice(judged, size)):
        with_hits.update(block)
        qids = list(block)
        for metric in _compute(measures, block, qrels):
            qid = qids[int(metric.query_id)]
            by_measure[metric.measure][qid] = float(metric.value)
    values = {}
    means = {}
    for named in measures:
        values[named.name] = by_measure[named.measure]
        means[named.name] = _mean(named, values[named.name])
    without_hits = tuple(qid for qid in qrels if qid not in with_hits)
    return Evaluation(values, means, without_hits)


def _mean(named: NamedMeasure, values: Mapping[str, float]) -> float:
    """The value of a measure over topics, from its value of each."""
    total = named.measure.aggregator()
    for value in values.values():
        total.add(value)
    return float(total.result())


def _are_of_topics(measures: Sequence[NamedMeasure]) -> bool:
    """Whether the values of a topic do not depend on the judgments of others."""
    for named in measures:
        available = [each for each in _providers_of(named.measure) if each.is_available()]
        if available and available[0].NAME not in _BY_TOPIC:
            return False
    return True


def _compute(
    measures: Sequence[NamedMeasure], run: Mapping[str, Ranking], qrels: Qrels
) -> list[Any]:
    """Metrics of ir_measures, one for each topic and measure.

    Their `query_id` is the position of a topic in `run`, from '0', because perl takes only numbers.
    """
    grades: Qrels = {}
    scores: dict[str, dict[str, float]] = {}
    for number, (qid, ranking) in enumerate(run.items()):
        _check_docids(qid, [*ranking.docids, *qrels[qid]])
        scores[str(number)] = dict(zip(ranking.docids, ranking.scores, strict=True))
        grades[str(number)] = qrels[qid]
    wanted = list(dict.fromkeys(named.measure for named in measures))
    given: list[int] = []
    for judged in grades.values():
        given += judged.values()
    least = min(given, default=0)
    most = max(given, default=0)
    why = _grades_problem(measures, least, most)
    if not why:
        try:
            return _metrics(measures, grades, scores)
        except Exception as error:
            # Code of several packages raises nearly anything.
            is_plain = isinstance(error, ValueError | TypeError | ArithmeticError)
            why = ' '.join(str(error).split())[:120] if is_plain else type(error).__name__
    raise InputError(
        f'{", ".join(map(str, wanted))} cannot be computed on grades from {least} to {most} '
        f'({why}): '
        'give fewer measures, or other judgments'
    )


def _metrics(
    measures: Sequence[NamedMeasure], grades: Qrels, scores: Mapping[str, Mapping[str, float]]
) -> list[Any]:
    """What ir_measures computes: each measure once."""
    import ir_measures

    in_perl: dict[Any, None] = {}
    others: dict[Any, None] = {}
    for named in measures:
        computed = in_perl if _is_in_perl(named) else others
        computed[named.measure] = None
    metrics: list[Any] = []
    if others:
        known = {qid: _with_grade_of_least_0(judged) for qid, judged in grades.items()}
        metrics += ir_measures.iter_calc(list(others), known, scores)
    if in_perl:
        known = {qid: _without_negative_grades(judged) for qid, judged in grades.items()}
        metrics += ir_measures.iter_calc(list(in_perl), known, scores)
    return metrics


def _without_negative_grades(grades: dict[str, int]) -> dict[str, int]:
    """The grades of a topic, with 0 for each that is negative: neither is relevant.

    The program in perl fails on a topic whose grades are all negative.
    """
    return {docid: max(grade, 0) for docid, grade in grades.items()}


def _check_docids(qid: str, docids: Iterable[str]) -> None:
    """Raise InputError for a docid with which code in C would crash."""
    joined = ' '.join(docids)
    if '\0' in joined or has_surrogates(joined):
        raise InputError(f"topic '{qid}' has a docid with a character that no identifier can have")


def _with_grade_of_least_0(grades: dict[str, int]) -> dict[str, int]:
    """The grades of a topic, with one of 0 for no document where all are negative.

    Without a grade of at least 0, trec_eval would count with the grades of the topic before.
    """
    if max(grades.values(), default=0) < 0:
        return {**grades, _NO_DOCUMENT: 0}
    return grades


def _grades_problem(measures: Sequence[NamedMeasure], least: int, most: int) -> str:
    """Why measures cannot be computed on grades of this range; '' if they can."""
    if least < -MAX_GRADE or most > MAX_GRADE:
        return f'expected {-MAX_GRADE} to {MAX_GRADE}'
    in_perl = [named.name for named in measures if _is_in_perl(named)]
    if in_perl and most > _MAX_GRADE_IN_PERL:
        return f'{", ".join(in_perl)}: expected grades up to {_MAX_GRADE_IN_PERL}'
    return ''


def counts_unjudged(qrels: Qrels) -> bool:
    """Whether unjudged hits count as not relevant: where nobody has judged a hit not relevant.

    Such judgments list the answers of a question. Where others are there, too, an unjudged hit was
    not seen, and is left out.
    """
    return all(min(grades.values(), default=1) > 0 for grades in qrels.values())


_Column = TypeVar('_Column')


def tabulate_means(
    evaluations: Mapping[str, Mapping[_Column, Evaluation]],
) -> dict[str, dict[str, dict[_Column, float]]]:
    """Measure -> row -> column -> mean, of evaluations by row and column."""
    tables: dict[str, dict[str, dict[_Column, float]]] = {}
    for row, cells in evaluations.items():
        for column, evaluation in cells.items():
            for measure, mean in evaluation.means.items():
                tables.setdefault(measure, {}).setdefault(row, {})[column] = mean
    return tables
