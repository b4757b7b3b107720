"""Every cell of the papers' tables is a published figure with an entry: counted against the tables
as they are printed (papers_tables.txt).
"""

from collections import Counter
from pathlib import Path

import pytest
import yaml

from pyserini_repbert.regression.grids import papers_tables
from pyserini_repbert.regression.regression_files import read_regression

HERE = Path(__file__).parent
FILES = sorted((HERE.parents[1] / 'regressions').glob('*.yaml'))
PUBLISHED = yaml.safe_load((HERE / 'published.yaml').read_text(encoding='utf-8'))


def read_printed():
    """Name of a table -> the numbers of its lines, of percentages as fractions."""
    printed = {}
    for line in (HERE / 'papers_tables.txt').read_text(encoding='utf-8').splitlines():
        if line.startswith('## '):
            name, *marks = line.removeprefix('## ').split()
            divisor = 100 if marks == ['%'] else 1
            numbers = printed.setdefault(name, [])
        elif line and not line.startswith('#'):
            for text in line.split():
                if text != '-':
                    numbers.append(round(float(text) / divisor, 6))
    return printed


PRINTED = read_printed()


def numbers_in(value):
    """All numbers below a value of the published figures."""
    if isinstance(value, dict):
        below = [item for name, item in value.items() if name != 'columns']
    elif isinstance(value, list):
        below = value
    else:
        return [] if value is None else [round(float(value), 6)]
    numbers = []
    for item in below:
        numbers += numbers_in(item)
    return numbers


def published_table(name):
    value = PUBLISHED
    for key in name.split('/'):
        value = value[key]
    return value


@pytest.mark.parametrize('name', PRINTED)
def test_a_table_was_transcribed_whole(name):
    assert Counter(numbers_in(published_table(name))) == Counter(PRINTED[name])


def test_the_papers_have_as_many_cells():
    counts = {name: len(numbers) for name, numbers in PRINTED.items()}
    assert counts == {
        'repbert/table1_first_stage': 27,
        'repbert/table2_bert_large_rerank_mrr10_dev': 25,
        'repbert/table3_interleave_mrr10_dev': 25,
        'repbert/table4_interleave_r1000_dev': 25,
        'multi_stage_bert/table1_msmarco_mrr10': 19,
        'multi_stage_bert/table2_trec_car_map': 7,
        'epic/table1_msmarco_dev': 28,
        'cedr': 78,
    }


def entry_paths():
    paths = set()
    for path in FILES:
        for condition in read_regression(path).conditions:
            for score in (*condition.expected, *condition.recorded):
                paths.add(score.cell)
    return paths


def test_the_report_shows_each_cell_of_a_table():
    entries = entry_paths()
    for table in papers_tables():
        shown = 0
        for row in table.rows:
            shown += sum(table.path(row, column) in entries for column in table.columns)
        assert shown == len(PRINTED[table.cells]), table.title
