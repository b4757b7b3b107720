"""The command `evaluate tradeoff`: quality against inferences."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyserini_repbert.commands.command import (
    count_text,
    parser,
    positive_int,
    progress,
    zero_or_more,
)
from pyserini_repbert.commands.evaluate_comparing import add_latex_flags
from pyserini_repbert.commands.flags import add_flags, parse_flags
from pyserini_repbert.commands.model_grades import load_judgments
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.comparisons import ComparisonSettings
from pyserini_repbert.evaluate.measures import parse_measures
from pyserini_repbert.evaluate.plots import NamedPoint, plot_points
from pyserini_repbert.evaluate.study_tables import front_table
from pyserini_repbert.evaluate.tables import markdown, write_csv

if TYPE_CHECKING:
    from pyserini_repbert.evaluate.studies.tradeoff import Point, Setting
    from pyserini_repbert.systems.duobert.saved_scores import SavedScores

_K0 = [10, 20, 50, 100, 200, 500, 1000]  # of Multi-Stage Figures 2 and 4, and shallower ones
_K1 = [0, 10, 20, 30, 40, 50]  # Multi-Stage Figure 3
_M = [10, 20, 30, 40]
_METHODS = ['sum', 'binary', 'min', 'max', 'sample']

_Fronts = Mapping[str, Sequence['Point']]  # by measure


def tradeoff(arguments: Sequence[str]) -> None:
    """Print quality and cost of each setting (Multi-Stage Figures 2 to 4).

    A CSV file, a plot and the best setting on request.
    """
    options = _parse_tradeoff(arguments)
    from pyserini_repbert.evaluate.studies import tradeoff as study
    from pyserini_repbert.systems.duobert.saved_scores import read_saved_scores

    measures = parse_measures(options.measures)
    qrels = load_judgments(options.qrels)
    saved, about = read_saved_scores(options.scores)
    chosen = _choose_settings(options, saved)
    with progress(len(chosen), 'replay', 'settings', options.quiet) as bar:
        result = study.trade_off(
            saved,
            qrels,
            chosen,
            measures,
            rates=study.seconds_an_inference(about),
            hits=options.hits,
            on_progress=bar.update,
        )
    points = result.points
    if not points:
        raise InputError(
            f'{options.scores} lacks the pairs of all settings: score with --replay-k0'
        )
    fronts = {named.name: study.pareto_front(points, named.name) for named in measures}
    if options.latex:
        first_front = fronts[measures[0].name]
        print(front_table(first_front, points, ComparisonSettings(options.test)))
    else:
        _print_points(points, fronts[measures[0].name])
        _print_missing(result.missing)
    if options.csv:
        _write_points(options.csv, points, fronts)
    if options.plot:
        _plot_fronts(options.plot, points, fronts)
    if options.budget:
        first = measures[0].name
        best = study.best_within(points, first, options.budget)
        print(
            f'\nbest {first} within {options.budget} inferences a query: '
            f'{best.values[first]:.4f} with {best.setting}'
        )
        _print_how_to_run(best)


def _print_missing(missing: Sequence[Setting]) -> None:
    """Print how many settings were left out, and what scores them."""
    if missing:
        depths = sorted({setting.k0 for setting in missing})
        print(
            f'\n{count_text(len(missing), "setting")} left out, whose pairs were not compared: '
            f'--replay-k0 {" ".join(str(k0) for k0 in depths)}'
        )


def _parse_tradeoff(arguments: Sequence[str]) -> argparse.Namespace:
    flags = parser(
        'evaluate tradeoff', 'Quality against inferences a query, replayed from one reranking.'
    )
    add = flags.add_argument
    add('scores', metavar='FILE.npz', help='the file that `rerank --pairs` wrote')
    add_flags(flags, 'qrels')
    # The first measure decides which setting is best.
    add_flags(flags, 'measures', default=['MRR@10'])
    add(
        '--k0',
        nargs='+',
        type=positive_int,
        default=_K0,
        help='numbers of candidates for monoBERT, at most as many as in the file',
    )
    add(
        '--k1',
        nargs='+',
        type=zero_or_more,
        default=_K1,
        help='numbers of candidates for duoBERT, at most as many as in the file; 0: none',
    )
    add('--methods', nargs='+', default=_METHODS, choices=_METHODS, help='aggregations')
    add('--samples', nargs='+', type=positive_int, default=_M, help="m of 'sample'")
    add_flags(flags, 'hits', type=positive_int, help='hits of each query to evaluate')
    add_flags(flags, 'csv', 'plot', 'overwrite')
    add(
        '--budget',
        type=positive_int,
        metavar='N',
        help='the most inferences that a query may take',
    )
    add_latex_flags(flags, 'the setting that takes the most inferences')
    return parse_flags(flags, arguments)


def _choose_settings(options: argparse.Namespace, saved: Sequence[SavedScores]) -> list[Setting]:
    """The requested settings, as deep as the saved scores go.

    Raises InputError if none is left.
    """
    from pyserini_repbert.evaluate.studies.tradeoff import settings

    deepest = max((len(query.scores) for query in saved), default=0)
    compared = max((len(query.members) for query in saved), default=0)
    if not deepest:
        raise InputError(
            f'{options.scores} has no scores of a first reranker: save the scores of two stages'
        )
    asked = settings(options.k0, options.k1, options.methods, options.samples)
    chosen = [setting for setting in asked if setting.k0 <= deepest and setting.k1 <= compared]
    if not chosen:
        raise InputError(
            f'{options.scores} has scores to k0={deepest}, and pairs of {compared} candidates: '
            f'give --k0 and --k1 within that'
        )
    return chosen


def _print_points(points: Sequence[Point], front: Sequence[Point]) -> None:
    """Print a table of settings; a star marks the front."""
    rows = []
    for point in points:
        values = [f'{value:.4f}' for value in point.values.values()]
        seconds = '' if point.seconds is None else f'{point.seconds:.3f}'
        star = '*' if point in front else ''
        rows.append([str(point.setting), f'{point.inferences:.1f}', seconds, *values, star])
    print(markdown(['setting', 'inferences', 'seconds', *points[0].values, 'front'], rows))


def _write_points(path: str, points: Sequence[Point], fronts: _Fronts) -> None:
    header = ['k0', 'k1', 'method', 'samples', 'nominal_inferences', 'inferences', 'seconds']
    header += [*fronts, *(f'front_{name}' for name in fronts)]
    lines: list[list[object]] = []
    for point in points:
        setting = point.setting
        seconds = '' if point.seconds is None else f'{point.seconds:.6f}'
        line: list[object] = [
            setting.k0,
            setting.k1,
            setting.method if setting.k1 else '',
            setting.samples,
            sum(setting.inferences()),
            f'{point.inferences:.2f}',
            seconds,
        ]
        line += [f'{value:.6f}' for value in point.values.values()]
        line += [int(point in front) for front in fronts.values()]
        lines.append(line)
    write_csv(path, header, lines)


def _plot_fronts(path: str, points: Sequence[Point], fronts: _Fronts) -> None:
    """Draw a panel for each measure: the points of each series, and the front."""
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {name: {} for name in fronts}
    for point in sorted(points, key=lambda point: point.inferences):
        for name, panel in panels.items():
            series = panel.setdefault(point.setting.series, [])
            series.append((point.inferences, point.values[name]))
    named: dict[str, list[NamedPoint]] = {}
    for name, front in fronts.items():
        named[name] = [
            NamedPoint(str(point.setting), point.inferences, point.values[name]) for point in front
        ]
    plot_points(path, panels, named, 'inferences a query')


def _print_how_to_run(point: Point) -> None:
    """Print the flags that rerank so, and what a query then costs."""
    setting = point.setting
    stages = f'MONO@{setting.k0}'
    if setting.k1:
        method = setting.method if setting.samples is None else f'sample={setting.samples}'
        stages += f' --reranker DUO@{setting.k1}:{method}'
    took = '' if point.seconds is None else f', {point.seconds:.3f} s'
    print(f'run it with: --reranker {stages}')
    print(f'predicted: {point.inferences:.1f} inferences{took} a query')
