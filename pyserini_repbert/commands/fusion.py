"""`python -m pyserini_repbert.fusion`: fuse run files; `fusion tune` finds out how on judged
topics.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pyserini_repbert.commands.command import parser, picked, positive_int, progress, whole_number
from pyserini_repbert.commands.flags import (
    FORMULA,
    add_flags,
    named_paths,
    parsed,
    read_named,
    record_output,
)
from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.methods import FusionMethod, methods_text
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import NO_HITS, Ranking

METHODS = tuple(map(str, FusionMethod))


def main(arguments: list[str]) -> None:
    """Fuse run files into one, or tune a fusion if the first argument is 'tune'."""
    if arguments[:1] == ['tune']:
        _tune(arguments[1:])
        return
    text = 'Fuse run files, in TREC or MS MARCO format, plain or .gz.'
    flags = parser(
        'fusion', f'{text} `fusion tune` chooses how by judged topics (it has its own --help).'
    )
    add_flags(flags, 'runs', help='run files; the first one leads')
    add = flags.add_argument
    add(
        '--method',
        '--fusion',
        default=str(FusionMethod.INTERLEAVE),
        choices=METHODS,
        help=methods_text(),
    )
    add_flags(flags, *FORMULA, 'depth', 'hits')
    add('--output', required=True, help='run file to write; a name that ends in .gz is compressed')
    add_flags(flags, 'overwrite', 'output_format', 'tag')
    add(
        '--provenance',
        metavar='FILE',
        help="also write each hit's rank in each run, as FILE.tsv or FILE.jsonl",
    )
    options = parsed(flags, arguments)
    from pyserini_repbert.data.runs import write_run
    from pyserini_repbert.fusion.fusing import combiner, fuse
    from pyserini_repbert.fusion.interleaving import write_provenance

    check_scores(options.method, options.runs)
    settings = {'k': options.hits or None, **formula(options.method, options)}
    combine = combiner(len(options.runs), **settings)
    pipes = filter(_is_pipe, (*options.runs, options.output))  # a pipe is read and written once
    n_queries = None if options.provenance or any(pipes) else _in_step(options, combine)
    if not n_queries:
        runs = [
            run
            for _, run in read_named(dict(enumerate(options.runs)), options.quiet, options.depth)
        ]
        fused = fuse(runs, **settings)
        n_queries = len(fused)
        write_run(options.output, fused, options.output_format, options.tag)
        if options.provenance:
            write_provenance(options.provenance, options.runs, runs, fused)
    record_output(options, options.output, ('runs',))
    if not options.quiet:
        print(f'{options.output}: {n_queries} queries', file=sys.stderr)


def formula(method: str, options: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of `fusion.fuse` from the flags, which get what holds, for the record.

    Raises InputError for a flag that the method does not use.
    """
    settings = PipelineSpec.of({'fusion': method} | picked(options, *FORMULA)).formula
    options.alpha = None if options.weights else settings['alpha']
    options.rrf_k = settings['rrf_k']
    return settings


def check_scores(method: str, paths: Iterable[str]) -> None:
    """Raises InputError for a run file without scores, or a pipe, if `method` is interpolation."""
    from pyserini_repbert.data.runs import RunFormat, run_format

    for path in paths if method == FusionMethod.INTERPOLATION else ():
        if _is_pipe(path):
            raise InputError(
                f'run file {path} is a pipe, which interpolation would read twice: give a file'
            )
        if run_format(path) is RunFormat.MSMARCO:
            raise InputError(
                f'run file {path} has no scores to interpolate: use --method interleave or rrf'
            )


def _is_pipe(path: str) -> bool:
    return Path(path).exists() and not Path(path).is_file()


def _in_step(
    options: argparse.Namespace, combine: Callable[[Sequence[Ranking]], Ranking]
) -> int | None:
    """Fuse query by query while reading, and count; None, with nothing written, if the files
    differ in queries.
    """
    from pyserini_repbert.data.runs import ScatteredQueryError, iter_run, write_run

    n_queries = 0

    def fused() -> Iterator[tuple[str, Ranking]]:
        nonlocal n_queries
        readers = [iter_run(path, options.depth) for path in options.runs]
        for queries in zip_longest(*readers, fillvalue=('', NO_HITS)):
            if len({qid for qid, _ in queries}) > 1:
                raise ScatteredQueryError('the runs differ in queries or their order')
            bar.update()
            n_queries += 1
            yield queries[0][0], combine([ranking for _, ranking in queries])

    with progress(None, 'fusion', 'query', options.quiet) as bar:
        try:
            write_run(options.output, fused(), options.output_format, options.tag)
        except ScatteredQueryError:
            return None
    return n_queries


def _tune(arguments: Sequence[str]) -> None:
    text = 'Choose by judged topics which of up to four runs to fuse, and how.'
    flags = parser('fusion tune', f'{text} Each fold is scored by what others choose.')
    add_flags(flags, 'runs', 'qrels')
    add_flags(flags, 'measure', default='nDCG@10')
    flags.add_argument(
        '--folds', type=positive_int, default=5, help='how many folds of the judged topics'
    )
    flags.add_argument('--seed', type=whole_number, default=0, help='seed of the folds')
    flags.add_argument(
        '--methods', nargs='+', choices=METHODS, default=list(METHODS), help='methods to try'
    )
    add_flags(flags, 'hits')
    flags.add_argument(
        '--output', metavar='RUN', help="write the held-out run, each topic under its fold's choice"
    )
    add_flags(flags, 'overwrite')
    options = parsed(flags, arguments)
    from pyserini_repbert.data.runs import write_run
    from pyserini_repbert.evaluate.measures import parse_measures
    from pyserini_repbert.evaluate.studies.fusion import settings, tune_fusion
    from pyserini_repbert.evaluate.tables import markdown
    from pyserini_repbert.names.inputs import input_of
    from pyserini_repbert.names.topics import load_qrels

    (measure,) = parse_measures([options.measure])
    paths = named_paths(options.runs)
    if FusionMethod.INTERPOLATION in options.methods:
        check_scores(FusionMethod.INTERPOLATION, paths.values())
    qrels = load_qrels(options.qrels)
    runs = dict(read_named(paths, options.quiet))
    given = (options.folds, options.seed, options.methods, options.hits or None)
    with progress(
        len(list(settings(list(runs), options.methods))), 'fusion', 'settings', options.quiet
    ) as bar:
        tuning = tune_fusion(runs, qrels, measure, *given, bar.update)
    rows = [
        [
            str(number),
            str(fold.setting),
            f'{fold.training:.4f}',
            f'{fold.held_out:.4f}',
            str(len(fold.topics)),
        ]
        for number, fold in enumerate(tuning.folds, 1)
    ]
    print(markdown(['fold', 'chosen on the others', 'train', 'held out', 'topics'], rows))
    print(
        f'\nHeld out, {measure.name} {tuning.held_out:.4f} over {len(qrels)} judged topics. '
        f'Against it:\n'
    )
    rows = [
        [name, f'{one.baseline:.4f}', f'{one.difference:+.4f}', f'{one.t:.3f}', f'{one.p:.4g}']
        for name, one in tuning.against.items()
    ]
    print(markdown(['', measure.name, 'tuned fusion gains', 't', 'p'], rows))
    print(f'\nAll topics choose: {tuning.whole}')
    if options.output:
        write_run(options.output, tuning.run)
        record_output(
            options,
            options.output,
            ('qrels',),
            inputs=[input_of('runs', path) for path in paths.values()],
        )
