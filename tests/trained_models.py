"""What tests ask of trained checkpoints."""

import csv
from pathlib import Path

import numpy as np
import pytest

from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank import CedrReranker, DuoBertReranker, EpicReranker, MonoBertReranker
from pyserini_repbert.train.csv_log import CsvLog
from pyserini_repbert.train.training import train

REPBERT = {'max_query_length': 8, 'max_doc_length': 16}


SYSTEMS = {
    'repbert': REPBERT,
    'monobert': {'max_query_length': 8, 'max_length': 48},
    'duobert': {'max_query_length': 8, 'max_length': 48},
    'epic': {'max_query_length': 8},
    'cedr': {'architecture': 'knrm', 'max_query_length': 6},
}


RERANKERS = {
    'monobert': MonoBertReranker,
    'duobert': DuoBertReranker,
    'epic': EpicReranker,
    'cedr': CedrReranker,
}


CANDIDATES = [
    Candidate('a', 0, 'the cat sat on the mat'),
    Candidate('b', 0, 'a big dog'),
    Candidate('c', 0, 'sky'),
]


def losses(folder: Path) -> list[float]:
    with open(folder / 'log.csv', encoding='utf-8', newline='') as stream:
        return [float(row['loss']) for row in csv.DictReader(stream) if row['loss']]


def scores(system: str, folder: Path) -> np.ndarray:
    if system == 'repbert':
        query = RepBertQueryEncoder(folder).encode('cat mat')
        return RepBertDocumentEncoder(folder).encode([own.text for own in CANDIDATES]) @ query
    return RERANKERS[system](folder).score_lists(['cat mat'], [CANDIDATES])[0]


def dies_before(monkeypatch, module, name):
    """Whoever calls `module.name` is killed, as far as files go."""

    def killed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, name, killed)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class Killed(Exception):
    """Stands for the end of a process."""


def killed_at(step: int, recipe, folder: Path, monkeypatch) -> None:
    """Train until the log of a step is written, and die there."""
    original = CsvLog.on_log

    def dies(self, args, state, control, logs=None, **kwargs):
        original(self, args, state, control, logs, **kwargs)
        if state.global_step == step:
            raise Killed

    monkeypatch.setattr(CsvLog, 'on_log', dies)
    with pytest.raises(Killed):
        train(recipe, folder, device='cpu')
    monkeypatch.undo()
