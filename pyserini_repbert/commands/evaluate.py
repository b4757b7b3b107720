"""`python -m pyserini_repbert.evaluate`: measures of run files, or an analysis."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert.commands import evaluate_tables as tables
from pyserini_repbert.commands.command import Parser, parser, progress, refuse
from pyserini_repbert.commands.evaluate_comparing import (
    add_comparison_flags,
    check_comparison_flags,
    pairs_of,
    settings_of,
)
from pyserini_repbert.commands.flags import (
    OutputFile,
    add_flags,
    named_paths,
    parse_flags,
    write_values,
)
from pyserini_repbert.commands.model_grades import check_model_grades
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.evaluate.comparisons import RunPair, compare_pairs, topic_differences
from pyserini_repbert.evaluate.latex import latex_table
from pyserini_repbert.evaluate.measures import (
    Evaluation,
    NamedMeasure,
    evaluate_topics,
    judged_docids,
    judged_only,
    parse_measures,
)
from pyserini_repbert.evaluate.plots import plot_differences
from pyserini_repbert.extension import commands_below
from pyserini_repbert.extension_words import refuse_missing_command
from pyserini_repbert.files import atomic_file
from pyserini_repbert.ranking import Ranking, Run

if TYPE_CHECKING:
    from pyserini_repbert.commands.evaluate_report import HtmlReport

_ANALYSES = {  # the first word -> the module that has its function
    'fusion-table': 'evaluate_studies',
    'consistency': 'evaluate_studies',
    'recall-depth': 'evaluate_studies',
    'rerank-depth': 'evaluate_studies',
    'tradeoff': 'evaluate_tradeoff',
    'epic-pruning': 'evaluate_pruning',
    'latency': 'evaluate_latency',
    'split-folds': 'evaluate_folds',
    'join-folds': 'evaluate_folds',
    'tune': 'evaluate_tune',
}
_PRINTED = '-'  # the --per-query that is printed
_UNMARKED = (
    'note: no difference was tested, so none is marked: --compare, --baselines and --compare-all '
    'test them'
)


def main(arguments: list[str]) -> None:
    """Print the measures of run files, or run the analysis that the first argument names."""
    if arguments and arguments[0] in _ANALYSES:
        module = importlib.import_module(f'pyserini_repbert.commands.{_ANALYSES[arguments[0]]}')
        analysis = getattr(module, arguments[0].replace('-', '_'))
        analysis(arguments[1:])
        return
    of_extensions = commands_below('evaluate')
    if arguments and arguments[0] in of_extensions:
        of_extensions[arguments[0]].run(arguments[1:])
        return
    if arguments:
        refuse_missing_command(f'evaluate {arguments[0]}')
    _evaluate(_parse(arguments))


def _evaluate(options: argparse.Namespace) -> None:
    """Measure the runs, and print or write the requested outputs."""
    from pyserini_repbert.names.topics import load_qrels

    measures = parse_measures(options.measures)
    paths = named_paths(options.runs)
    pairs = pairs_of(options, list(paths))
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
    settings = settings_of(options)
    comparisons = compare_pairs(evaluations, pairs, settings)
    summary = _write_files(options, evaluations, report, pairs)
    if options.per_query == _PRINTED:
        tables.write_per_query(sys.stdout, evaluations)
    elif options.json:
        tables.print_json(evaluations, comparisons, paths)
    elif options.latex:
        print(latex_table(evaluations, comparisons, settings))
        if len(paths) > 1 and not comparisons:
            print(_UNMARKED, file=sys.stderr)
    else:
        tables.print_tables(evaluations, comparisons, settings)
        print(summary, end='')


def _write_files(
    options: argparse.Namespace,
    evaluations: Mapping[str, Evaluation],
    report: HtmlReport | None,
    pairs: Sequence[RunPair],
) -> str:
    """Write the files of --per-query, --plot and --html; returns what to print of the report."""
    if options.per_query and options.per_query != _PRINTED:
        with atomic_file(options.per_query) as stream:
            tables.write_per_query(stream, evaluations)
    if options.plot:
        differences = topic_differences(evaluations, pairs)
        write_values(options.csv, ['measure', 'baseline', 'run', 'qid', 'difference'], differences)
        plot_differences(options.plot, differences)
    if report is None:
        return ''
    return f'\n{report.write()}\n'


def _open_report(
    options: argparse.Namespace, measures: Sequence[NamedMeasure], qrels: Qrels
) -> HtmlReport | None:
    """The report of --html, without runs; None if none is asked for."""
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
    check_comparison_flags(options)
    _check_outputs(options)
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


def _make_parser() -> Parser:
    names = [*_ANALYSES, *commands_below('evaluate')]
    others = f'{", ".join(names)} (each has its own --help)'
    flags = parser(
        'evaluate',
        f'Score run files with judgments. `evaluate ANALYSIS` runs an analysis instead: {others}.',
    )
    add = flags.add_argument
    add_flags(flags, 'qrels')
    add('runs', nargs='*', metavar='RUN', help='run files, each as FILE or NAME=FILE')
    add_flags(flags, 'measures')
    add(
        '--even-if-circular',
        action='store_true',
        help='evaluate a run by the grades of the language model that ranked it',
    )
    add(
        '--judged-only', action='store_true', help='leave out hits that nobody judged for the topic'
    )
    add(
        '--per-query',
        type=OutputFile,
        metavar='FILE',
        help='write the values of each topic to a file; - prints them instead of the table',
    )
    add(
        '--html',
        type=OutputFile,
        metavar='FILE',
        help='write a page: rankings side by side, gains and losses, and the questions to look '
        'at, by the first of --measures',
    )
    add_flags(
        flags,
        'topics',
        help='with --html: the topics, to show the words of the questions; named as for search',
    )
    add(
        '--index',
        help='with --html: a collection, or an index that stores texts, to show documents',
    )
    add('--corpus', help='with --html: the corpus, to show documents without --index')
    add_comparison_flags(flags)
    add_flags(
        flags,
        'plot',
        help='with a comparison: plot the difference of each topic in the first of --measures, as '
        '.png, .pdf or .svg, and write the values beside it as .csv',
    )
    add_flags(flags, 'overwrite')
    add(
        '--latex',
        action='store_true',
        help='print a LaTeX table: the best in bold, significant differences marked, the test in '
        'the caption',
    )
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
        # A pipe can be read only once.
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
