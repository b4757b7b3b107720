"""`python -m pyserini_repbert.evaluate`: measures of run files, or an analysis."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pyserini_repbert.commands.command import (
    Parser,
    parser,
    progress,
    refuse,
    whole_number,
    zero_or_more,
)
from pyserini_repbert.commands.console import json_text
from pyserini_repbert.commands.flags import (
    add_flags,
    named_paths,
    parse_flags,
)
from pyserini_repbert.commands.model_judging import check_model_grades
from pyserini_repbert.data.topics import Qrels
from pyserini_repbert.evaluate.latex import latex_table
from pyserini_repbert.evaluate.measures import (
    Evaluation,
    NamedMeasure,
    evaluate_topics,
    judged_docids,
    judged_only,
    parse_measures,
)
from pyserini_repbert.evaluate.significance import (
    SAMPLES,
    TEST_NAMES,
    RunComparison,
    SignificanceTest,
    compare_with_first,
)
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.files import atomic_file
from pyserini_repbert.ranking import Ranking, Run

if TYPE_CHECKING:
    from pyserini_repbert.commands.evaluate_report import HtmlReport

_ANALYSES = {  # the first word -> the module that has its function
    'fusion-table': 'evaluate_studies',
    'consistency': 'evaluate_studies',
    'recall-depth': 'evaluate_studies',
    'rerank-depth': 'evaluate_studies',
    'tradeoff': 'evaluate_costs',
    'epic-pruning': 'evaluate_costs',
    'split-folds': 'evaluate_folds',
    'join-folds': 'evaluate_folds',
    'calibration': 'evaluate_calibration',
    'costs': 'model_costs',
    'ir-metadata': 'ir_metadata',
}
_PRINTED = '-'  # the --per-query that is printed
_SIGNIFICANT = 0.05  # the p below which a LaTeX table marks a difference


def main(arguments: list[str]) -> None:
    """Print the measures of run files, or run the analysis that the first argument names."""
    if arguments and arguments[0] in _ANALYSES:
        module = importlib.import_module(f'pyserini_repbert.commands.{_ANALYSES[arguments[0]]}')
        analysis = getattr(module, arguments[0].replace('-', '_'))
        analysis(arguments[1:])
    else:
        _evaluate(_parse(arguments))


def _evaluate(options: argparse.Namespace) -> None:
    """Measure the runs, and print or write what was asked for."""
    from pyserini_repbert.names.topics import load_qrels

    measures = parse_measures(options.measures)
    paths = named_paths(options.runs)
    check_model_grades(options.qrels, paths, options.even_if_circular)
    qrels = load_qrels(options.qrels)
    report = _open_report(options, measures, qrels)
    evaluations: dict[str, Evaluation] = {}
    with progress(len(paths), 'runs', 'run', options.quiet) as bar:
        for name, path in paths.items():
            reading = _RunReading(path, qrels, options.judged_only, is_kept=report is not None)
            evaluations[name] = reading.evaluate(measures)
            reading.warn(name)
            if report is not None:
                report.add(name, path, reading.run, evaluations[name])
            bar.update()
    tests: list[RunComparison] = []
    if options.compare:
        tests = compare_with_first(
            evaluations,
            test=options.test,
            confidence=options.confidence,
            samples=options.samples,
            seed=options.seed,
        )
    summary = _write_files(options, evaluations, report)
    if options.per_query == _PRINTED:
        _write_per_query(sys.stdout, evaluations)
    elif options.json:
        _print_json(evaluations, tests, paths, len(qrels))
    elif options.latex:
        print(latex_table(evaluations, _significant(tests)))
    else:
        _print_tables(evaluations, tests, len(qrels), options)
        print(summary, end='')


def _write_files(
    options: argparse.Namespace,
    evaluations: Mapping[str, Evaluation],
    report: HtmlReport | None,
) -> str:
    """Write the files of --per-query and --html; returns what to print of the report."""
    if options.per_query and options.per_query != _PRINTED:
        with atomic_file(options.per_query) as stream:
            _write_per_query(stream, evaluations)
    if report is None:
        return ''
    return f'\n{report.write()}\n'


def _open_report(
    options: argparse.Namespace, measures: Sequence[NamedMeasure], qrels: Qrels
) -> HtmlReport | None:
    """The report of --html, without runs; None where none is asked for."""
    if not options.html:
        return None
    from pyserini_repbert.commands.evaluate_report import HtmlReport

    return HtmlReport(options, measures, qrels)


def _parse(arguments: list[str]) -> argparse.Namespace:
    """The options of the command, checked."""
    options = parse_flags(_make_parser(), arguments)
    refuse(
        not options.runs,
        'no run files were given: name them before --measures, which takes all words after it',
    )
    refuse(
        options.compare and len(options.runs) < 2,
        '--compare takes the baseline first, then runs to compare with it',
    )
    _check_samples(options)
    _check_outputs(options)
    options.test = SignificanceTest(options.test or SignificanceTest.T)
    options.samples = options.samples or SAMPLES
    options.seed = options.seed or 0
    return options


def _check_outputs(options: argparse.Namespace) -> None:
    """Raise InputError for several printed outputs, and for flags of --html without it."""
    refuse(options.json and options.latex, '--json and --latex both print: give one of them')
    refuse(
        options.per_query == _PRINTED and (options.json or options.latex),
        '--per-query - prints instead of --json and --latex: write the values per query to a file',
    )
    for flag in ('topics', 'index', 'corpus'):
        refuse(
            getattr(options, flag) is not None and not options.html,
            f'--{flag} goes with --html, which was not given',
        )
    refuse(
        options.index is not None and options.corpus is not None,
        '--index and --corpus both give the texts of documents: give one of them',
    )


def _check_samples(options: argparse.Namespace) -> None:
    """Raise InputError for flags of a comparison that is not made, or takes no samples."""
    compares = options.compare or options.html
    for flag in ('test', 'confidence', 'samples', 'seed'):
        refuse(
            getattr(options, flag) is not None and not compares,
            f'--{flag} goes with --compare or --html: neither was given',
        )
    is_randomized = options.test == SignificanceTest.RANDOMIZATION
    is_sampled = is_randomized or options.confidence is not None or options.html
    for flag in ('samples', 'seed'):
        refuse(
            getattr(options, flag) is not None and not is_sampled,
            f'--{flag} goes with --test randomization, --confidence or --html: none was given',
        )
    refuse(
        options.confidence is not None and not 0 < options.confidence < 1,
        f'--confidence {options.confidence}: expected a share between 0 and 1, such as 0.95',
    )


def _make_parser() -> Parser:
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
        '--even-if-circular',
        action='store_true',
        help='evaluate a run that a language model ranked by grades of the same model',
    )
    add(
        '--judged-only', action='store_true', help='leave out hits that nobody judged for the topic'
    )
    add(
        '--per-query',
        metavar='FILE',
        help='write the value of each topic; - prints them instead of the table',
    )
    add(
        '--html',
        metavar='FILE',
        help='write a page: rankings side by side, gains and losses, the questions to look at by '
        'the first of --measures',
    )
    add_flags(flags, 'topics', help='of --html: the words of the questions, named as for search')
    add(
        '--index',
        help='of --html: a collection, or an index with texts, whose documents are shown',
    )
    add('--corpus', help='of --html: the corpus whose texts are shown, instead of --index')
    add_flags(flags, 'overwrite')
    add(
        '--compare',
        action='store_true',
        help='compare the other runs with the first; several p are corrected by Holm',
    )
    add(
        '--test',
        choices=[*SignificanceTest],
        help="of --compare and --html: paired t-test or Fisher's randomisation test; default: t",
    )
    add(
        '--confidence',
        type=float,
        metavar='SHARE',
        help='of --compare: also the bootstrap interval of each difference: 0.95, which --html '
        'has by default',
    )
    add(
        '--samples',
        type=whole_number,
        help=f'of the randomisation test and the bootstrap; default: {SAMPLES}',
    )
    add('--seed', type=zero_or_more, help='of the samples; default: 0')
    add('--latex', action='store_true', help='print a LaTeX table: the best in bold, † for p < .05')
    add('--json', action='store_true', help='print JSON instead of tables')
    return flags


class _RunReading:
    """Evaluates a run file, and counts how much of it is judged.

    Parameters
    ----------
    path : of the file
    qrels : the judgments
    judged_only : leave out hits that are not judged
    is_kept : keep the whole run, which takes memory

    Attributes
    ----------
    run : the topics that were read, if they are kept
    """

    def __init__(self, path: str, qrels: Qrels, judged_only: bool, is_kept: bool) -> None:
        self.run: Run = {}
        self._path = path
        self._qrels = qrels
        self._judged_only = judged_only
        # What is no file can be read once.
        self._is_kept = is_kept or not Path(path).is_file()
        self._judged_docids = judged_docids(qrels)

    def evaluate(self, measures: Sequence[NamedMeasure]) -> Evaluation:
        """The values of the run."""
        from pyserini_repbert.data.runs import ScatteredQueryError, iter_run, read_run

        if not self._is_kept:
            # A run whose topics are scattered is read whole.
            with contextlib.suppress(ScatteredQueryError):
                return evaluate_topics(self._read(iter_run(self._path)), self._qrels, measures)
        self.run = read_run(self._path)
        return evaluate_topics(self._read(self.run.items()), self._qrels, measures)

    def _read(self, topics: Iterable[tuple[str, Ranking]]) -> Iterator[tuple[str, Ranking]]:
        """The topics of the run, counted."""
        self._n_topics = 0
        self._n_judged = 0
        self._has_judged_docid = False
        for qid, ranking in topics:
            self._n_topics += 1
            self._n_judged += qid in self._qrels
            if not self._has_judged_docid:
                self._has_judged_docid = not self._judged_docids.isdisjoint(ranking.docids)
            if self._judged_only:
                yield from judged_only({qid: ranking}, self._qrels).items()
            else:
                yield qid, ranking

    def warn(self, name: str) -> None:
        """Warn of a run that hardly has topics, or no docids, that are judged."""
        if 2 * self._n_judged < self._n_topics:
            print(
                f'warning: {self._n_judged} of the {self._n_topics} topics of {name} are judged',
                file=sys.stderr,
            )
        if self._n_topics and not self._has_judged_docid:
            print(
                f'warning: none of the {len(self._judged_docids)} judged docids is in {name}: '
                'check that both name the same passages',
                file=sys.stderr,
            )


def _write_per_query(stream: IO[str], evaluations: Mapping[str, Evaluation]) -> None:
    stream.write('run\tqid\tmeasure\tvalue\n')
    for name, evaluation in evaluations.items():
        for measure, values in evaluation.values.items():
            for qid, value in values.items():
                stream.write(f'{name}\t{qid}\t{measure}\t{value:.6f}\n')


def _print_json(
    evaluations: Mapping[str, Evaluation],
    tests: Sequence[RunComparison],
    paths: Mapping[str, str],
    n_topics: int,
) -> None:
    runs = []
    for name, evaluation in evaluations.items():
        runs.append(
            {
                'run': name,
                'path': paths[name],
                'topics_without_hits': len(evaluation.without_hits),
                'measures': evaluation.means,
            }
        )
    results: dict[str, Any] = {'judged_topics': n_topics, 'runs': runs}
    if tests:
        results['baseline'] = next(iter(evaluations))
        results['comparisons'] = [_test_values(test) for test in tests]
    print(json_text(results, indent=2))


def _significant(tests: Sequence[RunComparison]) -> set[tuple[str, str]]:
    """The names of runs and measures in which they differ from the baseline by more than noise."""
    found = set()
    for test in tests:
        if test.p < _SIGNIFICANT:
            found.add((test.run, test.comparison.measure))
    return found


def _test_values(test: RunComparison) -> dict[str, Any]:
    """A comparison, as JSON has it."""
    values = {'run': test.run, **test.comparison._asdict()}
    if test.p_holm is not None:
        values['p_holm'] = test.p_holm
    if test.interval is not None:
        values['interval'] = list(test.interval)
    return values


def _print_tables(
    evaluations: Mapping[str, Evaluation],
    tests: Sequence[RunComparison],
    n_topics: int,
    options: argparse.Namespace,
) -> None:
    """Print the means of each run, and how they compare with the first one's."""
    baseline = next(iter(evaluations))
    rows = []
    notes = []
    for name, evaluation in evaluations.items():
        rows.append([name, *(f'{value:.4f}' for value in evaluation.means.values())])
        if evaluation.without_hits:
            n_without = len(evaluation.without_hits)
            notes.append(f'{name} has no hits for {n_without} of them, which count 0.')
    print(markdown(['run', *evaluations[baseline].means], rows))
    print(f'\nOver {n_topics} judged topics.', *notes)
    if tests:
        how = f'{TEST_NAMES[options.test]}, two-sided'
        if options.test == SignificanceTest.RANDOMIZATION or options.confidence is not None:
            how += f'; {options.samples} samples, seed {options.seed}'
        print(f'\nAgainst {baseline} ({how}):\n')
        compared = [_test_row(test, options) for test in tests]
        print(markdown(list(compared[0]), [list(row.values()) for row in compared]))


def _test_row(test: RunComparison, options: argparse.Namespace) -> dict[str, str]:
    """The cells of a comparison, by their headers."""
    comparison = test.comparison
    row = {
        'run': test.run,
        'measure': comparison.measure,
        'difference': f'{comparison.difference:+.4f}',
    }
    if test.interval is not None:
        header = f'{100 * options.confidence:g}% interval'
        row[header] = f'{test.interval.low:+.4f} to {test.interval.high:+.4f}'
    if options.test == SignificanceTest.T:
        row['t'] = f'{comparison.t:.3f}'
    row['p'] = f'{comparison.p:.4g}'
    if test.p_holm is not None:
        row['p (Holm)'] = f'{test.p_holm:.4g}'
    row |= {
        'better': str(comparison.wins),
        'equal': str(comparison.ties),
        'worse': str(comparison.losses),
    }
    return row
