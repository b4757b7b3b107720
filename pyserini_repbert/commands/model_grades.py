"""Judgments with a language model's grades, as the record beside them says: they are named, and do
not judge what the same model ranked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyserini_repbert.commands.console import printable
from pyserini_repbert.data.model_judges import TAUGHT_BY, model_of
from pyserini_repbert.errors import InputError

if TYPE_CHECKING:
    from pyserini_repbert.data.qrels import Qrels

# Roles of runs in a record: of a fusion, and of a reranking.
_RUNS = ('runs', 'run')


def model_judge_of(qrels: str) -> str | None:
    """The language model whose grades are among judgments, as the record beside them has it."""
    from pyserini_repbert.record import read_record

    record = read_record(qrels)
    judge = None if record is None else record.settings.get('with_model_grades')
    return judge if isinstance(judge, str) else None


def load_judgments(qrels: str) -> Qrels:
    """The judgments of a file or name. A line says if they include a model's grades."""
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
    """What a language model did for a run, or for one of its inputs; None for nothing.

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
        # A run is never its own input, because a record has the checksum of its output.
        if part.role in _RUNS and part.sha256 is not None and checksum(part.name) == part.sha256:
            share = _share_in_run(model, f'{part.name}, an input of {name}', part.name)
            if share is not None:
                return share
    return None


def _teachers(settings: Mapping[str, Any]) -> Iterator[str]:
    """The language models whose grades taught a search, by the settings of its record."""
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
