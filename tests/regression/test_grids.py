"""The papers' tables in a report: what each cell says, in Markdown and HTML."""

import json
from pathlib import Path

import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.regression import main
from pyserini_repbert.regression.grids import papers_tables
from pyserini_repbert.regression.regression_files import read_regression
from pyserini_repbert.regression.report import merge_reports

ROOT = Path(__file__).parents[2]
TABLE3 = 'repbert/table3_interleave_mrr10_dev'


def condition(name, status, cell, measured=None, **more):
    """A condition of a report with one score, expected to be 0.245."""
    score = {
        'measure': 'RR@10',
        'expected': '0.245',
        'measured': measured,
        'status': status,
        'source': 'a table',
        'cell': cell,
        'tolerance': None,
        'reason': '',
    }
    content = {
        'name': name,
        'status': status,
        'why': '',
        'seconds': 1.0,
        'remembered': False,
        'missing': [],
        'commands': ['python -m one'],
        'scores': [score],
        'fingerprint': {},
    }
    return content | more


def report(*conditions):
    file = {'file': 'a.yaml', 'title': 'A', 'conditions': list(conditions)}
    return merge_reports([{'environment': {}, 'files': [file]}])


UNPUBLISHED = {
    'name': 'r',
    'what': 'eval runs',
    'size': '',
    'get': 'not published; secret',
    'origin': 'unpublished',
}
DATA = report(
    condition('published', 'NOT RUN', f'{TABLE3}/BM25/RepBERT'),
    condition('made', 'PASS', f'{TABLE3}/BM25/RepBERT', 0.24512),
    condition('other', 'REHEARSED', f'{TABLE3}/BM25/DeepCT'),
    condition('bad', 'FAIL', f'{TABLE3}/BM25/doc2query', 0.1, why='<b>broke</b>'),
    condition('never', 'NOT RUN', f'{TABLE3}/doc2query/BM25', missing=[UNPUBLISHED]),
)


@pytest.fixture
def render(tmp_path):
    """render(suffix) -> the page that `regression report` makes of DATA."""
    path = tmp_path / 'a.json'
    path.write_text(json.dumps(DATA), encoding='utf-8')

    def make(suffix):
        output = tmp_path / f'page{suffix}'
        assert run(main, ['report', str(path), '--output', str(output)]) == 0
        return output.read_text(encoding='utf-8')

    return make


def test_a_page_in_markdown_opens_with_the_papers_tables(render):
    headings = [line for line in render('.md').splitlines() if line.startswith('##')]
    assert headings == [
        "## The papers' tables",
        '### RepBERT, Table 3: MRR@10, row and column interleaved',
        "## Agrees with others' published figures",
        '## a.yaml',
        '## Missing',
        '## Environment',
    ]


def test_a_table_in_markdown_has_the_best_of_each_cell(render):
    lines = render('.md').splitlines()
    assert '|  | BM25 | doc2query | DeepCT | docTTTTTquery | RepBERT |' in lines
    assert '| BM25 |  | 0.245 ✗ 0.1000 | 0.245 ○ |  | 0.245 ✓ 0.2451 |' in lines
    assert '| doc2query | 0.245 — |  |  |  |  |' in lines
    assert '— doc2query: eval runs, not published; secret.' in lines


def test_a_table_in_html_has_the_commands_of_each_cell(render):
    page = render('.html')
    cell = '<td class="measured" title="measured"><details><summary>0.245 ✓ 0.2451</summary>'
    assert cell in page
    assert '<pre>python -m one</pre><button type="button">copy</button>' in page


def test_cells_in_html_say_what_is_known_and_why(render):
    page = render('.html')
    assert 'title="failed: &lt;b&gt;broke&lt;/b&gt;"' in page
    assert '<td class="unavailable"' in page
    assert '<tr class="rehearsed">' in page


def test_a_page_in_json_has_all_data(render):
    assert json.loads(render('.json')) == DATA


RAN = condition('x', 'PASS', 'c', 0.2)
ABSENT = condition('x', 'NOT RUN', 'c')


@pytest.mark.parametrize('conditions', [(RAN, ABSENT), (ABSENT, RAN)])
def test_a_condition_that_ran_counts_more_than_one_that_did_not(conditions):
    assert report(*conditions)['files'][0]['conditions'] == [RAN]


def test_what_ran_last_counts():
    assert report(RAN, condition('x', 'FAIL', 'c', 0.1))['totals']['FAIL'] == 1


def test_every_cell_of_a_papers_table_is_in_a_regression():
    cells = set()
    for path in (ROOT / 'regressions').glob('*.yaml'):
        for condition_of_file in read_regression(path).conditions:
            scores = (*condition_of_file.expected, *condition_of_file.recorded)
            cells.update(score.cell for score in scores)
    for table in papers_tables():
        named = set()
        for row in table.rows:
            paths = {table.path(row, column) for column in table.columns}
            assert paths & cells, f'{table.cells}/{row}'
            named |= paths
        assert {cell for cell in cells if cell.startswith(f'{table.cells}/')} <= named
