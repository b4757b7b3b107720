"""The command `evaluate epic-pruning`: what pruned and quantised EPIC vectors save and cost."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert.commands.command import parser, positive_int, progress, pruned_to
from pyserini_repbert.commands.evaluate_comparing import add_latex_flags
from pyserini_repbert.commands.flags import add_flags, parse_flags, record_output
from pyserini_repbert.commands.index import WEIGHTS
from pyserini_repbert.commands.model_grades import load_judgments
from pyserini_repbert.evaluate.comparisons import ComparisonSettings
from pyserini_repbert.evaluate.measures import NamedMeasure, parse_measures
from pyserini_repbert.evaluate.plots import plot_lines
from pyserini_repbert.evaluate.study_tables import pruning_table
from pyserini_repbert.evaluate.tables import markdown, write_csv
from pyserini_repbert.names.topics import load_topics

if TYPE_CHECKING:
    from pyserini_repbert.evaluate.studies.epic import PruningResult

_PRUNE = [0, 2000, 1000, 500, 100]


def epic_pruning(arguments: Sequence[str]) -> None:
    """Print size, time and quality of pruned and quantised EPIC vectors (EPIC Table 1)."""
    options = _parse_epic_pruning(arguments)
    from pyserini_repbert.data.runs import read_run
    from pyserini_repbert.evaluate.studies.epic import PruningSetting, compare_pruning
    from pyserini_repbert.models.checkpoints.checkpoint import used_models
    from pyserini_repbert.names.corpora import open_corpus
    from pyserini_repbert.systems.epic.encoder import EpicEncoder

    measures = parse_measures(options.measures)
    settings = []
    for weights in options.weights:
        settings += [PruningSetting(prune, WEIGHTS[weights]) for prune in options.prune]
    encoder = EpicEncoder(options.model, options.device, options.precision)
    corpus = open_corpus(options.corpus, options.corpus_format, options.fields)
    topics = load_topics(options.topics)
    run = read_run(options.run, options.hits)
    qrels = load_judgments(options.qrels)
    with (
        tempfile.TemporaryDirectory() as temporary,
        progress(len(settings), 'prune', 'settings', options.quiet) as bar,
    ):
        results = compare_pruning(
            encoder,
            corpus,
            topics,
            run,
            qrels,
            measures,
            settings,
            Path(options.folder or temporary),
            k=options.hits,
            on_progress=bar.update,
        )
    names = [named.name for named in measures]
    header = ['r', 'weights', 'bytes a passage', 'ms a query', *names, 'same in top 10']
    rows = [_pruning_row(result, measures) for result in results]
    if options.latex:
        print(pruning_table(results, ComparisonSettings(options.test)))
    else:
        print(markdown(header, rows))
        print(f'\nComputed in {encoder.precision}.')
    if options.csv:
        plain_rows = []
        for row in rows:
            plain_rows.append([cell.replace(',', '') for cell in row])
        write_csv(options.csv, header, plain_rows)
        roles = ('run', 'corpus', 'topics', 'qrels')
        record_output(options, options.csv, roles, used_models(encoder))
    if options.plot:
        _plot_pruning(options.plot, results)


def _plot_pruning(path: str, results: Sequence[PruningResult]) -> None:
    """Draw a panel for each measure: quality by the bytes of a passage (EPIC section 3)."""
    panels: dict[str, dict[str, dict[int, float]]] = {}
    for result in sorted(results, key=lambda result: result.bytes_per_passage):
        for measure, value in result.evaluation.means.items():
            lines = panels.setdefault(measure, {})
            line = lines.setdefault(result.setting.weights, {})
            line[round(result.bytes_per_passage)] = value
    plot_lines(path, panels, 'bytes a passage')


def _parse_epic_pruning(arguments: Sequence[str]) -> argparse.Namespace:
    flags = parser(
        'evaluate epic-pruning',
        'Rerank a run with pruned, quantised EPIC vectors: savings and costs.',
    )
    add = flags.add_argument
    add('--model', required=True, help='an EPIC checkpoint: catalog name or folder')
    add(
        '--corpus',
        required=True,
        help='the corpus that was searched, or a collection of the catalog',
    )
    add_flags(flags, 'corpus_format', 'fields')
    add_flags(flags, 'topics', required=True)
    add_flags(flags, 'qrels')
    add('--run', required=True, help="the first stage's run file")
    add_flags(flags, 'hits', type=positive_int, help='hits reranked')
    add(
        '--prune',
        type=pruned_to,
        nargs='+',
        default=_PRUNE,
        help="weights to keep of each passage; 'all' or 0: all",
    )
    add(
        '--weights', choices=tuple(WEIGHTS), nargs='+', default=['fp16', 'uint8'], help='how stored'
    )
    add_flags(flags, 'measures', default=['MRR@10', 'nDCG@10'])
    add('--folder', help='folder for the indexes; existing ones are used again')
    add_flags(flags, 'csv', 'plot', 'overwrite', 'device', 'precision', 'offline')
    add_latex_flags(flags, 'the first setting')
    return parse_flags(flags, arguments)


def _pruning_row(result: PruningResult, measures: Sequence[NamedMeasure]) -> list[str]:
    row = [str(result.setting.prune or 'all'), result.setting.weights]
    row.append(f'{result.bytes_per_passage:,.0f}')
    row.append(f'{result.milliseconds:.2f}')
    row += [f'{result.evaluation.means[named.name]:.4f}' for named in measures]
    row.append(f'{result.agreement:.1%}')
    return row
