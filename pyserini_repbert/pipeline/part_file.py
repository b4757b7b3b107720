"""The part file of a reranking: finished query batches, a line each, so that a killed reranking
can continue.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.files import StrPath, locked
from pyserini_repbert.ranking import Query, Ranking, Run
from pyserini_repbert.trace import Notes, StageCost

SUFFIX = '.part'


def run_digest(topics: Iterable[Query], run: Run, with_scores: bool) -> str:
    """sha256 of a reranking's input: qids, texts, and docids in order, of topics that the run
    has.

    `with_scores` says whether scores decide the result, too (`Ranker.reads_scores`).
    """
    seen = hashlib.sha256()
    for query in topics:
        ranking = run[query.qid]
        decisive: list[Any] = [query.qid, query.text, ranking.docids]
        if with_scores:
            decisive.append(ranking.scores)
        seen.update(json.dumps(decisive).encode('utf-8'))
    return seen.hexdigest()


@contextlib.contextmanager
def open_part_file(
    output: StrPath, settings: Mapping[str, Any], resume: bool = False, overwrite: bool = False
) -> Iterator[PartFile]:
    """The part file of an output, which no other process can write meanwhile.

    `settings` are everything that decides the bytes of the output. An existing part file is
    continued or replaced.
    """
    path = Path(f'{output}{SUFFIX}')
    new = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with locked(path.with_name(f'.{path.name}.lock'), str(path)):
            if path.exists() and not (resume or overwrite):
                raise InputError(
                    f'{path} is left from a reranking that was stopped: resume it, or overwrite it',
                    parameters=('resume', 'overwrite'),
                )
            yield PartFile(
                path, json.dumps(settings, sort_keys=True, default=str), resume and path.exists()
            )
    finally:
        with contextlib.suppress(OSError):  # a folder that is not empty
            for folder in new:
                folder.rmdir()


class PartFile:
    """`OUTPUT.part`: a line of settings, then a line for each finished query batch, each line after
    its sha256.

    The file is created with the first finished batch: a reranking that is refused leaves none
    behind.
    """

    def __init__(self, path: Path, header: str, resume: bool) -> None:
        self.path = path
        self._header = header
        self.batches: dict[int, tuple[Run, Notes]] = {}  # the finished ones by number
        n_whole = 0
        if resume:
            n_whole = self._read()
        self._begun = n_whole > 0
        if self._begun:
            os.truncate(path, n_whole)

    def append(self, number: int, run: Run, notes: Notes) -> None:
        """Write a finished batch; it is on disk when this returns."""
        rankings = [[qid, ranking.docids, ranking.scores] for qid, ranking in run.items()]
        record = {'batch': number, 'rankings': rankings, 'notes': _packed_notes(notes)}
        lines = _checked(json.dumps(record))
        mode = 'ab'
        if not self._begun:
            mode = 'wb'
            lines = _checked(self._header) + lines
        with open(self.path, mode) as stream:
            stream.write(lines)
            stream.flush()
            os.fsync(stream.fileno())
        self._begun = True
        self.batches[number] = run, notes

    def _read(self) -> int:
        """Read the finished batches; returns the number of bytes in whole lines (a kill may have
        cut the last line).
        """
        whole = 0
        with open(self.path, 'rb') as stream:
            for number, line in enumerate(stream, 1):
                if not line.endswith(b'\n'):
                    break
                sha256, _, text = line[:-1].partition(b' ')
                if sha256 != hashlib.sha256(text).hexdigest().encode():
                    raise DamagedFileError(
                        f'{self.path}:{number}: the line is damaged, or another release wrote it: '
                        'start again',
                        parameters=('overwrite',),
                    )
                if number == 1:
                    _compare(self.path, json.loads(text), json.loads(self._header))
                else:
                    record = json.loads(text)
                    run = {
                        qid: Ranking(docids, scores) for qid, docids, scores in record['rankings']
                    }
                    self.batches[record['batch']] = run, _unpacked_notes(record['notes'])
                whole += len(line)
        return whole


def finished(output: StrPath) -> None:
    """Remove the part file of `output`, once `output` is written."""
    Path(f'{output}{SUFFIX}').unlink(missing_ok=True)


def _checked(text: str) -> bytes:
    """A line of the part file: sha256, space, text."""
    return f'{hashlib.sha256(text.encode()).hexdigest()} {text}\n'.encode()


def _compare(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for key in sorted(before.keys() | now.keys()):
        if before.get(key) != now.get(key):
            old, new = (json.dumps(values.get(key))[:120] for values in (before, now))
            raise MismatchError(
                f'{path} was begun with other settings: {key} was {old}, now it is {new}: '
                'resume with the same settings, or start again',
                parameters=('overwrite',),
            )


def _packed_notes(notes: Notes) -> dict[str, Any]:
    """Costs and saved scores; the runs of single stages are not kept."""
    scores = []
    for saved in notes.kept.get('scores', {}).values():
        arrays = [saved.scores.tolist(), saved.members.tolist(), saved.differences.tolist()]
        scores.append([saved.qid, saved.query, saved.docids, *arrays])
    return {
        'name': notes.name,
        'cost': notes.cost and asdict(notes.cost),
        'scores': scores,
        'parts': [list(pair) for pair in enumerate(map(_packed_notes, notes.parts.values()))],
    }


def _unpacked_notes(values: Mapping[str, Any]) -> Notes:
    notes = Notes(name=values['name'])
    notes.cost = values['cost'] and StageCost(**values['cost'])
    for qid, query, docids, scores, members, differences in values['scores']:
        matrix = np.array(differences, np.float64).reshape(len(members), len(members))
        arrays = np.array(scores, np.float64), np.array(members, np.int64), matrix
        # A run without rerankers needs no PyTorch.
        from pyserini_repbert.systems.duobert.saved_scores import SavedScores

        notes.keep('scores', qid, SavedScores(qid, query, tuple(docids), *arrays))
    for _, packed in values['parts']:
        part = _unpacked_notes(packed)
        notes.parts[part.name] = part
    return notes
