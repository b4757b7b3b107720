"""The part file of a reranking: finished query batches, a line each, so that a killed reranking can continue."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import numpy as np

from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.files import StrPath, locked
from pyserini_repbert.ranking import Query, Ranking, Run
from pyserini_repbert.rerank.saved_scores import SavedScores
from pyserini_repbert.trace import Notes, StageCost

SUFFIX = '.part'


def run_digest(topics: Iterable[Query], run: Run) -> str:
    """sha256 of a reranking's input: qids, texts, and docids in order."""
    seen = hashlib.sha256()
    for query in topics:
        docids = run[query.qid].docids if query.qid in run else []
        seen.update(json.dumps([query.qid, query.text, docids]).encode('utf-8'))
    return seen.hexdigest()


class PartFile:
    """`OUTPUT.part`: a line of settings, then a line for each finished query batch, each line after its sha256.

    Use it as a context, in which no other process can write the file. The file is created with the first finished
    batch: a reranking that is refused leaves none behind.

    Parameters
    ----------
    output : the file that the reranking will write
    settings : everything that decides its bytes
    resume : continue an existing part file
    overwrite : replace an existing part file

    Attributes
    ----------
    batches : the finished ones by number: their runs and notes

    Raises
    ------
    InputError
        for an existing part file, with neither `resume` nor `overwrite`
    BusyError
        where another process writes it
    MismatchError
        where `resume` finds a part file with other settings
    DamagedFileError
        where `resume` finds a part file that is not as it was written
    """

    def __init__(
        self, output: StrPath, settings: Mapping[str, Any], resume: bool = False, overwrite: bool = False
    ) -> None:
        self.path = Path(f'{output}{SUFFIX}')
        self.batches: dict[int, tuple[Run, Notes]] = {}
        self._header = json.dumps(settings, sort_keys=True, default=str)
        self._resume, self._overwrite = resume, overwrite
        self._begun = False
        self._held = ExitStack()

    def __enter__(self) -> Self:
        parent = self.path.parent
        new = [folder for folder in (parent, *parent.parents) if not folder.exists()]
        parent.mkdir(parents=True, exist_ok=True)
        self._held.callback(_remove_empty, new)
        try:
            self._held.enter_context(locked(parent / f'.{self.path.name}.lock', str(self.path)))
            if self.path.exists():
                self._go_on()
        except BaseException:
            self._held.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._held.close()

    def _go_on(self) -> None:
        if not (self._resume or self._overwrite):
            raise InputError(
                f'{self.path} is there, of a reranking that was stopped: resume it, or overwrite it',
                parameters=('resume', 'overwrite'),
            )
        if self._resume and (whole := self._read()):
            os.truncate(self.path, whole)
            self._begun = True

    def append(self, number: int, run: Run, notes: Notes) -> None:
        """Write a finished batch; it is on disk when this returns."""
        rankings = [[qid, ranking.docids, ranking.scores] for qid, ranking in run.items()]
        record = {'batch': number, 'rankings': rankings, 'notes': _packed_notes(notes)}
        lines = _checked(json.dumps(record))
        with open(self.path, 'ab' if self._begun else 'wb') as stream:
            stream.write(lines if self._begun else _checked(self._header) + lines)
            stream.flush()
            os.fsync(stream.fileno())
        self._begun = True
        self.batches[number] = run, notes

    def _read(self) -> int:
        """Read the finished batches; returns the number of bytes in whole lines (a kill may have cut the last line)."""
        whole = 0
        with open(self.path, 'rb') as stream:
            for number, line in enumerate(stream, 1):
                if not line.endswith(b'\n'):
                    break
                sha256, _, text = line[:-1].partition(b' ')
                if sha256 != hashlib.sha256(text).hexdigest().encode():
                    raise DamagedFileError(
                        f'{self.path}:{number}: not as it was written, or by another release: begin anew',
                        parameters=('overwrite',),
                    )
                if number == 1:
                    _compare(self.path, json.loads(text), json.loads(self._header))
                else:
                    record = json.loads(text)
                    self.batches[record['batch']] = _unpacked_run(record['rankings']), _unpacked_notes(record['notes'])
                whole += len(line)
        return whole


def finished(output: StrPath) -> None:
    """Remove the part file of `output`, once `output` is written."""
    Path(f'{output}{SUFFIX}').unlink(missing_ok=True)


def _checked(text: str) -> bytes:
    """A line of the part file: sha256, space, text."""
    return f'{hashlib.sha256(text.encode()).hexdigest()} {text}\n'.encode()


def _remove_empty(folders: Sequence[Path]) -> None:
    """Remove empty folders, the deepest first."""
    with contextlib.suppress(OSError):
        for folder in folders:
            folder.rmdir()


def _compare(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for key in sorted(before.keys() | now.keys()):
        if before.get(key) != now.get(key):
            old, new = (json.dumps(values.get(key))[:120] for values in (before, now))
            raise MismatchError(
                f'{path} was begun with other settings: {key} was {old}, now it is {new}: '
                'resume with the same, or begin anew',
                parameters=('overwrite',),
            )


def _unpacked_run(rankings: Iterable[Any]) -> Run:
    return {qid: Ranking(docids, scores) for qid, docids, scores in rankings}


def _packed_notes(notes: Notes) -> dict[str, Any]:
    """Costs and saved scores; the runs of single stages are not kept."""
    return {
        'name': notes.name,
        'cost': notes.cost and asdict(notes.cost),
        'scores': [_packed(saved) for saved in notes.kept.get('scores', {}).values()],
        'parts': [[place, _packed_notes(part)] for place, part in notes.parts.items()],
    }


def _unpacked_notes(values: Mapping[str, Any]) -> Notes:
    notes = Notes(name=values['name'])
    notes.cost = values['cost'] and StageCost(**values['cost'])
    for saved in map(_unpacked, values['scores']):
        notes.keep('scores', saved.qid, saved)
    notes.parts = {place: _unpacked_notes(part) for place, part in values['parts']}
    return notes


def _packed(saved: SavedScores) -> dict[str, Any]:
    return {
        'qid': saved.qid,
        'query': saved.query,
        'docids': list(saved.docids),
        'scores': saved.scores.tolist(),
        'members': saved.members.tolist(),
        'differences': base64.b64encode(np.ascontiguousarray(saved.differences, dtype='<f8').tobytes()).decode('ascii'),
    }


def _unpacked(values: Mapping[str, Any]) -> SavedScores:
    members: Sequence[int] = values['members']
    flat = np.frombuffer(base64.b64decode(values['differences']), dtype='<f8').astype(np.float64)
    return SavedScores(
        values['qid'],
        values['query'],
        tuple(values['docids']),
        np.array(values['scores'], dtype=np.float64),
        np.array(members, dtype=np.int64),
        flat.reshape(len(members), len(members)),
    )
