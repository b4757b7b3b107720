"""The command `evaluate layers`: a CEDR model's rate and quality by number of layers, its rate by document length."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pyserini_repbert.commands.advice import model_update
from pyserini_repbert.commands.command import (
    add_precision_arguments,
    finite_number,
    parser,
    positive_int,
    precision,
    progress,
    usage,
)
from pyserini_repbert.commands.evaluate_measures import named_paths
from pyserini_repbert.commands.output_files import parsed, write_values
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.cedr.settings import FIRST_STAGES
from pyserini_repbert.names.topics import load_qrels

if TYPE_CHECKING:
    from pyserini_repbert.ranking import Candidate, Query


def main(arguments: Sequence[str]) -> None:
    """Print quality by layers and rates by length (CEDR Figures 2a and 2b)."""
    options = parsed(_parser(), arguments)
    if not (options.run or options.lengths):
        raise InputError('nothing was asked for: give --run (quality by layers), --lengths (rates by length), or both')
    for flags, needed in ((('csv', 'plot'), 'run'), (('csv_lengths', 'plot_lengths'), 'lengths')):
        if (given := next(filter(vars(options).get, flags), None)) and not getattr(options, needed):
            raise usage(f'--{given.replace("_", "-")} is for --{needed}')
    from pyserini_repbert.models.precision import used_precision

    used = used_precision(precision(options), options.device)
    models = named_paths(options.models)
    if options.run:
        _layers(options, models)
    if options.lengths:
        _lengths(options, models)
    print(f'\nComputed in {used}.')


def _layers(options: argparse.Namespace, models: Mapping[str, str]) -> None:
    for flag in ('topics', 'qrels'):
        if getattr(options, flag) is None:
            raise InputError(f'--run needs --{flag}: name a file, or a name in the catalog or in Pyserini')
    from pyserini_repbert.evaluate.measures import parse_measures
    from pyserini_repbert.evaluate.plots import plot_lines
    from pyserini_repbert.evaluate.studies.layers import by_measure, layer_curve
    from pyserini_repbert.evaluate.tables import markdown
    from pyserini_repbert.models.bert_config import BertConfig
    from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
    from pyserini_repbert.names.topics import load_topics
    from pyserini_repbert.rerank.cedr import CedrReranker

    measures = parse_measures(options.measures)
    topics = load_topics(options.topics)
    asked = {query.qid for query in topics}
    qrels = {qid: own for qid, own in load_qrels(options.qrels).items() if qid in asked}
    if not qrels:
        raise InputError(f'{options.qrels} judges no topic of {options.topics}: do they belong together?')
    queries, lists = _candidates(options, topics)
    found = {}
    for name, path in models.items():
        checkpoint = open_checkpoint(path, 'rerankers')
        all_layers = range(1, BertConfig.from_dict(checkpoint.config).num_hidden_layers + 1)
        layers = sorted(set(options.layers or all_layers))
        reranker_of = partial(CedrReranker, checkpoint, options.device, precision(options), options.max_length)
        with progress(len(layers) * sum(map(len, lists)), name, 'documents', options.quiet) as bar:
            update = model_update(bar.update, options)
            found[name] = layer_curve(reranker_of, layers, queries, lists, qrels, measures, update)
    panels = by_measure(found)
    rows = [
        [name, str(n), *(f'{mean:.4f}' for mean in result.means.values()), f'{result.documents_per_second:.1f}']
        for name, curve in found.items()
        for n, result in curve.items()
    ]
    print(markdown(['model', 'layers', *panels], rows), end='\n\n')
    write_values(options.csv, ['measure', 'model', 'layers', 'value'], panels)
    if options.plot:
        plot_lines(options.plot, panels, 'layers', logarithmic=False)


def _lengths(options: argparse.Namespace, models: Mapping[str, str]) -> None:
    from pyserini_repbert.evaluate.plots import plot_lines
    from pyserini_repbert.evaluate.studies.layers import length_rates
    from pyserini_repbert.evaluate.tables import markdown
    from pyserini_repbert.rerank.cedr import CedrReranker

    longest = max(options.max_length or 0, *options.lengths)
    rates = {}
    with progress(len(models), 'rates by length', 'models', options.quiet) as bar:
        for name, path in models.items():
            reranker = CedrReranker(path, options.device, precision(options), longest)
            rates[name] = length_rates(reranker, options.lengths, options.seconds)
            bar.update()
    header = ['documents/s at length', *map(str, options.lengths)]
    print(markdown(header, [[name, *(f'{rate:.1f}' for rate in own.values())] for name, own in rates.items()]))
    write_values(options.csv_lengths, ['model', 'length', 'documents_per_second'], rates)
    if options.plot_lengths:
        plot_lines(options.plot_lengths, {'documents/s': rates}, 'document length (wordpieces)', logarithmic=False)


def _candidates(options: argparse.Namespace, topics: Sequence[Query]) -> tuple[list[Query], list[list[Candidate]]]:
    """The run's topics, and the candidates of each with their texts."""
    from pyserini_repbert.data.runs import read_run
    from pyserini_repbert.names.texts import open_texts
    from pyserini_repbert.ranking import Candidate

    run = read_run(options.run, options.hits or FIRST_STAGES[options.setting].depth)
    queries = [query for query in topics if query.qid in run]
    if not queries:
        raise InputError(f'run {options.run} has no topic of {options.topics}: do they belong together?')
    wanted = list(dict.fromkeys(docid for query in queries for docid in run[query.qid].docids))
    texts = dict(zip(wanted, open_texts(options.corpus, options.index, wanted).texts(wanted), strict=True))
    lists = [[Candidate(hit.docid, hit.score, texts[hit.docid]) for hit in run[query.qid]] for query in queries]
    return queries, lists


