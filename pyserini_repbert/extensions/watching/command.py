"""What the judged questions of a collection find: before and after a sync, and by generation."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert.collection.commands.asking import warn_of_few
from pyserini_repbert.commands import command
from pyserini_repbert.commands.command import EXIT_WORSE
from pyserini_repbert.commands.console import json_text, printable
from pyserini_repbert.commands.flags import add_flags
from pyserini_repbert.data.origins import readable_docid
from pyserini_repbert.errors import InputError

if TYPE_CHECKING:
    from pyserini_repbert.collection.judging.asking import MeanOfQuestions
    from pyserini_repbert.collection.syncing import Changes
    from pyserini_repbert.extensions.watching.measured import (
        GenerationChange,
        MeasuredGeneration,
        MovedQuestion,
    )

# Questions that are printed, of those that moved.
_MOST_QUESTIONS = 10
# Documents that are named, of those that came in.
_MOST_DOCUMENTS = 3
_BLOCKS = '▁▂▃▄▅▆▇█'


def status_after(options: argparse.Namespace, changes: Changes) -> int:
    """Ask the judged questions after a sync, print what moved; returns the exit status."""
    is_worse = changes.is_published and _measure_after(options)
    return EXIT_WORSE if is_worse else 0


def measure_before(options: argparse.Namespace) -> None:
    """Ask the judged questions before a sync, unless the newest generation was asked already.

    Raises InputError for --fail-if-worse without a judged question.
    """
    from pyserini_repbert.collection.judging.asking import judged_questions
    from pyserini_repbert.extensions.watching.measuring import measure_generation
    from pyserini_repbert.indexes.kind import kind_of

    folder = Path(options.index)
    has_questions = kind_of(options.index).is_writable and bool(judged_questions(folder).topics)
    if options.fail_if_worse is not None and not has_questions:
        raise InputError(
            f'judged questions are to be compared, and {options.index} has none with a relevant '
            'document: judge some, or leave it out',
            parameters=('fail_if_worse',),
        )
    if has_questions:
        measure_generation(folder, options.device)


def _measure_after(options: argparse.Namespace) -> bool:
    """Ask the judged questions after a sync, and print what moved; returns whether it failed."""
    from pyserini_repbert.collection.judging.asking import judged_questions
    from pyserini_repbert.evaluate.measures import counts_unjudged
    from pyserini_repbert.extensions.watching.measuring import measure_generation

    folder = Path(options.index)
    judged = judged_questions(folder)
    n_questions = len(judged.topics)
    if not n_questions:
        print(
            f'{options.index}: nothing to watch: no question has a relevant document yet',
            file=sys.stderr,
        )
        return False
    change = measure_generation(folder, options.device).change
    if change is None:
        return False
    if change.questions:
        _print_change(change, n_questions)
        warn_of_few(n_questions)
    # If only answers are judged, a ranking of judged documents is always the best one.
    difference = change.ndcg if counts_unjudged(judged.qrels) else change.condensed
    most = options.fail_if_worse
    return most is not None and difference.mean < -most


def _print_change(change: GenerationChange, n_questions: int) -> None:
    """Print what moved between two generations."""
    questions = command.count_text(n_questions, 'judged question')
    print(f'{questions}, since generation {change.since}:')
    print(f'  nDCG@10                   {_difference_text(change.ndcg)}')
    print(f'  only judged documents     {_difference_text(change.condensed)}')
    for question in change.questions[:_MOST_QUESTIONS]:
        _print_question(question)
    left_out = len(change.questions) - _MOST_QUESTIONS
    if left_out > 0:
        print(f'  and {command.count_text(left_out, "question")} more')


def _difference_text(difference: MeanOfQuestions) -> str:
    return f'{difference.mean:+.4f}, 95% interval {difference.low:+.4f} to {difference.high:+.4f}'


def _print_question(question: MovedQuestion) -> None:
    """Print a question that moved, and the documents that left and entered its best ten."""
    before = question.before
    after = question.after
    figures = (
        f'nDCG@10 {before.ndcg:.3f} -> {after.ndcg:.3f}, only judged {before.condensed:.3f} -> '
        f'{after.condensed:.3f}'
    )
    if before.answered is not None and after.answered is not None:
        figures += f', answered with probability {before.answered:.2f} -> {after.answered:.2f}'
    print('  ' + printable(f'? {after.question}'))
    print(f'      {figures}')
    for docid in question.left:
        reason = 'deleted' if docid in question.deleted else 'no longer among the best ten'
        print('      ' + printable(f'{readable_docid(docid)}: {reason}'))
    if question.entered:
        print('      ' + printable(f'new there: {_entered_text(question)}'))


def _entered_text(question: MovedQuestion) -> str:
    """The documents that entered the best ten of a question."""
    names = []
    for docid in question.entered[:_MOST_DOCUMENTS]:
        name = readable_docid(docid)
        names.append(f'{name} (not judged)' if docid in question.unjudged else name)
    left_out = len(question.entered) - _MOST_DOCUMENTS
    if left_out > 0:
        names.append(f'{left_out} more')
    return ', '.join(names)


def add_history_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `index history`."""
    parser.add_argument('--index', required=True, help='a collection')
    parser.add_argument(
        '--ask',
        action='store_true',
        help='ask the judged questions first, if the newest generation was not asked',
    )
    parser.add_argument('--json', action='store_true', help='print JSON instead of a table')
    add_flags(parser, 'device', 'offline')


