"""The command `evaluate tune-cutoff`: how many hits to rerank, found on validation topics."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_repbert.commands.command import parser, positive_int, zero_or_more
from pyserini_repbert.commands.output_files import add_value_files, parsed
from pyserini_repbert.names.topics import load_qrels


def main(arguments: Sequence[str]) -> None:
    """Try every cut-off, and print the best."""
    made = parser('evaluate tune-cutoff', 'How many hits of a first stage to rerank: the best on validation topics.')
    made.add_argument('--run', required=True, help="the first stage's run file")
    made.add_argument('--reranked', required=True, help='its hits with the scores of the reranker')
    made.add_argument('--qrels', required=True, help='judgments of the validation topics: a file or a name')
    made.add_argument('--measure', default='MRR@10', help="in ir_measures' form")
    made.add_argument('--max', type=positive_int, default=200, help='try all cut-offs from 0 to this one')
    made.add_argument('--cutoffs', type=zero_or_more, nargs='+', help='try these instead')
    add_value_files(made)
    options = parsed(made, arguments)
    from pyserini_repbert.evaluate.measures import parse_measures
    from pyserini_repbert.evaluate.plots import plot_lines
    from pyserini_repbert.evaluate.studies.cutoff import tune_cutoff
    from pyserini_repbert.evaluate.tables import write_csv
    from pyserini_repbert.formats.runs import read_run

    (measure,) = parse_measures([options.measure])
    qrels = load_qrels(options.qrels)
    first, reranked = read_run(options.run), read_run(options.reranked)
    deepest = max(len(ranking.docids) for ranking in first.values())
    cutoffs = options.cutoffs or range(min(options.max, deepest) + 1)
    found = tune_cutoff(first, reranked, qrels, measure, cutoffs)
    print(f'best cut-off {found.best}: {measure.name} {found.values[found.best]:.4f}', end='')
    print(f' (without reranking {found.values[0]:.4f})' if 0 in found.values else '')
    if options.csv:
        rows = [(cutoff, f'{value:.6f}') for cutoff, value in found.values.items()]
        write_csv(options.csv, ['cutoff', measure.name], rows)
    if options.plot:
        plot_lines(options.plot, {measure.name: {'reranked': found.values}}, 'reranked hits')
