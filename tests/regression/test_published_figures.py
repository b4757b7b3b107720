"""Every published figure has its entry in regressions/, with its value, and no entry has one of
its own invention.
"""

import subprocess
from pathlib import Path
from typing import NamedTuple

import ir_measures
import pytest
import yaml

from pyserini_repbert.regression.regression_files import read_regression
from pyserini_repbert.regression.schema import Expected

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / 'regressions').glob('*.yaml'))
# Fields of the published figures that are settings or files, not figures.
SETTINGS = {'files', 'columns', 'lines', 'k1', 'b', 'bm25_sqrt', 'baseline_bm25', 'rerank_cutoff'}


def figures(value, path=(), columns=None):
    """(path, value) of every number."""
    if isinstance(value, dict):
        columns = value.get('columns', columns)
        for name, below in value.items():
            if name not in SETTINGS:
                yield from figures(below, (*path, str(name)), columns)
    elif isinstance(value, list):
        for number, below in enumerate(value):
            yield from figures(below, (*path, columns[number] if columns else str(number)))
    elif isinstance(value, int | float):
        yield '/'.join(path), float(value)


PUBLISHED_FILE = Path(__file__).parent / 'published.yaml'
PUBLISHED = dict(figures(yaml.safe_load(PUBLISHED_FILE.read_text(encoding='utf-8'))))
# The last part of a cell's path in the list -> the measure that it is of.
MEASURES = {
    'mrr10': 'RR@10',
    'r1000': 'R@1000',
    'MAP': 'AP',
    'P30': 'P@30',
    'MRR': 'RR',
    'latency': 'latency',
    'robust04_p20': 'P@20',
    'robust04_ndcg20': "nDCG(dcg='exp-log2')@20",
    'webtrack_err20': 'ERR@20',
    'webtrack_ndcg20': "nDCG(dcg='exp-log2')@20",
    'mrr10_dev': 'RR@10',
    'mrr10_test': 'RR@10',
    'r1000_dev': 'R@1000',
    'ndcg_at_10': 'nDCG@10',
    'ndcg_at_1000': 'nDCG@1000',
    'map_at_10': 'AP@10',
    'recall_at_1': 'R@1',
    'recall_at_10': 'R@10',
    'recall_at_100': 'R@100',
    'recall_at_1000': 'R@1000',
    'recall2_at_100': 'R(rel=2)@100',
    'map2_at_100': 'AP(rel=2)@100',
    'mrr2_at_100': 'RR(rel=2)@100',
}
# Cells with another measure than their column. CEDR's figure is P@30 of the authors' own run.
OTHER_MEASURES = {'cedr/BM25/robust04_p20': 'P@30'}


class Entry(NamedTuple):
    """A score of a condition."""

    name: str
    score: Expected


def read_entries():
    entries = []
    for path in FILES:
        regression = read_regression(path)
        for condition in regression.conditions:
            name = f'{regression.name} {condition.name}'
            scores = (*condition.expected, *condition.recorded)
            entries += [Entry(name, score) for score in scores]
    return entries


ENTRIES = read_entries()


def test_every_published_figure_has_an_entry():
    assert len(PUBLISHED) > 250
    cells = {entry.score.cell for entry in ENTRIES}
    assert sorted(set(PUBLISHED) - cells) == []


def test_no_entry_is_its_own_invention():
    wrong = []
    for name, score in ENTRIES:
        if score.cell and PUBLISHED.get(score.cell) != score.value:
            wrong.append(f'{name} {score.cell}: {score.text}')
    assert wrong == []


def git(*words):
    return subprocess.run(['git', *words], cwd=ROOT, capture_output=True, text=True)


def test_a_figure_of_this_project_names_a_commit():
    commits = {entry.score.source.commit for entry in ENTRIES if not entry.score.cell}
    assert commits
    assert '' not in commits
    if not (ROOT / '.git').exists():
        pytest.skip('no history here')
    if git('rev-parse', '--is-shallow-repository').stdout != 'false\n':
        pytest.skip('not the whole history is here')
    for commit in commits:
        assert git('cat-file', '-e', f'{commit}^{{commit}}').returncode == 0, commit


def test_every_measure_is_known():
    for _, score in ENTRIES:
        if not score.unit:
            ir_measures.parse_measure(score.measure)


def test_every_measure_is_that_of_its_cell():
    for _, score in ENTRIES:
        _, _, last = score.cell.rpartition('/')
        if last in MEASURES and '/' in score.cell:
            expected = OTHER_MEASURES.get(score.cell, MEASURES[last])
            assert score.measure == expected, score.cell


def test_every_published_score_names_its_evaluator():
    silent = []
    for name, score in ENTRIES:
        if score.cell and not score.unit and score.evaluator is None:
            silent.append(f'{name} {score.measure}')
    assert silent == []


def test_cedrs_gains_are_exponential():
    gains = {}
    for _, score in ENTRIES:
        if score.cell.startswith('cedr/') and score.measure.startswith('nDCG'):
            gains[score.measure] = score.evaluator.gain
    assert gains == {"nDCG(dcg='exp-log2')@20": '2^grade - 1; ERR of grades up to 4'}


def test_tolerances_are_small_and_have_reasons():
    for _, score in ENTRIES:
        if score.tolerance is not None:
            assert score.tolerance.value <= 0.02
            assert len(score.tolerance.reason) > 20
