"""The command `evaluate`: measures of run files, per topic on request, and paired t-tests against the first run."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Mapping, Sequence

from pyserini_repbert.commands.command import parser
from pyserini_repbert.commands.evaluate import SUBCOMMANDS
from pyserini_repbert.commands.evaluate_flags import add_measures, add_qrels, named_paths, read_named
from pyserini_repbert.commands.output_files import parsed
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import Evaluation, evaluate, judged_only, parse_measures
from pyserini_repbert.evaluate.significance import Comparison, compare
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.names.topics import load_qrels


def main(arguments: Sequence[str]) -> None:
    """Evaluate run files and print a table or JSON."""
    options = parsed(_parser(), arguments)
    if not options.runs:
        raise InputError('no run files were given: name them before --measures, which takes all words behind it')
    if options.compare and len(options.runs) < 2:
        raise InputError('--compare was given one run: give the baseline first, then the runs to compare with it')
    if options.per_query == '-' and options.json:
        raise InputError('--per-query - and --json both print: write the values per query to a file')
    measures = parse_measures(options.measures)
    paths = named_paths(options.runs)
    qrels = load_qrels(options.qrels)
    evaluations: dict[str, Evaluation] = {}
    for name, run in read_named(paths, options.quiet):
        evaluations[name] = evaluate(judged_only(run, qrels) if options.judged_only else run, qrels, measures)
    baseline, *others = evaluations
    tests = [
        (name, test) for name in others if options.compare for test in compare(evaluations[baseline], evaluations[name])
    ]
    if options.per_query:
        _write_values(options.per_query, evaluations)
    if options.json:
        runs = [
            {'run': name, 'path': paths[name], 'topics_without_hits': len(own.without_hits), 'measures': own.means}
            for name, own in evaluations.items()
        ]
        comparisons = [{'run': name, **test._asdict()} for name, test in tests]
        compared = {'baseline': baseline, 'comparisons': comparisons} if tests else {}
        print(json.dumps({'judged_topics': len(qrels), 'runs': runs, **compared}, ensure_ascii=False, indent=2))
    elif options.per_query != '-':
        _print_tables(evaluations, tests, len(qrels))


def _write_values(path: str, evaluations: Mapping[str, Evaluation]) -> None:
    from pyserini_repbert.files import atomic_file

    with contextlib.nullcontext(sys.stdout) if path == '-' else atomic_file(path) as stream:
        stream.write('run\tqid\tmeasure\tvalue\n')
        for name, evaluation in evaluations.items():
            for measure, values in evaluation.values.items():
                stream.writelines(f'{name}\t{qid}\t{measure}\t{value:.6f}\n' for qid, value in values.items())


def _print_tables(
    evaluations: Mapping[str, Evaluation], tests: Sequence[tuple[str, Comparison]], n_judged: int
) -> None:
    baseline = next(iter(evaluations))
    rows = [[name, *(f'{value:.4f}' for value in own.means.values())] for name, own in evaluations.items()]
    print(markdown(['run', *evaluations[baseline].means], rows))
    notes = [
        f'{name} has no hits for {len(own.without_hits)} of them, which count 0.'
        for name, own in evaluations.items()
        if own.without_hits
    ]
    print(f'\nOver {n_judged} judged topics.', *notes)
    if tests:
        rows = [
            [name, test.measure, f'{test.difference:+.4f}', f'{test.t:.3f}', f'{test.p:.4g}']
            + [str(count) for count in (test.wins, test.ties, test.losses)]
            for name, test in tests
        ]
        print(f'\nAgainst {baseline} (paired t-test, two-sided, p not corrected for several comparisons):\n')
        print(markdown(['run', 'measure', 'difference', 't', 'p', 'better', 'equal', 'worse'], rows))


def _parser() -> argparse.ArgumentParser:
    analyses = ', '.join(word for word in SUBCOMMANDS if word != 'measures')
    made = parser(
        'evaluate',
        'Evaluate run files with ir_measures. With a word in front, an analysis instead: '
        f'{analyses} (each has its own --help).',
    )
    add_qrels(made)
    made.add_argument('runs', nargs='*', metavar='RUN', help='run files, each as FILE or NAME=FILE')
    add_measures(made)
    made.add_argument('--judged-only', action='store_true', help='without documents that nobody judged for the topic')
    made.add_argument('--per-query', metavar='FILE', help='write the value of each topic; - prints them')
    made.add_argument('--compare', action='store_true', help='paired t-tests of the other runs against the first')
    made.add_argument('--json', action='store_true', help='print JSON instead of tables')
    return made
