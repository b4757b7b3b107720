"""The command `evaluate ties`: the interval of each measure over all ways to break a run's ties."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_repbert.commands.command import parser
from pyserini_repbert.commands.evaluate_flags import add_measures, add_qrels, named_paths, read_named
from pyserini_repbert.evaluate.measures import parse_measures
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.names.topics import load_qrels


def main(arguments: Sequence[str]) -> None:
    """Print a row for each run and measure."""
    made = parser(
        'evaluate ties', 'Measures of runs with ties broken for the worst, as the run has them, for the best.'
    )
    add_qrels(made)
    made.add_argument('runs', nargs='+', metavar='RUN', help='run files, each as FILE or NAME=FILE')
    add_measures(made)
    made.add_argument(
        '--written-here',
        action='store_true',
        help='the runs were written by this package, which writes a tie as scores one step apart: count it as a tie; '
        'without the flag, this holds for runs beside which a record lies',
    )
    options = made.parse_args(arguments)
    from pyserini_repbert.evaluate.ties import tie_intervals, tied_share, ties_as_scored
    from pyserini_repbert.record import read_record

    measures = parse_measures(options.measures)
    qrels = load_qrels(options.qrels)
    paths = named_paths(options.runs)
    rows = []
    for name, run in read_named(paths, options.quiet):
        run = ties_as_scored(run) if options.written_here or read_record(paths[name]) else run
        share = f'{tied_share(run):.1%}'
        for measure, interval in tie_intervals(run, qrels, measures).items():
            rows.append([name, share, measure, *(f'{value:.4f}' for value in interval)])
    print(markdown(['run', 'tied hits', 'measure', 'lowest', 'as given', 'highest'], rows))
