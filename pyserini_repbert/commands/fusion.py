"""`python -m pyserini_repbert.fusion`: fuse run files; `fusion tune` finds out how on judged
topics.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert.commands.command import (
    parser,
    pick_options,
    positive_int,
    progress,
    whole_number,
)
from pyserini_repbert.commands.flags import (
    FUSION_SETTINGS,
    OutputFile,
    RanksFile,
    add_flags,
    named_paths,
    parse_flags,
    read_named,
    record_output,
    used_fusion,
)
from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.methods import FusionMethod, methods_text
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import NO_HITS, Ranking
from pyserini_repbert.search.aggregation import PassageAggregation

if TYPE_CHECKING:
    from pyserini_repbert.evaluate.studies.fusion import Tuned
    from pyserini_repbert.fusion.settings import FusionSettings

METHODS = tuple(map(str, FusionMethod))


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command's flags."""
    flags = parser(
        'fusion',
        'Fuse run files, in TREC or MS MARCO format, plain or .gz. `fusion tune` '
        'chooses the fusion by judged topics (it has its own --help).',
    )
    add = flags.add_argument
    add_flags(flags, 'runs', help='run files; interleaving starts with the first')
    add(
        '--method',
        '--fusion',
        default=str(FusionMethod.INTERLEAVE),
        choices=METHODS,
        help=methods_text(),
    )
    add_flags(flags, *FUSION_SETTINGS, 'depth', 'hits')
    add(
        '--documents',
        choices=tuple(map(str, PassageAggregation)),
        help='fuse documents, from runs of passages named DOCID#NUMBER; the value says how '
        'passage scores become the score of a document',
    )
    add(
        '--output',
        required=True,
        type=OutputFile,
        help='run file to write; a name that ends in .gz is compressed',
    )
    add_flags(flags, 'overwrite', 'output_format', 'tag')
    add(
        '--provenance',
        type=RanksFile,
        metavar='FILE',
        help="also write each hit's rank in each run, as FILE.tsv or FILE.jsonl",
    )
    return flags


def main(arguments: list[str]) -> None:
    """Fuse run files into one, or tune a fusion if the first argument is 'tune'."""
    if arguments[:1] == ['tune']:
        _tune(arguments[1:])
        return
    options = parse_flags(make_parser(), arguments)
    from pyserini_repbert.fusion.fusing import combiner

    check_scores(options.method, options.runs)
    if options.documents:
        _check_passage_scores(options.runs)
    spec = fusion_of_flags(options.method, options)
    settings = spec.fusion_settings
    combine = combiner(len(options.runs), settings, options.hits or None)
    n_queries = None
    if _can_read_twice(options):
        n_queries = _fuse_while_reading(options, combine)
    if not n_queries:
        n_queries = _fuse_whole_runs(options, settings)
    record_output(options, options.output, ('runs',), used=used_fusion(spec))
    if not options.quiet:
        print(f'{options.output}: {n_queries} queries', file=sys.stderr)


def fusion_of_flags(method: str, options: argparse.Namespace) -> PipelineSpec:
    """How runs are fused, from the flags."""
    return PipelineSpec.of({'fusion': method} | pick_options(options, *FUSION_SETTINGS))


def check_scores(method: str, paths: Iterable[str]) -> None:
    """Raise InputError for a run file without scores, or a pipe, if `method` is interpolation."""
    from pyserini_repbert.data.runs import RunFormat, run_format

    if method != FusionMethod.INTERPOLATION:
        return
    for path in paths:
        if _is_pipe(path):
            raise InputError(
                f'run file {path} is a pipe, which interpolation would read twice: give a file'
            )
        if run_format(path) is RunFormat.MSMARCO:
            raise InputError(
                f'run file {path} has no scores to interpolate: use --method interleave or rrf'
            )


def _check_passage_scores(paths: Iterable[str]) -> None:
    """Raise InputError for a run file without scores."""
    from pyserini_repbert.data.runs import RunFormat, run_format

    for path in paths:
        if not _is_pipe(path) and run_format(path) is RunFormat.MSMARCO:
            raise InputError(
                f'run file {path} has no scores, by which passages become documents: give a TREC '
                'run'
            )


def _is_pipe(path: str) -> bool:
    return Path(path).exists() and not Path(path).is_file()


def _can_read_twice(options: argparse.Namespace) -> bool:
    """Whether the runs can be fused while they are read, and begun again if that fails.

    A pipe is read and written once. For --provenance and --documents the runs are held in memory.
    """
    files = (*options.runs, options.output)
    holds_runs = options.provenance or options.documents
    return not holds_runs and not any(map(_is_pipe, files))


