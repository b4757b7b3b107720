"""`evaluate split-folds` and `join-folds`: cross-validation over topics."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyserini_repbert.commands.command import count_text, parser
from pyserini_repbert.commands.flags import OutputFile, add_flags, parse_flags, record_output
from pyserini_repbert.commands.outputs import OutputPath
from pyserini_repbert.errors import MismatchError
from pyserini_repbert.files import atomic_file, atomic_folder, check_replaced
from pyserini_repbert.ranking import Query, Run

# A file that is in every folder of folds.
_FIRST_TEST = 'fold-1/test.tsv'
_FOLDS = (
    'a file for each fold, whose lines begin with a qid (a run or a list); or one JSON list '
    'of lists of qids'
)


def split_folds(arguments: Sequence[str]) -> None:
    """Write the topics that each fold trains on, validates on and tests on."""
    options = _parse_split(arguments)
    from pyserini_repbert.data.pairs import read_pairs, write_pairs
    from pyserini_repbert.data.runs import write_run
    from pyserini_repbert.evaluate import folds
    from pyserini_repbert.names.topics import load_topics

    check_replaced(options.output, options.overwrite, _FIRST_TEST, folds.FORM)
    queries = {query.qid: query for query in load_topics(options.topics)}
    qids_of_folds = folds.read_folds(options.folds)
    validation: list[str] = []
    others: list[str] = []
    if options.validation:
        validation = folds.read_qids(options.validation)
        in_folds = folds.fold_of([*qids_of_folds, validation])
        others = [qid for qid in queries if qid not in in_folds]
    folds.check_cover([*qids_of_folds, validation, others], list(queries))
    run = _read_runs(options.run)
    pairs = read_pairs(options.pairs) if options.pairs else None
    splits = folds.split_folds(qids_of_folds, validation=validation, others=others)
    with atomic_folder(options.output, folds.FORM if options.overwrite else None) as folder:
        for number, split in enumerate(splits, 1):
            fold = folder / f'fold-{number}'
            counts = []
            for name, qids in split._asdict().items():
                counts.append(f'{len(qids)} {name}')
                _write_topics(fold / f'{name}.tsv', qids, queries)
                if run is not None:
                    rankings = {qid: run[qid] for qid in qids if qid in run}
                    write_run(fold / f'{name}.run', rankings)
            if pairs is not None:
                of_fold = {qid: pairs[qid] for qid in split.train if qid in pairs}
                write_pairs(fold / 'train.pairs', of_fold)
            print(f'fold {number}: {", ".join(counts)}')


def _parse_split(arguments: Sequence[str]) -> argparse.Namespace:
    files = 'For each fold, OUTPUT/fold-N/{train,validation,test}.tsv'
    flags = parser(
        'evaluate split-folds', f'{files}: it tests, the one before validates, the rest train.'
    )
    add = flags.add_argument
    add('--folds', nargs='+', required=True, metavar='FILE', help=_FOLDS)
    add_flags(flags, 'topics', required=True)
    add(
        '--validation',
        metavar='FILE',
        help='a file of topics that validate every fold, with a qid at the beginning of each '
        'line; topics in no fold then train every fold',
    )
    add(
        '--run',
        nargs='+',
        default=[],
        help='runs to split in the same way, into .run files: one of all topics, or several of '
        'some topics each',
    )
    add(
        '--pairs',
        metavar='FILE',
        help='a file of lines with qid and docid; the lines of training topics are written to '
        'train.pairs',
    )
    add('--output', required=True, type=OutputPath, metavar='FOLDER', help='the folder to write')
    add_flags(flags, 'overwrite')
    return flags.parse_args(arguments)


def _read_runs(paths: Sequence[str]) -> Run | None:
    """One run of several, each of other topics; None without one."""
    from pyserini_repbert.data.runs import read_run

    if not paths:
        return None
    joined: Run = {}
    for path in paths:
        run = read_run(path)
        for qid in run:
            if qid in joined:
                raise MismatchError(
                    f"{path} has topic '{qid}', and so has a run before it: give each topic once"
                )
        joined |= run
    return joined


def _write_topics(path: Path, qids: Sequence[str], queries: Mapping[str, Query]) -> None:
    with atomic_file(path) as stream:
        for qid in qids:
            stream.write(f'{qid}\t{" ".join(queries[qid].text.split())}\n')


def join_folds(arguments: Sequence[str]) -> None:
    """Write one run file from the test runs of all folds, and print its number of topics."""
    flags = parser(
        'evaluate join-folds',
        "Join the folds' test runs into one, checking that each keeps to its fold.",
    )
    flags.add_argument('--folds', nargs='+', required=True, metavar='FILE', help=_FOLDS)
    add_flags(flags, 'runs', help='the test run of each fold, in order')
    add_flags(flags, 'topics', help='check that the folds cover these topics')
    flags.add_argument(
        '--output', required=True, type=OutputFile, metavar='RUN', help='the run file to write'
    )
    add_flags(flags, 'overwrite', 'output_format', 'tag')
    options = parse_flags(flags, arguments)
    from pyserini_repbert.data.runs import read_run, write_run
    from pyserini_repbert.evaluate.folds import check_cover, join_runs, read_folds
    from pyserini_repbert.names.topics import load_topics

    folds = read_folds(options.folds)
    if options.topics:
        check_cover(folds, [query.qid for query in load_topics(options.topics)])
    joined = join_runs([read_run(path) for path in options.runs], folds)
    write_run(options.output, joined, options.output_format, options.tag)
    record_output(options, options.output, ('runs', 'folds', 'topics'))
    n_without = sum(len(fold) for fold in folds) - len(joined)
    note = f'; {count_text(n_without, "topic")} without hits' if n_without else ''
    n_joined = count_text(len(joined), 'topic')
    print(f'{options.output}: {n_joined} of {len(folds)} folds{note}')
