"""A language model as a judge: flags of `index judgments`, and what is printed of its grades."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert.commands import command
from pyserini_repbert.commands.console import printable
from pyserini_repbert.commands.flags import add_flags
from pyserini_repbert.commands.model_grades import model_judge_of
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.systems.llm.settings import NAME, LanguageModelSettings

if TYPE_CHECKING:
    from pyserini_repbert.collection.judging.model_grades import ModelAgreement, ModelGradeStore

_POOL_DEPTH = 5
# Flags that are for a language model alone.
_OF_MODEL = ('llm', 'llm_model', 'llm_answers', 'judge_prompt', 'pool_depth', 'even_if_circular')


def add_model_judge_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of a language model that judges."""
    add = parser.add_argument
    add_flags(parser, 'llm', 'llm_answers')
    add_flags(parser, 'llm_model', help='the language model of --judge llm')
    add(
        '--judge-prompt',
        metavar='FILE',
        help='of --judge llm: a prompt with {query} and {passage}; default: the shipped one',
    )
    add(
        '--pool-depth',
        type=command.positive_int,
        metavar='N',
        help='of --judge llm: grade the best N documents of the search and of each of its '
        f'rankings, and those that people judged; default: {_POOL_DEPTH}',
    )
    add(
        '--even-if-circular',
        action='store_true',
        help='let a model judge what its own grades taught to rank',
    )
    add_model_grades_flag(
        parser,
        "write into these files a language model's grades, too, where no person judged; JUDGE is "
        'its name as it is printed here',
    )


def add_model_grades_flag(parser: argparse._ActionsContainer, purpose: str) -> None:
    """Add the flag that mixes a model's grades into people's judgments."""
    parser.add_argument('--with-model-grades', metavar='JUDGE', help=purpose)


def is_model_judge(options: argparse.Namespace) -> bool:
    """Whether a language model is to judge. Raises InputError for flags that do not go together."""
    is_model: bool = options.judge == NAME
    command.refuse(
        is_model and bool(options.qrels),
        f"--judge {NAME} lets a language model judge: give the person's name with --qrels",
    )
    for name in _OF_MODEL:
        command.refuse(
            not is_model and getattr(options, name) not in (None, False),
            f'--{name.replace("_", "-")} is for --judge {NAME}',
        )
    command.refuse(is_model and options.llm_model is None, f'--judge {NAME} takes --llm-model')
    return is_model


def judge_by_model(options: argparse.Namespace, folder: Path) -> None:
    """Let a language model grade the pool of a collection, and print what it did."""
    from pyserini_repbert.collection.adaptation import judgments_of
    from pyserini_repbert.collection.judging.language_model_judge import TRIES, LanguageModelJudge
    from pyserini_repbert.collection.judging.model_judging import grade_pool

    settings = LanguageModelSettings(options.llm_model, options.llm, options.llm_answers)
    judge = LanguageModelJudge(settings, options.judge_prompt)
    n_questions = len(judgments_of(folder).questions())
    with command.progress(n_questions, 'judge', 'question', options.quiet) as bar:
        judging = grade_pool(
            folder,
            judge,
            options.pool_depth or _POOL_DEPTH,
            device=options.device,
            even_if_circular=options.even_if_circular,
            on_progress=bar.update,
        )
    work = judge.work
    documents = command.count_text(judging.graded, 'document')
    print(
        f"language model '{printable(judge.judge.name)}' graded {documents}, {judging.known} had "
        'a grade'
    )
    print(
        f'  {work.calls} answers asked for, {work.answers - work.calls} kept; '
        f'{work.prompt_tokens} tokens of prompts, {work.answer_tokens} of answers'
    )
    if work.malformed:
        print(
            f'  {work.malformed} answers had no grade from 0 to 3; {judging.ungraded} documents '
            f'have none after {TRIES} answers'
        )


def print_model_agreements(store: ModelGradeStore) -> None:
    """Print the grades of each language model, and how far it agrees with people."""
    for judge in store.model_judges():
        agreement = store.agreement_with_people(judge)
        grades = command.count_text(agreement.n_grades, 'grade')
        pairs = command.count_text(len(agreement.pairs), 'document')
        line = f"  language model '{printable(judge)}': {grades}, none of them a person's"
        if not agreement.pairs:
            print(f'{line}; people judged none of its documents')
            continue
        kappa = 'not defined' if agreement.kappa is None else f'{agreement.kappa:.3f}'
        print(f'{line}; people judged {pairs} of these, too: kappa {kappa}')
        for row in _confusion_table(agreement):
            print(f'    {row}')


def _confusion_table(agreement: ModelAgreement) -> Iterator[str]:
    """How often each grade of people met each of the model's, as lines of a table."""
    of_people = sorted({person for person, _ in agreement.pairs})
    of_model = sorted({model for _, model in agreement.pairs})
    rows = []
    for person in of_people:
        counts = [str(agreement.pairs.count((person, model))) for model in of_model]
        rows.append([f'people {person}', *counts])
    header = ['', *(f'model {model}' for model in of_model)]
    yield from markdown(header, rows).splitlines()


def refuse_model_grades(qrels: str) -> None:
    """Raises InputError for judgments with a model's grades, which are to become a person's."""
    judge = model_judge_of(qrels)
    if judge is not None:
        raise InputError(
            f"{qrels} has grades of the language model '{judge}': give judgments of people alone",
            parameters=('qrels',),
        )
