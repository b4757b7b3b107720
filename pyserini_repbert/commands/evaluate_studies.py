"""`evaluate fusion-table`, `consistency`, `recall-depth` and `rerank-depth`: tables, on request
CSV files and plots.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from pyserini_repbert.commands.command import parser, positive_int, zero_or_more
from pyserini_repbert.commands.flags import (
    FORMULA,
    add_flags,
    named_paths,
    parsed,
    read_named,
    write_values,
)
from pyserini_repbert.commands.fusion import METHODS, check_scores, formula
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import parse_measures
from pyserini_repbert.evaluate.plots import plot_lines, plot_matrices
from pyserini_repbert.evaluate.tables import markdown, percent, write_csv
from pyserini_repbert.names.topics import load_qrels
from pyserini_repbert.ranking import Run


def fusion_table(arguments: Sequence[str]) -> None:
    """Print the measures of each pair of runs, fused (RepBERT Tables 3 and 4)."""
    flags = parser(
        'evaluate fusion-table',
        'Fuse every ordered pair of runs: measures, and what fusing changes.',
    )
    add_flags(flags, 'csv', 'plot', 'overwrite', 'runs', 'qrels', 'measures')
    flags.add_argument('--method', default=METHODS[0], choices=METHODS, help='how pairs are fused')
    add_flags(flags, *FORMULA, 'depth', 'hits')
    options = parsed(flags, arguments)
    from pyserini_repbert.evaluate.studies import fusion

    settings = formula(options.method, options)
    measures = parse_measures(options.measures)
    qrels = load_qrels(options.qrels)
    paths = named_paths(options.runs)
    check_scores(options.method, paths.values())
    runs = dict(read_named(paths, options.quiet, options.depth))
    table = fusion.fusion_table(runs, qrels, measures, k=options.hits or None, **settings)
    lines: list[tuple[str, ...]] = []
    for measure, rows in table.items():
        cells = [
            [name, *_cells([*row.values()], place)]
            for place, (name, row) in enumerate(rows.items())
        ]
        print(markdown([measure, *(f'+{name}' for name in runs)], cells), end='\n\n')
        for name, row in rows.items():
            lines += [
                (measure, name, other, f'{one:.6f}', f'{one - row[name]:.6f}')
                for other, one in row.items()
            ]
    if options.csv:
        write_csv(options.csv, ['measure', 'first', 'second', 'value', 'change'], lines)
    if options.plot:
        plot_matrices(options.plot, table)


def consistency(arguments: Sequence[str]) -> None:
    """Print consistency factors by depth (RepBERT eq. 5 and Figure 2)."""
    flags = parser(
        'evaluate consistency', "The share of each run's hits that a reference run has, too."
    )
    add_flags(flags, 'csv', 'plot', 'overwrite', 'runs')
    flags.add_argument(
        '--reference', required=True, metavar='RUN', help='the run that gives the candidates'
    )
    flags.add_argument(
        '--reference-depth', type=positive_int, default=1000, help='how many of its hits count'
    )
    flags.add_argument(
        '--depths', type=positive_int, nargs='+', default=[10, 100, 1000], help='hits to look at'
    )
    options = parsed(flags, arguments)
    from pyserini_repbert.data.runs import read_run
    from pyserini_repbert.evaluate.studies.depths import consistency_factors

    reference = read_run(options.reference, options.reference_depth)
    _show_by_depth(
        options,
        'consistency factor',
        lambda run: consistency_factors(run, reference, options.depths),
    )


def recall_depth(arguments: Sequence[str]) -> None:
    """Print recall by depth (RepBERT Figure 1a)."""
    flags = parser('evaluate recall-depth', 'Recall of each run at growing depths.')
    add_flags(flags, 'csv', 'plot', 'overwrite', 'runs', 'qrels')
    flags.add_argument(
        '--depths', type=positive_int, nargs='+', default=[5, 10, 50, 100, 500, 1000], help='hits'
    )
    flags.add_argument(
        '--rel', type=positive_int, default=1, help='least grade of a relevant document'
    )
    options = parsed(flags, arguments)
    from pyserini_repbert.evaluate.studies.depths import recall_at_depths

    qrels = load_qrels(options.qrels)
    _show_by_depth(
        options, 'recall', lambda run: recall_at_depths(run, qrels, options.depths, options.rel)
    )


def _show_by_depth(
    options: argparse.Namespace, what: str, measured: Callable[[Run], dict[int, float]]
) -> None:
    """Print the values that `measured` gives by depth for each of the runs, and write their
    files.
    """
    values = {
        name: measured(run) for name, run in read_named(named_paths(options.runs), options.quiet)
    }
    depths = next(iter(values.values()))
    rows = [
        [name, *(f'{value:.3f}' for value in by_depth.values())]
        for name, by_depth in values.items()
    ]
    print(markdown([what, *(f'@{depth}' for depth in depths)], rows))
    write_values(options.csv, ['run', 'depth', what.replace(' ', '_')], values)
    if options.plot:
        plot_lines(options.plot, {what: values}, 'depth')


def rerank_depth(arguments: Sequence[str]) -> None:
    """Print measures by reranking depth (RepBERT Table 2 and Figure 1b)."""
    flags = parser(
        'evaluate rerank-depth',
        'Score runs whose best hits are reranked by given scores, ever deeper.',
    )
    add_flags(flags, 'csv', 'plot', 'overwrite', 'runs', 'qrels', 'measures')
    flags.add_argument(
        '--reranked',
        nargs='+',
        required=True,
        metavar='RUN',
        help="each run's hits, with new scores",
    )
    depths = [0, 5, 10, 50, 500, 1000]
    flags.add_argument(
        '--depths', type=zero_or_more, nargs='+', default=depths, help='hits to rerank, 0 for none'
    )
    options = parsed(flags, arguments)
    from pyserini_repbert.data.runs import read_run
    from pyserini_repbert.evaluate.studies.depths import rerank_at_depths, unscored

    if len(options.reranked) != len(options.runs):
        given = f'{len(options.runs)} runs and {len(options.reranked)} reranked ones'
        raise InputError(
            f'{given} were given: name the reranked run of each first stage, in the same order'
        )
    measures = parse_measures(options.measures)
    qrels = load_qrels(options.qrels)
    values: dict[str, dict[int, dict[str, float]]] = {}
    notes = []
    for (name, run), path in zip(
        read_named(named_paths(options.runs), options.quiet), options.reranked, strict=True
    ):
        reranked = read_run(path)
        values[name] = rerank_at_depths(run, reranked, qrels, measures, options.depths)
        if count := unscored(run, reranked, qrels, max(options.depths)):
            notes.append(
                f'{count} hits of {name} have no score in {path}: they stay below those that have '
                f'one.'
            )
    panels = {
        m.name: {
            n: {d: by_measure[d][m.name] for d in by_measure} for n, by_measure in values.items()
        }
        for m in measures
    }
    for measure, runs in panels.items():
        rows = {depth: [by_depth[depth] for by_depth in runs.values()] for depth in options.depths}
        cells = [[str(depth), *_cells(of_runs, 0)] for depth, of_runs in rows.items()]
        print(markdown([f'{measure} at depth', *runs], cells), end='\n\n')
    print(*notes, sep='\n', end='\n' * bool(notes))
    write_values(options.csv, ['measure', 'run', 'depth', 'value'], panels)
    if options.plot:
        plot_lines(options.plot, panels, 'reranked hits')


def _cells(values: Sequence[float], base: int) -> list[str]:
    """The cells of a row: each value with its change from the one at place `base`; the best ones
    bold.
    """
    changes = [
        '' if place == base else f' ({percent(value, values[base])})'
        for place, value in enumerate(values)
    ]
    texts = [f'{value:.3f}{change}' for value, change in zip(values, changes, strict=True)]
    return [
        f'**{text}**' if value == max(values) else text
        for text, value in zip(texts, values, strict=True)
    ]
