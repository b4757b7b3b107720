"""The command `fusion tune`: method, order and constants of fusion, chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_repbert.commands import recording
from pyserini_repbert.commands.command import parser, positive_int, progress, whole_number, zero_or_more
from pyserini_repbert.commands.evaluate_flags import add_qrels, add_runs, named_paths, read_named
from pyserini_repbert.commands.output_files import parsed

_METHODS = ('interleave', 'rrf', 'interpolation')


def main(arguments: Sequence[str]) -> None:
    """Choose on the training folds, report on the held-out ones."""
    made = parser(
        'fusion tune',
        'How to fuse run files on your topics: which of up to four runs, method, order, rrf_k, alpha. Each fold of the '
        'judged topics is reported under what the other folds choose, with t-tests against the runs alone and untuned '
        'fusion.',
    )
    add_runs(made)
    add_qrels(made)
    made.add_argument('--measure', default='nDCG@10', help="in ir_measures' form")
    made.add_argument('--folds', type=positive_int, default=5, help='of the judged topics')
    made.add_argument('--seed', type=whole_number, default=0, help='by which topics are put into folds')
    made.add_argument('--methods', nargs='+', choices=_METHODS, default=list(_METHODS), help='to try')
    made.add_argument('--hits', type=zero_or_more, default=1000, help='hits to keep for each query, 0 for all')
    made.add_argument('--output', metavar='RUN', help="write the held-out run, each topic under its fold's choice")
    options = parsed(made, arguments)
    from pyserini_repbert.commands.fusion_flags import check_scores
    from pyserini_repbert.data.runs import write_run
    from pyserini_repbert.evaluate.measures import parse_measures
    from pyserini_repbert.evaluate.studies.fusion import settings, tune_fusion
    from pyserini_repbert.evaluate.tables import markdown
    from pyserini_repbert.names.inputs import input_of
    from pyserini_repbert.names.topics import load_qrels

    (measure,) = parse_measures([options.measure])
    paths = named_paths(options.runs)
    if 'interpolation' in options.methods:
        check_scores('interpolation', paths.values())
    qrels = load_qrels(options.qrels)
    runs = dict(read_named(paths, options.quiet))
    total = len(list(settings(list(runs), options.methods)))
    hits = options.hits or None
    with progress(total, 'fusion', 'settings', options.quiet) as bar:
        found = tune_fusion(runs, qrels, measure, options.folds, options.seed, options.methods, hits, bar.update)
    rows = [
        [str(number), str(fold.setting), f'{fold.training:.4f}', f'{fold.held_out:.4f}', str(len(fold.topics))]
        for number, fold in enumerate(found.folds, 1)
    ]
    print(markdown(['fold', 'chosen on the others', 'train', 'held out', 'topics'], rows))
    print(f'\nHeld out, {measure.name} {found.held_out:.4f} over {len(qrels)} judged topics. Against it:\n')
    rows = [
        [name, f'{one.baseline:.4f}', f'{one.difference:+.4f}', f'{one.t:.3f}', f'{one.p:.4g}']
        for name, one in found.against.items()
    ]
    print(markdown(['', measure.name, 'tuned fusion gains', 't', 'p'], rows))
    print(f'\nAll topics choose: {found.whole}')
    if options.output:
        write_run(options.output, found.run)
        recording.write(options, options.output, ('qrels',), inputs=[input_of('runs', path) for path in paths.values()])
