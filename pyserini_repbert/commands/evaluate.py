"""`python -m pyserini_repbert.evaluate`: measures of run files, or the analysis that the first
word names.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from collections.abc import Sequence

from pyserini_repbert.commands.command import parser, refuse
from pyserini_repbert.commands.flags import (
    add_flags,
    named_paths,
    parsed,
    read_named,
    record_output,
)
from pyserini_repbert.evaluate.measures import (
    Evaluation,
    any_judged,
    evaluate,
    judged_only,
    parse_measures,
)
from pyserini_repbert.evaluate.significance import compare
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.files import atomic_file, atomic_folder, check_replaced
from pyserini_repbert.names.topics import load_qrels, load_topics

_ANALYSES = {  # the first word -> the module that has its function
    **dict.fromkeys(
        ('fusion-table', 'consistency', 'recall-depth', 'rerank-depth'), 'evaluate_studies'
    ),
    **dict.fromkeys(('tradeoff', 'epic-pruning'), 'evaluate_costs'),
    **dict.fromkeys(('ties', 'split-folds', 'join-folds'), 'evaluate'),
}
# A file that is in every folder of folds.
_FIRST_TEST = 'fold-1/test.tsv'
_FOLDS = (
    'a file for each fold, whose lines begin with a qid (a run or a list); or one JSON list '
    'of lists of qids'
)


def main(arguments: list[str]) -> None:
    """Print the measures of run files, or run the analysis that the first argument names."""
    if arguments and arguments[0] in _ANALYSES:
        module = importlib.import_module(f'pyserini_repbert.commands.{_ANALYSES[arguments[0]]}')
        getattr(module, arguments[0].replace('-', '_'))(arguments[1:])
        return
    others = f'{", ".join(_ANALYSES)} (each has its own --help)'
    flags = parser(
        'evaluate',
        f'Score run files by judgments. `evaluate ANALYSIS` runs an analysis instead: {others}.',
    )
    add = flags.add_argument
    add_flags(flags, 'qrels')
    add('runs', nargs='*', metavar='RUN', help='run files, each as FILE or NAME=FILE')
    add_flags(flags, 'measures')
    add(
        '--judged-only', action='store_true', help='leave out hits that nobody judged for the topic'
    )
    add(
        '--per-query',
        metavar='FILE',
        help='write the value of each topic; - prints them instead of the table',
    )
    add_flags(flags, 'overwrite')
    add(
        '--compare',
        action='store_true',
        help='compare the other runs with the first by paired t-tests',
    )
    add('--json', action='store_true', help='print JSON instead of tables')
    options = parsed(flags, arguments)
    refuse(
        not options.runs,
        'no run files were given: name them before --measures, which takes all words behind it',
    )
    refuse(
        options.compare and not options.runs[1:],
        '--compare takes the baseline first, then runs to compare with it',
    )
    printed = options.per_query == '-'
    refuse(
        printed and options.json,
        '--per-query - and --json both print: write the values per query to a file',
    )
    measures = parse_measures(options.measures)
    paths = named_paths(options.runs)
    qrels = load_qrels(options.qrels)
    evaluations: dict[str, Evaluation] = {}
    for name, run in read_named(paths, options.quiet):
        judged = len(run.keys() & qrels.keys())
        if 2 * judged < len(run):
            print(
                f'warning: {judged} of the {len(run)} topics of {name} are judged', file=sys.stderr
            )
        if run and not any_judged(run, qrels):
            n_docids = len({docid for grades in qrels.values() for docid in grades})
            print(
                f'warning: none of the {n_docids} judged docids is in {name}: check that both '
                'name the same passages',
                file=sys.stderr,
            )
        evaluations[name] = evaluate(
            judged_only(run, qrels) if options.judged_only else run, qrels, measures
        )
    baseline, *compared = evaluations if options.compare else list(evaluations)[:1]
    tests = [
        (name, test)
        for name in compared
        for test in compare(evaluations[baseline], evaluations[name])
    ]
    if options.per_query:
        with (
            contextlib.nullcontext(sys.stdout) if printed else atomic_file(options.per_query) as out
        ):
            out.write('run\tqid\tmeasure\tvalue\n')
            for name, evaluation in evaluations.items():
                for measure, values in evaluation.values.items():
                    out.writelines(
                        f'{name}\t{qid}\t{measure}\t{value:.6f}\n' for qid, value in values.items()
                    )
    if options.json:
        runs = [
            {
                'run': name,
                'path': paths[name],
                'topics_without_hits': len(one.without_hits),
                'measures': one.means,
            }
            for name, one in evaluations.items()
        ]
        results = {'judged_topics': len(qrels), 'runs': runs}
        if tests:
            results |= {
                'baseline': baseline,
                'comparisons': [{'run': name, **test._asdict()} for name, test in tests],
            }
        print(json.dumps(results, ensure_ascii=False, indent=2))
    if options.json or printed:
        return
    rows = [
        [name, *(f'{value:.4f}' for value in one.means.values())]
        for name, one in evaluations.items()
    ]
    print(markdown(['run', *evaluations[baseline].means], rows))
    without = {name: len(one.without_hits) for name, one in evaluations.items() if one.without_hits}
    notes = [
        f'{name} has no hits for {number} of them, which count 0.'
        for name, number in without.items()
    ]
    print(f'\nOver {len(qrels)} judged topics.', *notes)
    if tests:
        rows = [
            [name, test.measure, f'{test.difference:+.4f}', f'{test.t:.3f}', f'{test.p:.4g}']
            + [str(count) for count in (test.wins, test.ties, test.losses)]
            for name, test in tests
        ]
        print(
            f'\nAgainst {baseline} (paired t-test, two-sided, p not corrected for several '
            f'comparisons):\n'
        )
        print(
            markdown(['run', 'measure', 'difference', 't', 'p', 'better', 'equal', 'worse'], rows)
        )


def ties(arguments: Sequence[str]) -> None:
    """Print the lowest and the highest value that each run can have by the order of its ties."""
    flags = parser(
        'evaluate ties',
        'Score runs with ties broken for the worst, as the run has them, and for the best.',
    )
    add_flags(flags, 'qrels')
    flags.add_argument(
        'runs', nargs='+', metavar='RUN', help='run files, each as FILE or NAME=FILE'
    )
    add_flags(flags, 'measures')
    text = (
        'the runs were written by this package, which writes ties one step apart; a record '
        'beside a run says so, too'
    )
    flags.add_argument('--written-here', action='store_true', help=text)
    options = flags.parse_args(arguments)
    from pyserini_repbert.evaluate.ties import tie_intervals, tied_share, ties_as_scored
    from pyserini_repbert.record import read_record

    measures = parse_measures(options.measures)
    qrels = load_qrels(options.qrels)
    paths = named_paths(options.runs)
    rows = []
    for name, run in read_named(paths, options.quiet):
        run = ties_as_scored(run) if options.written_here or read_record(paths[name]) else run
        for measure, interval in tie_intervals(run, qrels, measures).items():
            rows.append(
                [name, f'{tied_share(run):.1%}', measure, *(f'{value:.4f}' for value in interval)]
            )
    print(markdown(['run', 'tied hits', 'measure', 'lowest', 'as given', 'highest'], rows))


def split_folds(arguments: Sequence[str]) -> None:
    """Write the topics that each fold trains on, validates on and tests on, and print their
    numbers.
    """
    files = 'For each fold, OUTPUT/fold-N/{train,validation,test}.tsv'
    flags = parser(
        'evaluate split-folds', f'{files}: it tests, the one before validates, the rest train.'
    )
    flags.add_argument('--folds', nargs='+', required=True, metavar='FILE', help=_FOLDS)
    add_flags(flags, 'topics', required=True)
    flags.add_argument('--run', help='a run of all topics, to be split likewise into .run files')
    flags.add_argument('--output', required=True, metavar='FOLDER', help='the folder to make')
    add_flags(flags, 'overwrite')
    options = flags.parse_args(arguments)
    from pyserini_repbert.data.runs import read_run, write_run
    from pyserini_repbert.evaluate import folds

    check_replaced(options.output, options.overwrite, _FIRST_TEST, 'folder of folds')
    queries = {query.qid: query for query in load_topics(options.topics)}
    qids_of_folds = folds.read_folds(options.folds)
    folds.check_cover(qids_of_folds, list(queries))
    run = read_run(options.run) if options.run else None
    with atomic_folder(options.output, replace=options.overwrite) as folder:
        for number, split in enumerate(folds.split_folds(qids_of_folds), 1):
            for name, qids in split._asdict().items():
                with atomic_file(folder / f'fold-{number}' / f'{name}.tsv') as stream:
                    stream.writelines(
                        f'{qid}\t{" ".join(queries[qid].text.split())}\n' for qid in qids
                    )
                if run is not None:
                    rankings = {qid: run[qid] for qid in qids if qid in run}
                    write_run(folder / f'fold-{number}' / f'{name}.run', rankings)
            print(
                f'fold {number}: '
                f'{", ".join(f"{len(qids)} {name}" for name, qids in split._asdict().items())}'
            )


def join_folds(arguments: Sequence[str]) -> None:
    """Write one run file from the test runs of all folds, and print its number of topics."""
    flags = parser(
        'evaluate join-folds',
        "Join the folds' test runs into one, checking that each keeps to its fold.",
    )
    flags.add_argument('--folds', nargs='+', required=True, metavar='FILE', help=_FOLDS)
    add_flags(flags, 'runs', help="each fold's test run, in their order")
    add_flags(flags, 'topics', help='check that the folds cover these topics')
    flags.add_argument('--output', required=True, metavar='RUN', help='the run file to write')
    add_flags(flags, 'overwrite', 'output_format', 'tag')
    options = parsed(flags, arguments)
    from pyserini_repbert.data.runs import read_run, write_run
    from pyserini_repbert.evaluate.folds import check_cover, join_runs, read_folds

    folds = read_folds(options.folds)
    if options.topics:
        check_cover(folds, [query.qid for query in load_topics(options.topics)])
    joined = join_runs([read_run(path) for path in options.runs], folds)
    write_run(options.output, joined, options.output_format, options.tag)
    record_output(options, options.output, ('runs', 'folds', 'topics'))
    without = sum(map(len, folds)) - len(joined)
    note = f'; {without} topics have no hits' if without else ''
    print(f'{options.output}: {len(joined)} topics of {len(folds)} folds{note}')
