"""A small regression on two run files: what tests change in them has to be seen."""

import pytest
from folders import write_files
from one_process import OneProcess

from pyserini_repbert.regression.regression_files import read_regression
from pyserini_repbert.regression.workspace import Workspace

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
"""  # noqa: E501


@pytest.fixture
def data(tmp_path):
    """Run a ranks x, y; run b ranks w, z; y is relevant: third in a+b (x, w, y, z), fourth in
    b+a.
    """
    folder = write_files(
        tmp_path / 'data',
        {
            'a.txt': '1 Q0 x 1 9 a\n1 Q0 y 2 8 a\n',
            'b.txt': '1 Q0 w 1 9 b\n1 Q0 z 2 8 b\n',
            'qrels.txt': '1 0 y 1\n',
        },
    )
    return folder


@pytest.fixture
def regression_file(tmp_path):
    """make(old='', new='') -> the small regression, with a text in it replaced."""

    def make(old='', new=''):
        path = tmp_path / 'small.yaml'
        assert old in TEXT
        path.write_text(TEXT.replace(old, new) if old else TEXT, encoding='utf-8')
        return path

    return make


@pytest.fixture
def workspace(tmp_path, data):
    """make(path, version='1') -> where a regression's commands run."""

    def make(path, version='1'):
        return Workspace(read_regression(path), tmp_path / 'work', str(data), version)

    return make


@pytest.fixture
def commands_here(monkeypatch):
    """Commands of regressions run in this process."""
    monkeypatch.setattr(Workspace, 'run', OneProcess.run)
