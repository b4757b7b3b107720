"""A small regression on two run files, and a dense search: what tests change in them has to be seen."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.regression import main
from pyserini_repbert.regression.reading import read_regression
from pyserini_repbert.regression.workspace import CommandFailedError, Workspace

TEXT = """\
name: small
title: Two runs interleaved
resources:
  a: {what: a run, path: '{data}/a.txt', size: 60 B, get: 'https://example.org/a.txt'}
  b: {what: another run, path: '{data}/b.txt', get: write it}
  qrels: {what: judgments, path: '{data}/qrels.txt', get: write them}
sources:
  here: {text: this project, commit: '0123456'}
tolerances:
  none: {value: 0, reason: nothing can differ}
  some: {value: 0.2, reason: for the test}
conditions:
  - name: '{first}+{second}'
    grid: {first: [a, b], second: [a, b]}
    only: different
    commands:
      - python -m pyserini_repbert.fusion --runs {{first}} {{second}} --output {out}/{first}+{second}.txt
    run: '{out}/{first}+{second}.txt'
    qrels: '{qrels}'
    expected:
      - measure: RR@10
        source: here
        tolerance: none
        values: {a: {b: 0.3333}, b: {a: 0.25}}
"""
DENSE = """\
name: dense
title: A dense search
resources:
  corpus: {what: a corpus, path: '{data}/corpus.jsonl', get: write it}
  topics: {what: topics, path: '{data}/topics.tsv', get: write them}
  qrels: {what: judgments, path: '{data}/qrels.txt', get: write them}
  model: {what: a checkpoint, path: '{data}/tiny', get: make it}
builds:
  index:
    path: '{out}/index'
    commands:
      - python -m pyserini_repbert.encode --corpus {corpus} --encoder {model} --fp32 --output {index}
sources:
  here: {text: this project, commit: '0123456'}
tolerances:
  none: {value: 0, reason: nothing can differ}
conditions:
  - name: dense
    commands:
      - python -m pyserini_repbert.search --index {index} --encoder {model} --topics {topics} --output {out}/dense.txt
    run: '{out}/dense.txt'
    qrels: '{qrels}'
    expected:
      - {measure: AP, value: 0.5, source: here, tolerance: none}
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Run a ranks x, y; run b ranks w, z; y is relevant: third in a+b (x, w, y, z), fourth in b+a."""
    folder = tmp_path / 'data'
    folder.mkdir()
    (folder / 'a.txt').write_text('1 Q0 x 1 9 a\n1 Q0 y 2 8 a\n', encoding='utf-8')
    (folder / 'b.txt').write_text('1 Q0 w 1 9 b\n1 Q0 z 2 8 b\n', encoding='utf-8')
    (folder / 'qrels.txt').write_text('1 0 y 1\n', encoding='utf-8')
    return folder


@pytest.fixture
def regression_file(tmp_path: Path) -> Callable[..., Path]:
    """make(old='', new='') -> the small regression, with a text in it replaced."""

    def make(old: str = '', new: str = '') -> Path:
        path = tmp_path / 'small.yaml'
        assert old in TEXT
        path.write_text(TEXT.replace(old, new) if old else TEXT, encoding='utf-8')
        return path

    return make


@pytest.fixture
def workspace(tmp_path: Path, data: Path) -> Callable[..., Workspace]:
    """make(path, version='1') -> where a regression's commands run."""

    def make(path: Path, version: str = '1') -> Workspace:
        return Workspace(read_regression(path), tmp_path / 'work', str(data), version)

    return make


@dataclass(frozen=True)
class World:
    """The regression file, its data folder, and where reports go."""

    file: Path
    data: Path
    folder: Path
    capsys: pytest.CaptureFixture[str]

    def report(self, name: str, **changes: float) -> dict[str, Any]:
        """Run the file, write the report NAME.json, give it back; `changes` are scores to put in, by measure."""
        path = self.folder / f'{name}.json'
        assert run(main, [str(self.file), *self._folders(name), '--report', str(path)]) in (0, 1)
        found: dict[str, Any] = json.loads(path.read_text(encoding='utf-8'))
        for score in found['files'][0]['conditions'][0]['scores']:
            score['measured'] = changes.get(score['measure'], score['measured'])
        path.write_text(json.dumps(found), encoding='utf-8')
        return found

    def blame(self, *flags: str) -> str:
        """What `blame a.json b.json --probe` prints."""
        self.capsys.readouterr()
        reports = [str(self.folder / name) for name in ('a.json', 'b.json')]
        given = [*reports, '--probe', '--files', str(self.file), *self._folders('probed'), *flags]
        assert run(main, ['blame', *given]) == 0
        return self.capsys.readouterr().out

    @staticmethod
    def score(report: dict[str, Any]) -> float:
        """The first score of a report."""
        return float(report['files'][0]['conditions'][0]['scores'][0]['measured'])

    @staticmethod
    def rows(printed: str) -> list[list[str]]:
        """The cells of the table of factors."""
        lines = printed.partition('of the difference |')[2].partition('\n\n')[0].splitlines()[2:]
        return [[cell.strip() for cell in line.strip('| ').split('|')] for line in lines]

    @staticmethod
    def run_here(workspace: Workspace, command: str) -> str:
        """`Workspace.run` without a process of its own."""
        words = workspace.words(command)
        printed = io.StringIO()
        module = importlib.import_module(f'{words[2]}.__main__')
        with mock.patch.dict(os.environ, workspace._environment), contextlib.redirect_stdout(printed):
            status = run(module.main, [*words[3:], '--quiet'])
        if status:
            raise CommandFailedError(f"'{command}' ended with status {status}")
        return printed.getvalue()

    def _folders(self, name: str) -> list[str]:
        return ['--data', str(self.data), '--work', str(self.folder / f'work-{name}')]


@pytest.fixture
def commands_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands of regressions run in this process, where nothing has to be imported for each of them."""
    monkeypatch.setattr(Workspace, 'run', World.run_here)


@pytest.fixture
def dense_world(
    commands_here: None,
    tmp_path: Path,
    tiny_checkpoint: Callable[..., Path],
    corpus_file: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> World:
    """Sixty passages and twelve questions, half their words capitals; every fifth passage is relevant."""
    monkeypatch.setenv('OMP_NUM_THREADS', '1')
    tiny_checkpoint()
    corpus = corpus_file(60)
    texts = [json.loads(line)['contents'] for line in corpus.read_text(encoding='utf-8').splitlines()]
    topics = [f'{number}\t{texts[5 * number].title()} {texts[number]}\n' for number in range(12)]
    (tmp_path / 'topics.tsv').write_text(''.join(topics), encoding='utf-8')
    qrels = [f'{number} 0 d{doc} 1\n' for number in range(12) for doc in range(number % 5, 60, 5)]
    (tmp_path / 'qrels.txt').write_text(''.join(qrels), encoding='utf-8')
    (tmp_path / 'dense.yaml').write_text(DENSE, encoding='utf-8')
    return World(tmp_path / 'dense.yaml', tmp_path, tmp_path, capsys)


@pytest.fixture
def world_of(tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[Path], World]:
    """make(file) -> the world of a regression file over `data`."""
    return lambda file: World(file, data, tmp_path, capsys)
