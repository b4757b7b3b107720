"""Grades of language models in commands: the flag that uses them, and what is printed about
them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyserini_repbert.commands import command
from pyserini_repbert.commands.console import printable
from pyserini_repbert.commands.model_grades import model_judge_of
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.tables import markdown

if TYPE_CHECKING:
    from pyserini_repbert.collection.judging.model_grades import ModelAgreement, ModelGradeStore


def add_model_grades_flag(parser: argparse._ActionsContainer, purpose: str) -> None:
    """Add the flag that mixes a model's grades into people's judgments."""
    parser.add_argument('--with-model-grades', metavar='JUDGE', help=purpose)


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
    """Raises InputError for judgments with a model's grades, because they would become a
    person's.
    """
    judge = model_judge_of(qrels)
    if judge is not None:
        raise InputError(
            f"{qrels} has grades of the language model '{judge}': give judgments of people alone",
            parameters=('qrels',),
        )
