"""The commands `evaluate tradeoff` and `epic-pruning`: quality against what it costs."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from pyserini_repbert.commands.command import (
    parser,
    positive_int,
    progress,
    pruned_to,
    zero_or_more,
)
from pyserini_repbert.commands.flags import add_flags, parsed, record_output
from pyserini_repbert.commands.index import WEIGHTS
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import parse_measures
from pyserini_repbert.evaluate.plots import plot_points
from pyserini_repbert.evaluate.tables import markdown, write_csv
from pyserini_repbert.names.topics import load_qrels, load_topics

_K0 = [10, 20, 50, 100, 200, 500, 1000]  # of Multi-Stage Figures 2 and 4, and shallower ones
_K1 = [0, 10, 20, 30, 40, 50]  # Multi-Stage Figure 3
_M = [10, 20, 30, 40]


def tradeoff(arguments: Sequence[str]) -> None:
    """Print quality and cost of each setting; CSV, a plot and the best one on request
    (Multi-Stage Figures 2 to 4).
    """
    flags = parser(
        'evaluate tradeoff', 'Quality against inferences a query, replayed from one reranking.'
    )
    flags.add_argument('scores', metavar='FILE.npz', help='what `rerank --pairs` kept')
    add_flags(flags, 'qrels')
    add_flags(flags, 'measures', default=['MRR@10'])  # the first one decides what is best
    add = flags.add_argument
    add(
        '--k0',
        nargs='+',
        type=positive_int,
        default=_K0,
        help='candidates of monoBERT, as far as the file goes',
    )
    add(
        '--k1',
        nargs='+',
        type=zero_or_more,
        default=_K1,
        help='candidates of duoBERT, 0 for none; likewise',
    )
    methods = ['sum', 'binary', 'min', 'max', 'sample']
    add('--methods', nargs='+', default=methods, choices=methods, help='aggregations')
    add('--samples', nargs='+', type=positive_int, default=_M, help="m of 'sample'")
    add_flags(flags, 'hits', type=positive_int, help='hits of a query that are evaluated')
    add_flags(flags, 'csv', 'plot', 'overwrite')
    add('--budget', type=positive_int, metavar='N', help='inferences that a query may take')
    options = parsed(flags, arguments)
    from pyserini_repbert.evaluate.studies import tradeoff as study
    from pyserini_repbert.systems.duobert.saved_scores import read_saved_scores

    measures = parse_measures(options.measures)
    qrels = load_qrels(options.qrels)
    saved, about = read_saved_scores(options.scores)
    deepest = max((len(query.scores) for query in saved), default=0)
    compared = max((len(query.members) for query in saved), default=0)
    if not deepest:
        raise InputError(
            f'{options.scores} has no scores of a first reranker: keep those of two stages'
        )
    chosen = study.settings(options.k0, options.k1, options.methods, options.samples)
    chosen = [setting for setting in chosen if setting.k0 <= deepest and setting.k1 <= compared]
    if not chosen:
        there = f'scores to k0={deepest}, and pairs of {compared} candidates'
        raise InputError(f'{options.scores} has {there}: give --k0 and --k1 within that')
    with progress(len(chosen), 'replay', 'settings', options.quiet) as bar:
        more = (study.seconds_an_inference(about), options.hits, bar.update)
        points, missing = study.trade_off(saved, qrels, chosen, measures, *more)
    if not points:
        raise InputError(
            f'{options.scores} lacks the pairs of all settings: score with --replay-k0'
        )
    fronts = {named.name: study.pareto_front(points, named.name) for named in measures}
    first = measures[0].name
    rows = [
        [
            str(one.setting),
            f'{one.inferences:.1f}',
            '' if one.seconds is None else f'{one.seconds:.3f}',
        ]
        + [f'{value:.4f}' for value in one.values.values()]
        + ['*' if one in fronts[first] else '']
        for one in points
    ]
    print(markdown(['setting', 'inferences', 'seconds', *points[0].values, 'front'], rows))
    if missing:
        depths = ' '.join(str(k0) for k0 in sorted({setting.k0 for setting in missing}))
        print(
            f'\n{len(missing)} settings left out, whose pairs were not compared: --replay-k0 '
            f'{depths}'
        )
    if options.csv:
        lines = []
        for point in points:
            one = point.setting
            seconds = '' if point.seconds is None else f'{point.seconds:.6f}'
            cells = [
                one.k0,
                one.k1,
                one.method if one.k1 else '',
                one.samples,
                sum(one.inferences()),
            ]
            cells += [f'{point.inferences:.2f}', seconds]
            marks = [int(point in front) for front in fronts.values()]
            lines.append([*cells, *(f'{value:.6f}' for value in point.values.values()), *marks])
        header = [
            'k0',
            'k1',
            'method',
            'samples',
            'nominal_inferences',
            'inferences',
            'seconds',
            *fronts,
        ]
        write_csv(options.csv, [*header, *(f'front_{name}' for name in fronts)], lines)
    if options.plot:
        panels: dict[str, dict[str, list[tuple[float, float]]]] = {name: {} for name in fronts}
        for point in sorted(points, key=lambda point: point.inferences):
            for name, panel in panels.items():
                panel.setdefault(point.setting.series, []).append(
                    (point.inferences, point.values[name])
                )
        best = {
            name: [(str(p.setting), p.inferences, p.values[name]) for p in front]
            for name, front in fronts.items()
        }
        plot_points(options.plot, panels, best, 'inferences a query')
    if options.budget:
        point = study.best_within(points, first, options.budget)
        setting = point.setting
        method = setting.method if setting.samples is None else f'sample={setting.samples}'
        stages = f'MONO@{setting.k0}' + (
            f' --reranker DUO@{setting.k1}:{method}' if setting.k1 else ''
        )
        took = '' if point.seconds is None else f', {point.seconds:.3f} s'
        print(
            f'\nbest {first} within {options.budget} inferences a query: '
            f'{point.values[first]:.4f} with {setting}'
        )
        print(f'run it with: --reranker {stages}')
        print(f'predicted: {point.inferences:.1f} inferences{took} a query')


def epic_pruning(arguments: Sequence[str]) -> None:
    """Print size, time and quality of pruned and quantised EPIC vectors (EPIC Table 1)."""
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
    prune = [0, 2000, 1000, 500, 100]
    add(
        '--prune',
        type=pruned_to,
        nargs='+',
        default=prune,
        help="weights kept of a passage; 'all' or 0: all",
    )
    add(
        '--weights', choices=tuple(WEIGHTS), nargs='+', default=['fp16', 'uint8'], help='how stored'
    )
    add_flags(flags, 'measures', default=['MRR@10', 'nDCG@10'])
    add('--folder', help='keep the indexes there, and use those that are there')
    add_flags(flags, 'csv', 'overwrite', 'device', 'precision', 'offline')
    options = parsed(flags, arguments)
    from pyserini_repbert.data.runs import read_run
    from pyserini_repbert.evaluate.studies.epic import compare_pruning
    from pyserini_repbert.models.checkpoints.checkpoint import used_models
    from pyserini_repbert.names.corpora import open_corpus
    from pyserini_repbert.systems.epic.encoder import EpicEncoder

    measures = parse_measures(options.measures)
    settings = [(prune, WEIGHTS[weights]) for weights in options.weights for prune in options.prune]
    encoder = EpicEncoder(options.model, options.device, options.precision)
    corpus = open_corpus(options.corpus, options.corpus_format, options.fields)
    topics = load_topics(options.topics)
    run = read_run(options.run, options.hits)
    qrels = load_qrels(options.qrels)
    with (
        tempfile.TemporaryDirectory() as temporary,
        progress(len(settings), 'prune', 'settings', options.quiet) as bar,
    ):
        folder = Path(options.folder or temporary)
        depth = options.hits
        results = compare_pruning(
            encoder, corpus, topics, run, qrels, measures, settings, folder, depth, bar.update
        )
    header = [
        'r',
        'weights',
        'bytes a passage',
        'ms a query',
        *(named.name for named in measures),
        'same in top 10',
    ]
    rows = [
        [
            str(one.prune or 'all'),
            one.weights,
            f'{one.bytes_per_passage:,.0f}',
            f'{one.milliseconds:.2f}',
        ]
        + [f'{one.means[named.name]:.4f}' for named in measures]
        + [f'{one.agreement:.1%}']
        for one in results
    ]
    print(markdown(header, rows))
    print(f'\nComputed in {encoder.precision}.')
    if options.csv:
        write_csv(options.csv, header, [[cell.replace(',', '') for cell in row] for row in rows])
        record_output(
            options, options.csv, ('run', 'corpus', 'topics', 'qrels'), used_models(encoder)
        )
