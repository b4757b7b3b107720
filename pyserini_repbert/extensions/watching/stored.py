"""Where the figures of generations are kept: two tables of a collection's file of judgments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pydantic import TypeAdapter, ValidationError

from pyserini_repbert.collection.judgment_file import ADVICE
from pyserini_repbert.collection.judgments import JudgmentStore
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.extensions.watching.measured import MeasuredGeneration

_MEASURED = TypeAdapter(MeasuredGeneration)


def store_generation(
    store: JudgmentStore, measured: MeasuredGeneration, rankings: Mapping[str, Sequence[str]]
) -> None:
    """Store the results of a generation's questions, and replace earlier ones.

    Parameters
    ----------
    store : the judgments of the collection
    measured : the figures
    rankings : the best docids of each question, by qid; rankings of other generations are dropped
    """
    report = _MEASURED.dump_json(measured).decode()
    with store.writing() as connection:
        # A later one is of a collection that was in the folder before.
        connection.execute('DELETE FROM measured WHERE generation >= ?', [measured.generation])
        connection.execute('INSERT INTO measured VALUES (?, ?)', [measured.generation, report])
        connection.execute('DELETE FROM measured_rankings')
        rows = [(qid, json.dumps(list(docids))) for qid, docids in rankings.items()]
        connection.executemany('INSERT INTO measured_rankings VALUES (?, ?)', rows)


def stored_generations(store: JudgmentStore) -> list[MeasuredGeneration]:
    """The measured values, by generation."""
    generations = []
    rows = store.select('SELECT report FROM measured ORDER BY generation')
    for (report,) in rows:
        store.parsed(report, dict)
        try:
            generations.append(_MEASURED.validate_json(report))
        except ValidationError as error:
            raise DamagedFileError(
                f'{store.path} is damaged, its measurements are not in the stored form: {ADVICE}'
            ) from error
    return generations


def stored_rankings(store: JudgmentStore) -> dict[str, list[str]]:
    """The best docids of each question, by qid, in the generation that was measured last."""
    rows = store.select('SELECT qid, docids FROM measured_rankings')
    return {qid: store.parsed(docids, list) for qid, docids in rows}