def show_history(options: argparse.Namespace) -> None:
    """Print what the judged questions found in each generation that was asked."""
    from pyserini_repbert.collection.adaptation import judgments_of
    from pyserini_repbert.collection.judging.asking import judged_questions
    from pyserini_repbert.extensions.watching.measuring import is_measured, measure_generation
    from pyserini_repbert.extensions.watching.stored import stored_generations

    folder = Path(options.index)
    # Refuses a folder that is not a collection.
    judged_questions(folder)
    if options.ask:
        measure_generation(folder, options.device)
    measured = stored_generations(judgments_of(folder))
    if options.json:
        print(json_text([asdict(generation) for generation in measured], indent=1))
        return
    if not measured:
        raise InputError(
            f'no generation of {options.index} was asked its judged questions: ask them now, or '
            'while you sync',
            parameters=('ask', 'watch'),
        )
    _print_history(measured)
    newest = measured[-1]
    if newest.change is not None and newest.change.questions:
        _print_change(newest.change, len(newest.questions))
    _print_unanswered(newest)
    warn_of_few(len(newest.questions))
    if not is_measured(folder):
        print(
            f'{options.index} has changed since, or has other judgments or settings: ask again '
            'with --ask',
            file=sys.stderr,
        )


def _print_history(measured: Sequence[MeasuredGeneration]) -> None:
    """Print a table of generations, and the curve of nDCG@10."""
    from pyserini_repbert.evaluate.tables import markdown

    rows = []
    for generation in measured:
        change = generation.change
        answered = '' if generation.answered is None else f'{generation.answered:.2f}'
        rows.append(
            [
                str(generation.generation),
                generation.measured[:10],
                str(len(generation.questions)),
                _mean_text(generation.ndcg),
                _mean_text(generation.condensed),
                f'{generation.judged_share:.0%}',
                answered,
                '' if change is None else str(change.n_fallen),
            ]
        )
    header = ['generation', 'asked', 'questions', 'nDCG@10', 'only judged', 'judged hits']
    print(markdown([*header, 'answered', 'fell'], rows))
    values = [generation.ndcg.mean for generation in measured]
    print(f'nDCG@10 {min(values):.3f} to {max(values):.3f}: {_curve(values)}')


def _print_unanswered(generation: MeasuredGeneration) -> None:
    """Print the questions that a generation does not answer."""
    unanswered = generation.unanswered
    questions = command.count_text(generation.n_asked, 'judged question')
    print(f'without a relevant document among the best ten: {len(unanswered)} of {questions}')
    n_without = len(generation.without_relevant)
    if n_without:
        print(
            f'  {n_without} of them: nobody judged any document relevant, so nDCG@10 leaves them '
            'out'
        )
    for question in unanswered[:_MOST_QUESTIONS]:
        sure = (
            ''
            if question.answered is None
            else f' (answered with probability {question.answered:.2f})'
        )
        print('  ' + printable(f'? {question.question}{sure}'))
    left_out = len(unanswered) - _MOST_QUESTIONS
    if left_out > 0:
        print(f'  and {command.count_text(left_out, "question")} more')


def _mean_text(mean: MeanOfQuestions) -> str:
    return f'{mean.mean:.3f} ({mean.low:.3f} to {mean.high:.3f})'


def _curve(values: Sequence[float]) -> str:
    """A block for each value, the least value the lowest, the greatest the highest."""
    least = min(values)
    reach = max(values) - least
    blocks = []
    for value in values:
        height = round((len(_BLOCKS) - 1) * (value - least) / reach) if reach else 0
        blocks.append(_BLOCKS[height])
    return ''.join(blocks)
