"""The command `evaluate tradeoff`: quality against inferences, and the best setting within a budget."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from typing_extensions import TypedDict  # pydantic needs this one below Python 3.12

from pyserini_repbert.commands.command import parser, positive_int, progress, zero_or_more
from pyserini_repbert.commands.output_files import parsed
from pyserini_repbert.errors import InputError
from pyserini_repbert.names.topics import load_qrels
from pyserini_repbert.numerals import decimal

if TYPE_CHECKING:
    from pyserini_repbert.evaluate.studies.tradeoff import Point

_K0 = [10, 20, 50, 100, 200, 500, 1000]  # of Multi-Stage Figures 2 and 4, and shallower ones
_K1 = [0, 10, 20, 30, 40, 50]  # Multi-Stage Figure 3
_M = [10, 20, 30, 40]


class _Cost(TypedDict):
    inferences_per_query: float
    seconds_per_query: float


class _Report(TypedDict):
    stages: list[_Cost]


def main(arguments: Sequence[str]) -> None:
    """Print quality and cost of each setting; CSV, a plot and the best one on request (Multi-Stage Figures 2 to 4)."""
    options = parsed(_parser(), arguments)
    budget = _budget(options.budget) if options.budget else None
    from pyserini_repbert.evaluate.measures import parse_measures
    from pyserini_repbert.evaluate.plots import plot_points
    from pyserini_repbert.evaluate.studies import tradeoff
    from pyserini_repbert.rerank.saved_scores import read_saved_scores

    measures = parse_measures(options.measures)
    qrels = load_qrels(options.qrels)
    kept, about = read_saved_scores(options.scores)
    deepest = max((len(own.scores) for own in kept), default=0)
    compared = max((len(own.members) for own in kept), default=0)
    k0s = options.k0 or _within(_K0, deepest)
    k1s = _within(_K1, min(about.get('k1', compared), compared)) if options.k1 is None else options.k1
    chosen = tradeoff.settings(k0s, k1s, options.methods, options.samples)
    chosen = [setting for setting in chosen if setting.k0 <= deepest and setting.k1 <= compared]
    if not chosen:
        if not deepest:
            raise InputError(f'{options.scores} has no scores of a first reranker: keep those of two stages')
        raise InputError(
            f'{options.scores} has scores to k0={deepest}, and pairs of {compared} candidates: '
            'give --k0 and --k1 within that'
        )
    rates = tradeoff.seconds_an_inference(about)
    with progress(len(chosen), 'replay', 'settings', options.quiet) as bar:
        points, missing = tradeoff.trade_off(
            kept, qrels, chosen, measures, rates, options.trials, options.hits, bar.update
        )
    if not points:
        raise InputError(f'{options.scores} lacks the pairs of all settings: score with --replay-k0')
    first = measures[0].name
    fronts = {named.name: tradeoff.pareto_front(points, named.name) for named in measures}
    _print_table(points, fronts[first])
    if missing:
        depths = sorted({setting.k0 for setting in missing})
        print(f'\n{len(missing)} settings left out, whose pairs were not compared: --replay-k0 {_spaced(depths)}')
    if options.csv:
        _write_csv(options.csv, points, fronts)
    if options.plot:
        panels = {name: _series(points, name) for name in fronts}
        best = {name: [(str(p.setting), p.inferences, p.values[name]) for p in own] for name, own in fronts.items()}
        plot_points(options.plot, panels, best, 'inferences a query')
    if budget is not None:
        amount, unit = budget
        _report(tradeoff.best_within(points, first, amount, unit), first, amount, unit, options.actual)


def _within(defaults: Sequence[int], most: int) -> list[int]:
    """The defaults below `most`, and `most` itself."""
    return [*(value for value in defaults if value < most), most]


def _print_table(points: Sequence[Point], front: Sequence[Point]) -> None:
    from pyserini_repbert.evaluate.tables import markdown

    header = ['setting', 'inferences', 'seconds', *points[0].values, 'front']
    rows = [
        [
            str(point.setting),
            f'{point.inferences:.1f}',
            '' if point.seconds is None else f'{point.seconds:.3f}',
            *(f'{value:.4f}' for value in point.values.values()),
            '*' if point in front else '',
        ]
        for point in points
    ]
    print(markdown(header, rows))


def _write_csv(path: str, points: Sequence[Point], fronts: Mapping[str, Sequence[Point]]) -> None:
    from pyserini_repbert.evaluate.tables import write_csv

    names = list(points[0].values)
    header = ['k0', 'k1', 'method', 'samples', 'nominal_inferences', 'inferences', 'seconds', *names]
    rows = []
    for point in points:
        own = point.setting
        method = own.method if own.k1 else ''
        seconds = '' if point.seconds is None else f'{point.seconds:.6f}'
        samples = '' if own.samples is None else own.samples
        values = [f'{point.values[name]:.6f}' for name in names]
        marks = [int(point in fronts[name]) for name in names]
        cost = [own.inferences, f'{point.inferences:.2f}', seconds]
        rows.append([own.k0, own.k1, method, samples, *cost, *values, *marks])
    write_csv(path, [*header, *(f'front_{name}' for name in names)], rows)


def _series(points: Sequence[Point], measure: str) -> dict[str, list[tuple[float, float]]]:
    series: dict[str, list[tuple[float, float]]] = {}
    for point in sorted(points, key=lambda point: point.inferences):
        series.setdefault(point.setting.series, []).append((point.inferences, point.values[measure]))
    return series


def _report(best: Point, measure: str, amount: float, unit: str, actual: str | None) -> None:
    own = best.setting
    duo = own.method if own.samples is None else f'sample={own.samples}'
    flags = f'MONO@{own.k0}' + (f' --reranker DUO@{own.k1}:{duo}' if own.k1 else '')
    seconds = '' if best.seconds is None else f', {best.seconds:.3f} s'
    print(f'\nbest {measure} within {amount:g} {unit} a query: {best.values[measure]:.4f} with {own}')
    print(f'run it with: --reranker {flags}')
    print(f'predicted: {best.inferences:.1f} inferences{seconds} a query')
    if actual:
        costs = _read_costs(actual)
        inferences = sum(cost['inferences_per_query'] for cost in costs)
        spent = sum(cost['seconds_per_query'] for cost in costs)
        print(f'actual ({actual}): {inferences:.1f} inferences, {spent:.3f} s a query')


def _read_costs(path: str) -> list[_Cost]:
    from pyserini_repbert.data.json_values import checked, parse_json
    from pyserini_repbert.files import existing_file

    try:
        report = parse_json(existing_file(path, 'cost report').read_bytes())
        return checked(_Report, report)['stages']
    except ValueError as error:
        raise InputError(f'{path} is no cost report ({error}): write one with `rerank --cost`') from error


def _budget(text: str) -> tuple[float, str]:
    """(amount, unit) a query: '500' means inferences, '2.5s' seconds. Raises InputError for another form."""
    unit = 'seconds' if text.endswith('s') else 'inferences'
    try:
        amount = decimal(text.removesuffix('s'))
    except ValueError:
        amount = 0.0
    if amount <= 0:
        raise InputError(f"--budget '{text}': expected inferences a query ('500') or seconds a query ('2.5s')")
    return amount, unit


def _spaced(values: Sequence[int]) -> str:
    return ' '.join(map(str, values))


def _parser() -> argparse.ArgumentParser:
    made = parser('evaluate tradeoff', 'Quality against inferences a query, replayed from the scores of one reranking.')
    made.add_argument('scores', metavar='FILE.npz', help='what `rerank --pairs` kept')
    made.add_argument('--qrels', required=True, help='judgments: a file, or a name in the catalog or in Pyserini')
    made.add_argument('--measures', nargs='+', default=['MRR@10'], help='the first one decides what is best')
    within = f'default: {_spaced(_K0)}, as far as the file goes'
    made.add_argument('--k0', nargs='+', type=positive_int, help=f'candidates of monoBERT; {within}')
    within = f'default: {_spaced(_K1)}, as far as the file goes'
    made.add_argument('--k1', nargs='+', type=zero_or_more, help=f'candidates of duoBERT, 0 for none; {within}')
    methods = ['sum', 'binary', 'min', 'max', 'sample']
    made.add_argument('--methods', nargs='+', default=methods, choices=methods, help='aggregations')
    made.add_argument('--samples', nargs='+', type=positive_int, default=_M, help="m of 'sample'")
    made.add_argument('--trials', type=positive_int, default=10, help="drawings of 'sample' that are averaged")
    made.add_argument('--hits', type=positive_int, default=1000, help='hits of a query that are evaluated')
    made.add_argument('--csv', metavar='FILE', help='write the points as CSV')
    made.add_argument(
        '--plot', metavar='FILE', help='write a plot with the Pareto front, .png, .pdf or .svg (needs matplotlib)'
    )
    made.add_argument('--budget', metavar='N', help="what a query may cost: '500' inferences, '2.5s' seconds")
    made.add_argument('--actual', metavar='FILE.json', help='with --budget: the cost report of a run with that setting')
    return made
