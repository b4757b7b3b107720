"""The commands `evaluate epic-values` and `evaluate epic-pruning`: values of EPIC's vectors, what pruning costs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyserini_repbert.commands import recording
from pyserini_repbert.commands.advice import model_update
from pyserini_repbert.commands.command import add_corpus_form, parser, positive_int, precision, progress, zero_or_more
from pyserini_repbert.commands.encode import add_model_arguments
from pyserini_repbert.commands.evaluate_flags import add_measures, add_qrels
from pyserini_repbert.commands.index_epic import WEIGHTS
from pyserini_repbert.commands.output_files import add_value_files, parsed
from pyserini_repbert.evaluate.measures import parse_measures
from pyserini_repbert.evaluate.plots import plot_bars
from pyserini_repbert.evaluate.tables import markdown, write_csv
from pyserini_repbert.names.topics import load_qrels


def values_main(arguments: Sequence[str]) -> None:
    """Count the values of an index; print a table, write CSV and a plot on request (EPIC Figure 2)."""
    made = parser('evaluate epic-values', "How often each value occurs in an EPIC index's vectors (EPIC Figure 2).")
    made.add_argument('--index', required=True, help='an EPIC index; one with --prune 0 has all values')
    add_value_files(made)
    options = parsed(made, arguments)
    from pyserini_repbert.evaluate.studies.epic import value_counts
    from pyserini_repbert.index.epic import EpicBundle

    index = EpicBundle(options.index)
    values = value_counts(index)
    counts = {f'{end:.1f}': count for end, count in values.counts.items()}
    rows = [[end, f'{count:,}', f'{count / values.total:.4%}'] for end, count in counts.items()]
    print(markdown(['values up to', 'count', 'share'], rows))
    rest = f', among them {values.pruned:,} that the index does not keep.' if values.pruned else '.'
    print(f'\n{values.share_up_to(0.1):.1%} of {values.total:,} values are 0.1 or below{rest}')
    if options.csv:
        write_csv(options.csv, ['up_to', 'count'], counts.items())
    if options.plot:
        title = f'{len(index):,} passages' + (f', {index.settings.prune} terms each' if index.settings.prune else '')
        plot_bars(options.plot, {title: counts}, 'value, rounded up', 'frequency')


def pruning_parser() -> argparse.ArgumentParser:
    """The parser of `evaluate epic-pruning`."""
    description = 'Rerank a run with pruned and quantised EPIC vectors: what that saves and costs.'
    made = parser('evaluate epic-pruning', description)
    made.add_argument('--model', required=True, help='an EPIC checkpoint: catalog name or folder')
    made.add_argument('--corpus', required=True, help='the corpus that was searched, or a collection of the catalog')
    add_corpus_form(made)
    made.add_argument('--topics', required=True, help="a file, a catalog name, or one of Pyserini's names")
    add_qrels(made)
    made.add_argument('--run', required=True, help="the first stage's run file")
    made.add_argument('--hits', type=positive_int, default=1000, help='hits reranked')
    prune = [0, 2000, 1000, 500, 100]
    made.add_argument('--prune', type=_kept, nargs='+', default=prune, help='weights kept of a passage; 0, or all')
    made.add_argument('--weights', choices=tuple(WEIGHTS), nargs='+', default=['fp16', 'uint8'], help='how stored')
    add_measures(made, ['MRR@10', 'nDCG@10'])
    made.add_argument('--folder', help='keep the indexes there, and use those that are there')
    made.add_argument('--csv', metavar='FILE', help='write the values as CSV')
    add_model_arguments(made)
    return made


def pruning_main(arguments: Sequence[str]) -> None:
    """Measure every setting of pruning and quantising, and print one table."""
    options = parsed(pruning_parser(), arguments)
    import tempfile
    from pathlib import Path

    from pyserini_repbert.data.runs import read_run
    from pyserini_repbert.download import forbid_downloads
    from pyserini_repbert.encode.epic import EpicEncoder
    from pyserini_repbert.evaluate.studies.epic import compare_pruning
    from pyserini_repbert.models.checkpoints.checkpoint import used_models
    from pyserini_repbert.names.corpora import open_corpus
    from pyserini_repbert.names.topics import load_topics

    forbid_downloads(options.offline)
    measures = parse_measures(options.measures)
    settings = [(prune, WEIGHTS[weights]) for weights in options.weights for prune in options.prune]
    encoder = EpicEncoder(options.model, options.device, precision(options))
    with tempfile.TemporaryDirectory() as temporary, progress(len(settings), 'prune', 'settings', options.quiet) as bar:
        results = compare_pruning(
            encoder,
            open_corpus(options.corpus, options.corpus_format, options.fields),
            load_topics(options.topics),
            read_run(options.run, options.hits),
            load_qrels(options.qrels),
            measures,
            settings,
            Path(options.folder or temporary),
            options.hits,
            model_update(bar.update, options),
        )
    header = ['r', 'weights', 'bytes a passage', 'ms a query', *(named.name for named in measures), 'same in top 10']
    rows = [
        [str(own.prune or 'all'), own.weights, f'{own.bytes_per_passage:,.0f}', f'{own.milliseconds:.2f}']
        + [f'{own.means[named.name]:.4f}' for named in measures]
        + [f'{own.agreement:.1%}']
        for own in results
    ]
    print(markdown(header, rows))
    print(f'\nComputed in {encoder.precision}.')
    if options.csv:
        write_csv(options.csv, header, [[cell.replace(',', '') for cell in row] for row in rows])
        recording.write(options, options.csv, ('run', 'corpus', 'topics', 'qrels'), used_models([encoder]))


def _kept(text: str) -> int:
    return 0 if text == 'all' else zero_or_more(text)