def _fuse_while_reading(
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
        for entries in zip_longest(*readers, fillvalue=('', NO_HITS)):
            qids = {qid for qid, _ in entries}
            if len(qids) > 1:
                raise ScatteredQueryError('the runs differ in queries or their order')
            bar.update()
            n_queries += 1
            (qid,) = qids
            yield qid, combine([ranking for _, ranking in entries])

    with progress(None, 'fusion', 'query', options.quiet) as bar:
        try:
            write_run(options.output, fused(), options.output_format, options.tag)
        except ScatteredQueryError:
            return None
    return n_queries


def _fuse_whole_runs(options: argparse.Namespace, settings: FusionSettings) -> int:
    """Read all runs, fuse them, write the run and its provenance, and count the queries."""
    from pyserini_repbert.data.runs import write_run
    from pyserini_repbert.fusion.fusing import fuse_runs
    from pyserini_repbert.fusion.interleaving import write_provenance
    from pyserini_repbert.search.documents_of_passages import documents_of_run

    paths = dict(enumerate(options.runs))
    runs = [run for _, run in read_named(paths, options.quiet, options.depth)]
    if options.documents:
        runs = [documents_of_run(run, PassageAggregation(options.documents)) for run in runs]
    fused = fuse_runs(runs, settings, options.hits or None)
    write_run(options.output, fused, options.output_format, options.tag)
    if options.provenance:
        write_provenance(options.provenance, options.runs, runs, fused)
    return len(fused)


def _make_tune_parser() -> argparse.ArgumentParser:
    """The parser of the flags of `fusion tune`."""
    flags = parser(
        'fusion tune',
        'Choose by judged topics which of up to four runs to fuse, and how. Each '
        'fold is scored with what the other folds choose.',
    )
    add = flags.add_argument
    add_flags(flags, 'runs', 'qrels')
    add_flags(flags, 'measure', default='nDCG@10')
    add('--folds', type=positive_int, default=5, help='how many folds of the judged topics')
    add('--seed', type=whole_number, default=0, help='seed of the folds')
    add('--methods', nargs='+', choices=METHODS, default=list(METHODS), help='methods to try')
    add_flags(flags, 'hits')
    add(
        '--output',
        type=OutputFile,
        metavar='RUN',
        help='write the held-out run: each topic is fused as the other folds choose',
    )
    add_flags(flags, 'overwrite')
    return flags


def _tune(arguments: Sequence[str]) -> None:
    """Choose a fusion by judged topics, and print its gain."""
    options = parse_flags(_make_tune_parser(), arguments)
    from pyserini_repbert.commands.model_grades import load_judgments
    from pyserini_repbert.data.runs import write_run
    from pyserini_repbert.evaluate.measures import parse_measures
    from pyserini_repbert.evaluate.studies.fusion import settings, tune_fusion
    from pyserini_repbert.names.inputs import input_of

    (measure,) = parse_measures([options.measure])
    paths = named_paths(options.runs)
    if FusionMethod.INTERPOLATION in options.methods:
        check_scores(FusionMethod.INTERPOLATION, paths.values())
    qrels = load_judgments(options.qrels)
    runs = dict(read_named(paths, options.quiet))
    n_settings = len(list(settings(list(runs), options.methods)))
    with progress(n_settings, 'fusion', 'settings', options.quiet) as bar:
        tuning = tune_fusion(
            runs,
            qrels,
            measure,
            folds=options.folds,
            seed=options.seed,
            methods=options.methods,
            k=options.hits or None,
            on_progress=bar.update,
        )
    _print_tuning(tuning, measure.name, n_topics=len(qrels))
    if options.output:
        write_run(options.output, tuning.run)
        inputs = [input_of('runs', path) for path in paths.values()]
        record_output(options, options.output, ('qrels',), inputs=inputs)


def _print_tuning(tuning: Tuned, measure: str, n_topics: int) -> None:
    """Print what each fold chooses, the gain over what needs no judgments, and the choice of all
    topics.
    """
    from pyserini_repbert.evaluate.tables import markdown

    rows = []
    for number, fold in enumerate(tuning.folds, 1):
        values = [f'{fold.training:.4f}', f'{fold.held_out:.4f}']
        rows.append([str(number), str(fold.setting), *values, str(len(fold.topics))])
    print(markdown(['fold', 'chosen on the others', 'train', 'held out', 'topics'], rows))
    print(
        f'\nHeld out, {measure} {tuning.held_out:.4f} over {n_topics} judged topics. Against it:\n'
    )
    rows = []
    for name, comparison in tuning.against.items():
        values = [f'{comparison.baseline:.4f}', f'{comparison.difference:+.4f}']
        rows.append([name, *values, f'{comparison.t:.3f}', f'{comparison.p:.4g}'])
    print(markdown(['', measure, 'tuned fusion gains', 't', 'p'], rows))
    print(f'\nAll topics choose: {tuning.whole}')
