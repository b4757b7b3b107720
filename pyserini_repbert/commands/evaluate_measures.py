"""The command `evaluate`: measures of run files, per topic on request, and paired t-tests against the first run."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyserini_repbert.commands.command import parser, progress
from pyserini_repbert.commands.evaluate import SUBCOMMANDS
from pyserini_repbert.commands.output_files import parsed
from pyserini_repbert.errors import InputError

if TYPE_CHECKING:
    from pyserini_repbert.evaluate.measures import Evaluation
    from pyserini_repbert.evaluate.significance import Comparison
    from pyserini_repbert.ranking import Run

DEFAULT_MEASURES = ['nDCG@10', 'MRR@10', 'R@1000']


def main(arguments: Sequence[str]) -> None:
    """Evaluate run files and print a table or JSON."""
    options = parsed(_parser(), arguments)
    from pyserini_repbert.evaluate.measures import evaluate, judged_only, parse_measures
    from pyserini_repbert.evaluate.significance import compare
    from pyserini_repbert.names.topics import load_qrels

    if not options.runs:
        raise InputError('no run files were given: name them before --measures, which takes all words behind it')
    if options.compare and len(options.runs) < 2:
        raise InputError('--compare was given one run: give the baseline first, then the runs to compare with it')
    if options.per_query == '-' and options.json:
        raise InputError('--per-query - and --json both print: write the values per query to a file')
    measures = parse_measures(options.measures)
    paths = named_paths(options.runs)
    qrels = load_qrels(options.qrels)
    found: dict[str, Evaluation] = {}
    for name, run in read_named(paths, options.quiet):
        found[name] = evaluate(judged_only(run, qrels) if options.judged_only else run, qrels, measures)
    baseline, *others = found
    tests = {name: compare(found[baseline], found[name]) for name in others} if options.compare else {}
    if options.per_query:
        _write_values(options.per_query, found)
    if options.json:
        print(json.dumps(_as_json(found, paths, tests, len(qrels)), ensure_ascii=False, indent=2))
    elif options.per_query != '-':
        _print_tables(found, tests, len(qrels), baseline)


def named_paths(texts: Sequence[str]) -> dict[str, str]:
    """name -> run file: 'BM25=runs/bm25.txt' names the run, else its name is the file's without suffixes.

    Raises InputError for two runs with one name.
    """
    from pathlib import Path

    from pyserini_repbert.data.runs import default_tag

    found: dict[str, str] = {}
    for text in texts:
        name, equals, path = text.partition('=')
        if not equals or Path(text).exists():
            name, path = default_tag(text), text
        if not name or name in found:
            raise InputError(f"two runs have the name '{name}': tell them apart as NAME={path}")
        found[name] = path
    return found


def read_named(paths: dict[str, str], quiet: bool, depth: int | None = None) -> Iterator[tuple[str, Run]]:
    """(name, run) of each run file, with a progress bar; of each query the best `depth` hits, None: all."""
    from pyserini_repbert.data.runs import read_run

    with progress(len(paths), 'runs', 'run', quiet) as bar:
        for name, path in paths.items():
            yield name, read_run(path, depth)
            bar.update()


def _write_values(path: str, found: dict[str, Evaluation]) -> None:
    from pyserini_repbert.files import atomic_file

    with contextlib.nullcontext(sys.stdout) if path == '-' else atomic_file(path) as stream:
        stream.write('run\tqid\tmeasure\tvalue\n')
        for name, evaluation in found.items():
            for measure, values in evaluation.values.items():
                stream.writelines(f'{name}\t{qid}\t{measure}\t{value:.6f}\n' for qid, value in values.items())


def _print_tables(
    found: dict[str, Evaluation], tests: dict[str, list[Comparison]], n_judged: int, baseline: str
) -> None:
    from pyserini_repbert.evaluate.tables import markdown

    measures = list(found[baseline].means)
    rows = [[name, *(f'{value:.4f}' for value in evaluation.means.values())] for name, evaluation in found.items()]
    print(markdown(['run', *measures], rows))
    missing = {name: len(evaluation.without_hits) for name, evaluation in found.items() if evaluation.without_hits}
    notes = [f'{name} has no hits for {count} of them, which count 0.' for name, count in missing.items()]
    print(f'\nOver {n_judged} judged topics.', *notes)
    if tests:
        header = ['run', 'measure', 'difference', 't', 'p', 'better', 'equal', 'worse']
        rows = [
            [name, test.measure, f'{test.difference:+.4f}', f'{test.t:.3f}', f'{test.p:.4g}']
            + [str(count) for count in (test.wins, test.ties, test.losses)]
            for name, own in tests.items()
            for test in own
        ]
        print(f'\nAgainst {baseline} (paired t-test, two-sided, p not corrected for several comparisons):\n')
        print(markdown(header, rows))


def _as_json(
    found: dict[str, Evaluation], paths: dict[str, str], tests: dict[str, list[Comparison]], n_judged: int
) -> dict[str, Any]:
    runs = [
        {'run': name, 'path': paths[name], 'topics_without_hits': len(own.without_hits), 'measures': own.means}
        for name, own in found.items()
    ]
    result: dict[str, Any] = {'judged_topics': n_judged, 'runs': runs}
    if tests:
        result['baseline'] = next(iter(found))
        result['comparisons'] = [{'run': name, **test._asdict()} for name, own in tests.items() for test in own]
    return result


def _parser() -> argparse.ArgumentParser:
    made = parser(
        'evaluate',
        'Evaluate run files with ir_measures. With a word in front, an analysis instead: '
        f'{", ".join(word for word in SUBCOMMANDS if word != "measures")} (each has its own --help).',
    )
    made.add_argument('--qrels', required=True, help='judgments: a file, or a name in the catalog or in Pyserini')
    made.add_argument('runs', nargs='*', metavar='RUN', help='run files, each as FILE or NAME=FILE')
    made.add_argument('--measures', nargs='+', default=DEFAULT_MEASURES, help="in ir_measures' form: AP(rel=2)@1000")
    made.add_argument('--judged-only', action='store_true', help='without documents that nobody judged for the topic')
    made.add_argument('--per-query', metavar='FILE', help='write the value of each topic; - prints them')
    made.add_argument('--compare', action='store_true', help='paired t-tests of the other runs against the first')
    made.add_argument('--json', action='store_true', help='print JSON instead of tables')
    return made
