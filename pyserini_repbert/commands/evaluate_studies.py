"""`evaluate fusion-table`, `consistency`, `recall-depth` and `rerank-depth`.

Each prints tables, and writes CSV files and plots on request.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence

from pyserini_repbert.commands.command import parser, positive_int, zero_or_more
from pyserini_repbert.commands.evaluate_comparing import add_latex_flags
from pyserini_repbert.commands.flags import (
    FUSION_SETTINGS,
    add_flags,
    named_paths,
    parse_flags,
    read_named,
    write_values,
)
from pyserini_repbert.commands.fusion import METHODS, check_scores, fusion_of_flags
from pyserini_repbert.commands.model_grades import load_judgments
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.comparisons import ComparisonSettings
from pyserini_repbert.evaluate.measures import Evaluation, parse_measures, tabulate_means
from pyserini_repbert.evaluate.plots import plot_lines, plot_matrices
from pyserini_repbert.evaluate.study_tables import depth_tables, fusion_tables
from pyserini_repbert.evaluate.tables import markdown, percent, write_csv
from pyserini_repbert.ranking import Run


def fusion_table(arguments: Sequence[str]) -> None:
    """Print the measures of each pair of runs, fused (RepBERT Tables 3 and 4)."""
    flags = parser(
        'evaluate fusion-table',
        'Fuse every ordered pair of runs: measures, and what fusing changes.',
    )
    add_flags(flags, 'csv', 'plot', 'overwrite', 'runs', 'qrels', 'measures')
    flags.add_argument('--method', default=METHODS[0], choices=METHODS, help='how pairs are fused')
    add_flags(flags, *FUSION_SETTINGS, 'depth', 'hits')
    add_latex_flags(flags, "the row's run alone")
    options = parse_flags(flags, arguments)
    from pyserini_repbert.evaluate.studies import fusion

    settings = fusion_of_flags(options.method, options).fusion_settings
    measures = parse_measures(options.measures)
    qrels = load_judgments(options.qrels)
    paths = named_paths(options.runs)
    check_scores(options.method, paths.values())
    runs = dict(read_named(paths, options.quiet, options.depth))
    evaluations = fusion.evaluate_fusions(runs, qrels, measures, settings, options.hits or None)
    table = tabulate_means(evaluations)
    if options.latex:
        how = f'fused by {options.method}, the run of the row first'
        for text in fusion_tables(evaluations, ComparisonSettings(options.test), how):
            print(text, end='\n\n')
    else:
        _print_fusions(table)
    if options.csv:
        header = ['measure', 'first', 'second', 'value', 'change']
        write_csv(options.csv, header, _changes(table))
    if options.plot:
        plot_matrices(options.plot, table)


def _print_fusions(table: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """Print a table for each measure, with the changes from the row's single run."""
    for measure, rows in table.items():
        cells = []
        for column, (name, row) in enumerate(rows.items()):
            cells.append([name, *_cells(list(row.values()), base=column)])
        print(markdown([measure, *(f'+{name}' for name in rows)], cells), end='\n\n')


def _changes(table: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[list[str]]:
    """Measure, first run, second run, value, and its change from the single first run."""
    lines = []
    for measure, rows in table.items():
        for first, row in rows.items():
            for second, value in row.items():
                change = value - row[first]
                lines.append([measure, first, second, f'{value:.6f}', f'{change:.6f}'])
    return lines


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
    options = parse_flags(flags, arguments)
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
        '--rel', type=positive_int, default=1, help='lowest grade of a relevant document'
    )
    options = parse_flags(flags, arguments)
    from pyserini_repbert.evaluate.studies.depths import recall_at_depths

    qrels = load_judgments(options.qrels)
    _show_by_depth(
        options, 'recall', lambda run: recall_at_depths(run, qrels, options.depths, options.rel)
    )


def _show_by_depth(
    options: argparse.Namespace, what: str, measure: Callable[[Run], dict[int, float]]
) -> None:
    """Print a value by depth for each run, and write the files.

    `measure` gives a run's values by depth.
    """
    values = {
        name: measure(run) for name, run in read_named(named_paths(options.runs), options.quiet)
    }
    rows = []
    for name, by_depth in values.items():
        rows.append([name, *(f'{value:.3f}' for value in by_depth.values())])
    depths = next(iter(values.values()))
    print(markdown([what, *(f'@{depth}' for depth in depths)], rows))
    write_values(options.csv, ['run', 'depth', what.replace(' ', '_')], values)
    if options.plot:
        plot_lines(options.plot, {what: values}, 'depth')


def rerank_depth(arguments: Sequence[str]) -> None:
    """Print measures by reranking depth (RepBERT Table 2 and Figure 1b)."""
    options = _parse_rerank_depth(arguments)
    from pyserini_repbert.data.runs import read_run
    from pyserini_repbert.evaluate.studies.depths import count_unscored, evaluate_depths

    measures = parse_measures(options.measures)
    qrels = load_judgments(options.qrels)
    evaluations: dict[str, dict[int, Evaluation]] = {}
    notes = []
    named_runs = read_named(named_paths(options.runs), options.quiet)
    for (name, run), path in zip(named_runs, options.reranked, strict=True):
        reranked = read_run(path)
        evaluations[name] = dict(evaluate_depths(run, reranked, qrels, measures, options.depths))
        n_unscored = count_unscored(run, reranked, qrels, max(options.depths))
        if n_unscored:
            notes.append(
                f'{n_unscored} hits of {name} have no score in {path}: they stay below those that '
                f'have one.'
            )
    panels = tabulate_means(evaluations)
    if options.latex:
        for text in depth_tables(evaluations, ComparisonSettings(options.test)):
            print(text, end='\n\n')
    else:
        for measure, panel in panels.items():
            _print_depths(measure, panel)
    for note in notes:
        # A line of LaTeX's comment where tables are of LaTeX.
        print(f'% {note}' if options.latex else note)
    write_values(options.csv, ['measure', 'run', 'depth', 'value'], panels)
    if options.plot:
        plot_lines(options.plot, panels, 'reranked hits')


def _print_depths(measure: str, panel: Mapping[str, Mapping[int, float]]) -> None:
    """Print a row for each depth, with the values of the runs.

    Changes are relative to the first run; for a single run, to its first depth.
    """
    depths = list(next(iter(panel.values())))
    columns = [list(by_depth.values()) for by_depth in panel.values()]
    if len(columns) == 1:
        rows = [[cell] for cell in _cells(columns[0], base=0)]
    else:
        rows = [_cells(values, base=0) for values in zip(*columns, strict=True)]
    cells = [[str(depth), *row] for depth, row in zip(depths, rows, strict=True)]
    print(markdown([f'{measure} at depth', *panel], cells), end='\n\n')


def _parse_rerank_depth(arguments: Sequence[str]) -> argparse.Namespace:
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
    add_latex_flags(flags, 'the first run at the same depth; of one run, from the first depth')
    options = parse_flags(flags, arguments)
    if len(options.reranked) != len(options.runs):
        given = f'{len(options.runs)} runs and {len(options.reranked)} reranked ones'
        raise InputError(
            f'{given} were given: name the reranked run of each first stage, in the same order'
        )
    return options


def _cells(values: Sequence[float], base: int) -> list[str]:
    """The cells of a row or a column: each value with its change; the best ones bold.

    The change is from the value at `base`, which has none.
    """
    best = max(values)
    cells = []
    for number, value in enumerate(values):
        text = f'{value:.3f}'
        if number != base:
            text += f' ({percent(value, values[base])})'
        cells.append(f'**{text}**' if value == best else text)
    return cells
