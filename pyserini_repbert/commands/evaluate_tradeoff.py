"""The command `evaluate tradeoff`: quality against inferences, and the best setting within a budget."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyserini_repbert.commands.command import parser, positive_int, progress, zero_or_more
from pyserini_repbert.commands.evaluate_flags import add_measures, add_qrels
from pyserini_repbert.commands.output_files import add_value_files, parsed
from pyserini_repbert.data.values import decimal
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import parse_measures
from pyserini_repbert.evaluate.plots import plot_points
from pyserini_repbert.evaluate.tables import markdown, write_csv
from pyserini_repbert.names.topics import load_qrels

if TYPE_CHECKING:
    from pyserini_repbert.evaluate.studies.tradeoff import Point

_K0 = [10, 20, 50, 100, 200, 500, 1000]  # of Multi-Stage Figures 2 and 4, and shallower ones
_K1 = [0, 10, 20, 30, 40, 50]  # Multi-Stage Figure 3
_M = [10, 20, 30, 40]


def main(arguments: Sequence[str]) -> None:
    """Print quality and cost of each setting; CSV, a plot and the best one on request (Multi-Stage Figures 2 to 4)."""
    options = parsed(_parser(), arguments)
    budget, unit = _budget(options.budget)
    from pyserini_repbert.evaluate.studies import tradeoff
    from pyserini_repbert.rerank.saved_scores import read_saved_scores

    measures = parse_measures(options.measures)
    qrels = load_qrels(options.qrels)
    saved, about = read_saved_scores(options.scores)
    deepest = max((len(own.scores) for own in saved), default=0)
    compared = max((len(own.members) for own in saved), default=0)
    k0s = options.k0 or _within(_K0, deepest)
    k1s = _within(_K1, min(about.get('k1', compared), compared)) if options.k1 is None else options.k1
    chosen = tradeoff.settings(k0s, k1s, options.methods, options.samples)
    chosen = [setting for setting in chosen if setting.k0 <= deepest and setting.k1 <= compared]
    if not deepest:
        raise InputError(f'{options.scores} has no scores of a first reranker: keep those of two stages')
    if not chosen:
        there = f'scores to k0={deepest}, and pairs of {compared} candidates'
        raise InputError(f'{options.scores} has {there}: give --k0 and --k1 within that')
    rates = tradeoff.seconds_an_inference(about)
    with progress(len(chosen), 'replay', 'settings', options.quiet) as bar:
        points, missing = tradeoff.trade_off(
            saved, qrels, chosen, measures, rates, options.trials, options.hits, bar.update
        )
    if not points:
        raise InputError(f'{options.scores} lacks the pairs of all settings: score with --replay-k0')
    fronts = {named.name: tradeoff.pareto_front(points, named.name) for named in measures}
    first = measures[0].name
    _print_table(points, fronts[first])
    if missing:
        depths = ' '.join(str(k0) for k0 in sorted({setting.k0 for setting in missing}))
        print(f'\n{len(missing)} settings left out, whose pairs were not compared: --replay-k0 {depths}')
    if options.csv:
        _write_csv(options.csv, points, fronts)
    if options.plot:
        panels = {name: _series(points, name) for name in fronts}
        best = {name: [(str(p.setting), p.inferences, p.values[name]) for p in own] for name, own in fronts.items()}
        plot_points(options.plot, panels, best, 'inferences a query')
    if budget:
        point = tradeoff.best_within(points, first, budget, unit)
        setting = point.setting
        duo = setting.method if setting.samples is None else f'sample={setting.samples}'
        flags = f'MONO@{setting.k0}' + (f' --reranker DUO@{setting.k1}:{duo}' if setting.k1 else '')
        seconds = '' if point.seconds is None else f', {point.seconds:.3f} s'
        print(f'\nbest {first} within {budget:g} {unit} a query: {point.values[first]:.4f} with {setting}')
        print(f'run it with: --reranker {flags}')
        print(f'predicted: {point.inferences:.1f} inferences{seconds} a query')


def _within(defaults: Sequence[int], most: int) -> list[int]:
    """The defaults below `most`, and `most` itself."""
    return [*(value for value in defaults if value < most), most]


def _print_table(points: Sequence[Point], front: Sequence[Point]) -> None:
    rows = []
    for point in points:
        seconds = '' if point.seconds is None else f'{point.seconds:.3f}'
        values = [f'{value:.4f}' for value in point.values.values()]
        rows.append([str(point.setting), f'{point.inferences:.1f}', seconds, *values, '*' if point in front else ''])
    print(markdown(['setting', 'inferences', 'seconds', *points[0].values, 'front'], rows))


def _write_csv(path: str, points: Sequence[Point], fronts: Mapping[str, Sequence[Point]]) -> None:
    header = ['k0', 'k1', 'method', 'samples', 'nominal_inferences', 'inferences', 'seconds', *fronts]
    rows = []
    for setting, inferences, seconds, values in points:
        chosen = [setting.k0, setting.k1, setting.method if setting.k1 else '', setting.samples]
        cost = [sum(setting.inferences()), f'{inferences:.2f}', '' if seconds is None else f'{seconds:.6f}']
        marks = [any(setting == point.setting for point in front) for front in fronts.values()]
        rows.append([*chosen, *cost, *(f'{values[name]:.6f}' for name in fronts), *map(int, marks)])
    write_csv(path, [*header, *(f'front_{name}' for name in fronts)], rows)


def _series(points: Sequence[Point], measure: str) -> dict[str, list[tuple[float, float]]]:
    series: dict[str, list[tuple[float, float]]] = {}
    for point in sorted(points, key=lambda point: point.inferences):
        series.setdefault(point.setting.series, []).append((point.inferences, point.values[measure]))
    return series


def _budget(text: str | None) -> tuple[float, str]:
    """(amount, unit) a query: '500' means inferences, '2.5s' seconds; 0 without a budget."""
    if text is None:
        return 0.0, ''
    try:
        amount = decimal(text.removesuffix('s'))
    except ValueError:
        amount = 0.0
    if amount <= 0:
        raise InputError(f"--budget '{text}': expected inferences a query ('500') or seconds a query ('2.5s')")
    return amount, 'seconds' if text.endswith('s') else 'inferences'


def _parser() -> argparse.ArgumentParser:
    made = parser('evaluate tradeoff', 'Quality against inferences a query, replayed from the scores of one reranking.')
    made.add_argument('scores', metavar='FILE.npz', help='what `rerank --pairs` kept')
    add_qrels(made)
    add_measures(made, ['MRR@10'])  # the first one decides what is best
    k0s, k1s = (f'default: {" ".join(map(str, own))}, as far as the file goes' for own in (_K0, _K1))
    made.add_argument('--k0', nargs='+', type=positive_int, help=f'candidates of monoBERT; {k0s}')
    made.add_argument('--k1', nargs='+', type=zero_or_more, help=f'candidates of duoBERT, 0 for none; {k1s}')
    methods = ['sum', 'binary', 'min', 'max', 'sample']
    made.add_argument('--methods', nargs='+', default=methods, choices=methods, help='aggregations')
    made.add_argument('--samples', nargs='+', type=positive_int, default=_M, help="m of 'sample'")
    made.add_argument('--trials', type=positive_int, default=10, help="drawings of 'sample' that are averaged")
    made.add_argument('--hits', type=positive_int, default=1000, help='hits of a query that are evaluated')
    add_value_files(made)
    made.add_argument('--budget', metavar='N', help="what a query may cost: '500' inferences, '2.5s' seconds")
    return made
