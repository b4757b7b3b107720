"""`index judgments`: import, export and count the judgments of a collection."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert.collection.commands.model_grades import (
    add_model_grades_flag,
    print_model_agreements,
    refuse_model_grades,
)
from pyserini_repbert.commands import command, outputs
from pyserini_repbert.commands.console import printable
from pyserini_repbert.commands.flags import add_flags, record_output
from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import add_flags_of, parts_of
from pyserini_repbert.extension_words import missing_extension
from pyserini_repbert.files import atomic_file

if TYPE_CHECKING:
    from pyserini_repbert.collection.commands.parts import JudgmentsPart
    from pyserini_repbert.collection.judging.judgment_exports import JudgmentFormat
    from pyserini_repbert.collection.judgments import JudgmentStore

# Questions that are printed, of those to judge next.
_MOST_QUESTIONS = 10


def add_judgments_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `index judgments`."""
    add = parser.add_argument
    add('--index', required=True, help='a collection')
    add_flags(parser, 'topics')
    add('--qrels', help='judgments to import, for the questions of --topics')
    add(
        '--judge',
        default='',
        metavar='NAME',
        help='the name of the person who made the judgments of --qrels; or a judge that an '
        'extension adds',
    )
    add(
        '--questions',
        metavar='FILE',
        help="a file of questions to judge in the page, one on each line; or a service's log of "
        'searches',
    )
    add(
        '--export-topics',
        type=outputs.OutputPath,
        metavar='FILE',
        help='write the judged questions: qid<TAB>text',
    )
    add(
        '--export-qrels',
        type=outputs.OutputPath,
        metavar='FILE',
        help='write one grade of each judged document',
    )
    add(
        '--export',
        type=outputs.OutputPath,
        metavar='FILE',
        help='write each judgment, as a line of JSON',
    )
    add(
        '--only-random',
        action='store_true',
        help='leave the questions that --order chose out of these files',
    )
    add(
        '--order',
        action='store_true',
        help='sort the questions that nobody has judged, the most useful first: in turn one on '
        'which the rankings differ, one whose answer is uncertain, and a random one',
    )
    add_model_grades_flag(
        parser,
        "also write a language model's grades of documents that no person judged; JUDGE is "
        'its name as it is printed here',
    )
    add_flags_of('index judgments', parser)
    add_flags(parser, 'overwrite', 'device', 'offline')


def handle_judgments(options: argparse.Namespace) -> None:
    """Store judgments and questions, order or grade them, write the files, and print counts."""
    from pyserini_repbert.collection.adaptation import judgments_of
    from pyserini_repbert.indexes.kind import kind_of

    kind_of(options.index).check_writable(options.index, 'build one with `index sync`')
    command.refuse(
        bool(options.topics) != bool(options.qrels), '--topics and --qrels go together: give both'
    )
    exports = _chosen_exports(options)
    judge = _judge_of(options)
    folder = Path(options.index)
    store = judgments_of(folder)
    _import_files(options, store)
    if options.order:
        _order_questions(folder, options.device)
    if judge is not None:
        judge.grade(options, folder)
    _write_exports(options, store, exports)
    _print_counts(options.index, store)


def _judge_of(options: argparse.Namespace) -> JudgmentsPart | None:
    """The judge of an extension that --judge names; None for a person.

    Raises InputError for flags that do not go together.
    """
    named: JudgmentsPart | None = None
    for part in parts_of('index judgments'):
        part.check(options)
        if part.judge == options.judge:
            named = part
    command.refuse(
        options.judge and named is None and not options.qrels,
        f"--judge '{options.judge}' made the judgments of --qrels, which were not given"
        f'{missing_extension(options.judge)}',
    )
    return named


def _chosen_exports(options: argparse.Namespace) -> dict[str, JudgmentFormat]:
    """The files to write, and what each gets.

    Raises InputError for one that exists, and for flags of such files without any.
    """
    from pyserini_repbert.collection.judging.judgment_exports import JudgmentFormat

    formats_by_path = {
        options.export_topics: JudgmentFormat.TOPICS,
        options.export_qrels: JudgmentFormat.QRELS,
        options.export: JudgmentFormat.JSONL,
    }
    exports = {path: form for path, form in formats_by_path.items() if path is not None}
    for path in exports:
        if Path(path).exists() and not options.overwrite:
            raise InputError(
                f'{path} exists: choose another file, or overwrite it', parameters=('overwrite',)
            )
    command.refuse(
        options.only_random and not exports,
        '--only-random is for --export-topics, --export-qrels and --export: give one of them',
    )
    command.refuse(
        options.with_model_grades and not exports,
        '--with-model-grades is for --export-topics, --export-qrels and --export: give one',
    )
    return exports


def _import_files(options: argparse.Namespace, store: JudgmentStore) -> None:
    """Store the judgments of --qrels, and the questions of --questions, if they are given."""
    from pyserini_repbert.collection.judging.question_files import read_questions
    from pyserini_repbert.names.topics import load_qrels, load_topics

    if options.topics:
        topics = load_topics(options.topics)
        refuse_model_grades(options.qrels)
        store.add_qrels(topics, load_qrels(options.qrels), options.judge)
    if options.questions:
        store.add_questions(read_questions(options.questions))


def _order_questions(folder: Path, device: str) -> None:
    """Order the questions that nobody has judged, and print the first ones."""
    from pyserini_repbert.collection.judging.next_questions import order_questions

    ordered = order_questions(folder, device)
    print(f'{command.count_text(len(ordered), "question")} to judge, in this order:')
    for question in ordered[:_MOST_QUESTIONS]:
        print('  ' + printable(f'{question.text} ({question.reason})'))
    left_out = len(ordered) - _MOST_QUESTIONS
    if left_out > 0:
        print(f'  and {left_out} more')


def _write_exports(
    options: argparse.Namespace, store: JudgmentStore, exports: Mapping[str, JudgmentFormat]
) -> None:
    """Write each file with its content, and a model's grades too if they are asked for."""
    from pyserini_repbert.collection.judging.judgment_exports import exported
    from pyserini_repbert.collection.judging.model_grades import JudgmentsWithModel

    source = store
    if options.with_model_grades:
        source = JudgmentsWithModel(store.path, options.with_model_grades)
    for path, form in exports.items():
        with atomic_file(path) as file:
            file.write(exported(source, form, options.only_random))
        if options.with_model_grades:
            # TREC's lines have no judge: the record says that a model is among them.
            record_output(options, path, ())


def _print_counts(index: str, store: JudgmentStore) -> None:
    """Print how many judgments there are, of how many questions, and how far judges agree."""
    from pyserini_repbert.collection.judging.model_grades import ModelGradeStore

    topics = store.topics()
    judgments = command.count_text(store.count(), 'judgment')
    print(f'{index}: {judgments} of {command.count_text(len(topics), "question")}')
    chosen_qids = store.chosen_qids()
    n_chosen = sum(topic.qid in chosen_qids for topic in topics)
    if n_chosen:
        print(
            f'  {n_chosen} of the questions were chosen: for means over all questions, leave them '
            'out (--only-random)'
        )
    for agreement in store.agreements():
        kappa = 'not defined' if agreement.kappa is None else f'{agreement.kappa:.3f}'
        names = ' and '.join(f"'{printable(judge)}'" for judge in agreement.judges)
        documents = command.count_text(agreement.documents, 'document')
        print(f'  {names} both judged {documents}: kappa {kappa}')
    print_model_agreements(ModelGradeStore(store.path))
