"""A language model as a judge: flags of `index judgments`, and what is printed of its grades."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.commands import command
from pyserini_repbert.commands.console import printable
from pyserini_repbert.commands.flags import add_flags
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.systems.llm.settings import NAME, LanguageModelSettings

if TYPE_CHECKING:
    from pyserini_repbert.data.model_grades import ModelAgreement, ModelGradeStore
    from pyserini_repbert.data.topics import Qrels

_POOL_DEPTH = 5
# Roles of runs in a record: of a fusion, and of a reranking.
_RUNS = ('runs', 'run')
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


def add_model_grades_flag(parser: argparse.ArgumentParser, purpose: str) -> None:
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
    from pyserini_repbert.adapt.model_judging import grade_pool
    from pyserini_repbert.collection.adaptation import judgments_of
    from pyserini_repbert.systems.llm.judging import TRIES, LanguageModelJudge

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


def model_judge_of(qrels: str) -> str | None:
    """The language model whose grades are among judgments, as the record beside them has it."""
    from pyserini_repbert.record import read_record

    record = read_record(qrels)
    judge = None if record is None else record.settings.get('with_model_grades')
    return judge if isinstance(judge, str) else None


def refuse_model_grades(qrels: str) -> None:
    """Raises InputError for judgments with a model's grades, which are to become a person's."""
    judge = model_judge_of(qrels)
    if judge is not None:
        raise InputError(
            f"{qrels} has grades of the language model '{judge}': give judgments of people alone",
            parameters=('qrels',),
        )


def load_judgments(qrels: str) -> Qrels:
    """The judgments of a file or name; a line says where they have a model's grades."""
    from pyserini_repbert.names.topics import load_qrels

    _say_model_grades(qrels)
    return load_qrels(qrels)


def _say_model_grades(qrels: str) -> str | None:
    """Say that judgments have a model's grades, where the record beside them does; whose."""
    judge = model_judge_of(qrels)
    if judge is not None:
        print(
            f"note: {qrels} has grades of the language model '{printable(judge)}'", file=sys.stderr
        )
    return judge


def check_model_grades(qrels: str, runs: Mapping[str, str], even_if_circular: bool) -> None:
    """Say that judgments have a model's grades, where the record beside them does.

    Parameters
    ----------
    qrels : a file, or a name
    runs : the run file of each name
    even_if_circular : also take runs that the same model ranked, or that its grades taught

    Raises InputError for these, as their records have it.
    """
    from pyserini_repbert.data.model_grades import model_of

    judge = _say_model_grades(qrels)
    if judge is None or even_if_circular:
        return
    for name, path in runs.items():
        share = _share_in_run(model_of(judge), name, path)
        if share is not None:
            raise InputError(
                f"'{model_of(judge)}' would judge its own ranking: {share}, and its grades are in "
                f'{qrels}: give judgments of people, or of another model',
                parameters=('even_if_circular',),
            )


def _share_in_run(model: str, name: str, path: str) -> str | None:
    """What a language model did for a run, or for one that it was made of; None for nothing.

    Parameters
    ----------
    model : the language model
    name : of the run, for the answer
    path : of its file
    """
    from pyserini_repbert.record import checksum, read_record

    record = read_record(path)
    if record is None:
        return None
    if record.settings.get('llm_model') == model:
        return f'it ranked {name}'
    if model in _teachers(record.settings):
        return f'its grades taught the search that gave {name}'
    for part in record.inputs:
        # A run is never an input of itself: the checksum of a record is that of its output.
        if part.role in _RUNS and part.sha256 is not None and checksum(part.name) == part.sha256:
            share = _share_in_run(model, f'{part.name}, of which {name} was made', part.name)
            if share is not None:
                return share
    return None


def _teachers(settings: Mapping[str, Any]) -> Iterator[str]:
    """The language models whose grades taught a search, by the settings of its record."""
    from pyserini_repbert.data.model_grades import TAUGHT_BY, model_of
    from pyserini_repbert.record import read_record

    judges = [settings.get(TAUGHT_BY)]
    adapted = settings.get('adapted')
    learned = read_record(adapted) if isinstance(adapted, str) else None
    qrels = None if learned is None else learned.input('qrels')
    if qrels is not None:
        judges.append(model_judge_of(qrels.name))
    for judge in judges:
        if isinstance(judge, str):
            yield model_of(judge)
