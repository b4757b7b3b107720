"""The command `evaluate epic-pruning`: storage, latency and quality of EPIC's vectors, pruned and quantised."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyserini_repbert.commands import recording
from pyserini_repbert.commands.advice import model_update
from pyserini_repbert.commands.command import add_corpus_form, parser, positive_int, precision, progress, zero_or_more
from pyserini_repbert.commands.encode import add_model_arguments
from pyserini_repbert.commands.output_files import parsed
from pyserini_repbert.commands.planned import WEIGHTS
from pyserini_repbert.names.topics import load_qrels

_PRUNE = [0, 2000, 1000, 500, 100]


def main(arguments: Sequence[str]) -> None:
    """Measure every setting, and print one table."""
    options = parsed(_parser(), arguments)
    import tempfile
    from pathlib import Path

    from pyserini_repbert.data.runs import read_run
    from pyserini_repbert.download import forbid_downloads
    from pyserini_repbert.encode.epic import EpicEncoder
    from pyserini_repbert.evaluate.measures import parse_measures
    from pyserini_repbert.evaluate.studies.epic import compare_pruning
    from pyserini_repbert.evaluate.tables import markdown, write_csv
    from pyserini_repbert.models.checkpoints.used import used_models
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


def _parser() -> argparse.ArgumentParser:
    description = 'Rerank a run with pruned and quantised EPIC vectors: what that saves and costs.'
    made = parser('evaluate epic-pruning', description)
    made.add_argument('--model', required=True, help='an EPIC checkpoint: catalog name or folder')
    made.add_argument('--corpus', required=True, help='the corpus that was searched, or a collection of the catalog')
    add_corpus_form(made)
    made.add_argument('--topics', required=True, help="a file, a catalog name, or one of Pyserini's names")
    made.add_argument('--qrels', required=True, help='judgments: a file, or a name in the catalog or in Pyserini')
    made.add_argument('--run', required=True, help="the first stage's run file")
    made.add_argument('--hits', type=positive_int, default=1000, help='hits reranked')
    made.add_argument('--prune', type=_kept, nargs='+', default=_PRUNE, help='weights kept of a passage; 0, or all')
    made.add_argument('--weights', choices=tuple(WEIGHTS), nargs='+', default=['fp16', 'uint8'], help='how stored')
    made.add_argument('--measures', nargs='+', default=['MRR@10', 'nDCG@10'], help="in ir_measures' form")
    made.add_argument('--folder', help='keep the indexes there, and use those that are there')
    made.add_argument('--csv', metavar='FILE', help='write the values as CSV')
    add_model_arguments(made)
    return made


def _kept(text: str) -> int:
    return 0 if text == 'all' else zero_or_more(text)
