"""Every published figure has its entry in regressions/, with its value, and no entry has one of
its own invention.
"""

import subprocess
from pathlib import Path

import ir_measures
import pytest
import yaml

from pyserini_repbert.regression.reading import read_regression

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


PUBLISHED = dict(
    figures(yaml.safe_load((Path(__file__).parent / 'published.yaml').read_text(encoding='utf-8')))
)
REGRESSIONS = [read_regression(path) for path in FILES]


def entries():
    for regression in REGRESSIONS:
        for condition in regression.conditions:
            for expected in (*condition.expected, *condition.recorded):
                yield regression, condition, expected


def test_every_published_figure_has_an_entry():
    assert len(PUBLISHED) > 250
    assert sorted(set(PUBLISHED) - {expected.cell for _, _, expected in entries()}) == []


def test_no_entry_is_its_own_invention():
    wrong = [
        f'{regression.name} {condition.name} {expected.cell}: {expected.text}'
        for regression, condition, expected in entries()
        if expected.cell and PUBLISHED.get(expected.cell) != expected.value
    ]
    assert wrong == []


def test_a_figure_of_this_project_names_a_commit():
    commits = {own.source.commit for _, _, own in entries() if not own.cell}
    assert commits and all(commits)
    if not (ROOT / '.git').exists():
        pytest.skip('no history here')
    shallow = subprocess.run(
        ['git', 'rev-parse', '--is-shallow-repository'], cwd=ROOT, capture_output=True, text=True
    )
    if shallow.stdout == 'false\n':
        for commit in commits:
            subprocess.run(['git', 'cat-file', '-e', f'{commit}^{{commit}}'], cwd=ROOT, check=True)


def test_every_measure_is_known_and_says_what_the_cell_says():
    signs = {
        'mrr10': 'RR@10',
        'r1000': 'R@1000',
        'MAP': 'AP',
        'P30': 'P@30',
        'MRR': 'RR',
        'latency': 'latency',
    }
    signs |= {
        'robust04_p20': 'P@20',
        'robust04_ndcg20': 'nDCG@20',
        'webtrack_err20': 'ERR@20',
        '1': 'nDCG@10',
    }
    signs |= {
        'webtrack_ndcg20': 'nDCG@20',
        'mrr10_dev': 'RR@10',
        'mrr10_test': 'RR@10',
        'r1000_dev': 'R@1000',
    }
    for _, _, expected in entries():
        if not expected.unit:
            ir_measures.parse_measure(expected.measure)
        last = expected.cell.rpartition('/')[2]
        if last in signs and '/' in expected.cell:
            assert expected.measure == signs[last], expected.cell


def test_tolerances_are_small_and_have_reasons():
    for _, _, expected in entries():
        if expected.tolerance is not None:
            assert expected.tolerance.value <= 0.02
            assert len(expected.tolerance.reason) > 20