def _parser() -> argparse.ArgumentParser:
    made = parser(
        'evaluate layers',
        "CEDR's Figure 2: quality and rate when only the first layers of BERT run (--run), rate by document length "
        '(--lengths).',
    )
    made.add_argument('--models', nargs='+', required=True, metavar='MODEL', help='CEDR checkpoints: X or NAME=X')
    made.add_argument('--run', help='a first-stage run, whose hits are reranked')
    made.add_argument('--topics', help="a file, a catalog name, or one of Pyserini's names")
    made.add_argument('--qrels', help='judgments: a file, or a name in the catalog or in Pyserini')
    made.add_argument('--corpus', help='where texts come from: a file, a folder, ir_datasets:ID, a collection')
    made.add_argument('--index', help='where texts come from: an index that stores them')
    made.add_argument('--layers', nargs='+', type=positive_int, help='numbers of layers; default: each')
    depths = ', '.join(f'{name} {stage.depth} of {stage.sparse}' for name, stage in FIRST_STAGES.items())
    made.add_argument('--setting', default='robust04', choices=list(FIRST_STAGES), help=f'hits to rerank: {depths}')
    made.add_argument('--hits', type=positive_int, help="hits to rerank, if not the setting's")
    made.add_argument('--measures', nargs='+', default=['P@20', 'nDCG@20'], help="in ir_measures' form")
    made.add_argument('--lengths', nargs='+', type=positive_int, metavar='N', help='wordpieces of documents')
    made.add_argument('--seconds', type=finite_number, default=1.0, help='how long to measure each length, at least')
    made.add_argument('--max-length', type=positive_int, help="wordpieces kept of a document; default: the model's")
    made.add_argument('--device', default='cpu', help='cpu, cuda, cuda:N or mps')
    add_precision_arguments(made)
    made.add_argument('--csv', metavar='FILE', help='write the values by layers as CSV')
    made.add_argument('--plot', metavar='FILE', help='write a plot of them, .png, .pdf or .svg (needs matplotlib)')
    made.add_argument('--csv-lengths', metavar='FILE', help='write the rates by length as CSV')
    made.add_argument('--plot-lengths', metavar='FILE', help='write a plot of them')
    return made
