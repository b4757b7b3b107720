"""The commands `evaluate split-folds` and `evaluate join-folds`: cross-validation as on Robust04."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyserini_repbert.commands import recording
from pyserini_repbert.commands.command import parser
from pyserini_repbert.commands.output_files import add_run_form, parsed, run_tag
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.folds import check_cover, join_runs, read_folds, split_folds
from pyserini_repbert.files import atomic_file, atomic_folder
from pyserini_repbert.names.topics import load_topics

_FOLDS = 'a file for each fold, whose lines begin with a qid (a run or a list); or one JSON list of lists of qids'


def split_main(arguments: Sequence[str]) -> None:
    """Write the topics that each fold's model is trained, validated and tested on."""
    made = parser(
        'evaluate split-folds',
        'For each fold, OUTPUT/fold-N/{train,validation,test}.tsv: it tests, the one before validates, the rest train.',
    )
    made.add_argument('--folds', nargs='+', required=True, metavar='FILE', help=_FOLDS)
    made.add_argument('--topics', required=True, help="a file, a catalog name, or one of Pyserini's names")
    made.add_argument('--run', help='a run of all topics, to be split likewise into .run files')
    made.add_argument('--output', required=True, metavar='FOLDER', help='the folder to make')
    options = made.parse_args(arguments)
    from pyserini_repbert.data.runs import read_run, write_run

    if Path(options.output).exists():
        raise InputError(f'{options.output} exists: remove it or choose another output')
    queries = {query.qid: query for query in load_topics(options.topics)}
    folds = read_folds(options.folds)
    check_cover(folds, list(queries))
    run = read_run(options.run) if options.run else None
    with atomic_folder(options.output) as folder:
        for number, split in enumerate(split_folds(folds), 1):
            for name, qids in split._asdict().items():
                with atomic_file(folder / f'fold-{number}' / f'{name}.tsv') as stream:
                    stream.writelines(f'{qid}\t{" ".join(queries[qid].text.split())}\n' for qid in qids)
                if run is not None:
                    own = {qid: run[qid] for qid in qids if qid in run}
                    write_run(folder / f'fold-{number}' / f'{name}.run', own)
            print(f'fold {number}: {", ".join(f"{len(qids)} {name}" for name, qids in split._asdict().items())}')


def join_main(arguments: Sequence[str]) -> None:
    """Join the runs of the folds' models into one run of all topics."""
    made = parser('evaluate join-folds', "Join the folds' test runs into one, checking that each keeps to its fold.")
    made.add_argument('--folds', nargs='+', required=True, metavar='FILE', help=_FOLDS)
    made.add_argument('--runs', nargs='+', required=True, metavar='RUN', help="each fold's test run, in their order")
    made.add_argument('--topics', help='check that the folds cover these topics')
    made.add_argument('--output', required=True, metavar='RUN', help='the run file to write')
    add_run_form(made)
    options = parsed(made, arguments)
    from pyserini_repbert.data.runs import read_run, write_run

    tag = run_tag(options)
    folds = read_folds(options.folds)
    if options.topics:
        check_cover(folds, [query.qid for query in load_topics(options.topics)])
    joined = join_runs([read_run(path) for path in options.runs], folds)
    write_run(options.output, joined, options.output_format, tag)
    recording.write(options, options.output, ('runs', 'folds', 'topics'))
    without = sum(map(len, folds)) - len(joined)
    note = f'; {without} topics have no hits' if without else ''
    print(f'{options.output}: {len(joined)} topics of {len(folds)} folds{note}')
