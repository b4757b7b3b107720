"""The papers' tables in a report: what each cell says, in Markdown, HTML and the badge."""

import json
from pathlib import Path

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.regression import main
from pyserini_repbert.regression.grids import papers_tables
from pyserini_repbert.regression.reading import read_regression
from pyserini_repbert.regression.report import merge_reports

ROOT = Path(__file__).parents[2]
TABLE3 = 'repbert/table3_interleave_mrr10_dev'


def condition(name, status, cell, measured=None, **more):
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
    own = {
        'name': name,
        'status': status,
        'why': '',
        'seconds': 1.0,
        'remembered': False,
        'missing': [],
    }
    return {**own, 'commands': ['python -m one'], 'scores': [score], 'fingerprint': {}, **more}


def report(*conditions):
    return merge_reports(
        [
            {
                'environment': {},
                'files': [{'file': 'a.yaml', 'title': 'A', 'conditions': list(conditions)}],
            }
        ]
    )


UNPUBLISHED = [
    {
        'name': 'r',
        'what': 'eval runs',
        'size': '',
        'get': 'not published; secret',
        'origin': 'unpublished',
    }
]
DATA = report(
    condition('published', 'NOT RUN', f'{TABLE3}/BM25/RepBERT'),
    condition('made', 'PASS', f'{TABLE3}/BM25/RepBERT', 0.24512),
    condition('other', 'REHEARSED', f'{TABLE3}/BM25/DeepCT'),
    condition('bad', 'FAIL', f'{TABLE3}/BM25/doc2query', 0.1, why='<b>broke</b>'),
    condition('never', 'NOT RUN', f'{TABLE3}/doc2query/BM25', missing=UNPUBLISHED),
)


def test_a_grid_has_the_best_of_each_cell(tmp_path):
    path = tmp_path / 'a.json'
    path.write_text(json.dumps(DATA), encoding='utf-8')
    for suffix in ('md', 'html', 'json'):
        assert run(main, ['report', str(path), '--output', str(tmp_path / f'b.{suffix}')]) == 0
    page = (tmp_path / 'b.md').read_text(encoding='utf-8')
    assert (
        page.index("## The papers' tables") < page.index('## All scores') < page.index('## a.yaml')
    )
    assert '### RepBERT, Table 3: MRR@10, row and column interleaved' in page
    assert '|  | BM25 | doc2query | DeepCT | docTTTTTquery | RepBERT |' in page
    assert '| BM25 |  | 0.245 ✗ 0.1000 | 0.245 ○ |  | 0.245 ✓ 0.2451 |' in page
    assert '| doc2query | 0.245 — |  |  |  |  |' in page
    assert '— doc2query: eval runs, not published; secret.' in page
    html = (tmp_path / 'b.html').read_text(encoding='utf-8')
    assert (
        '<td class="measured" title="measured"><details><summary>0.245 ✓ 0.2451</summary>' in html
    )
    assert '<pre>python -m one</pre><button type="button">copy</button>' in html
    assert 'title="failed: &lt;b&gt;broke&lt;/b&gt;"' in html
    assert '<td class="cannot"' in html and '<tr class="rehearsed">' in html
    assert json.loads((tmp_path / 'b.json').read_text(encoding='utf-8')) == DATA


def test_what_ran_last_counts():
    ran = condition('x', 'PASS', 'c', 0.2)
    absent = condition('x', 'NOT RUN', 'c')
    for reports in ([ran, absent], [absent, ran]):
        assert report(*reports)['files'][0]['conditions'] == [ran]
    assert report(ran, condition('x', 'FAIL', 'c', 0.1))['totals']['FAIL'] == 1


def test_every_cell_of_a_papers_table_is_in_a_regression():
    cells = {
        own.cell
        for path in (ROOT / 'regressions').glob('*.yaml')
        for condition in read_regression(path).conditions
        for own in (*condition.expected, *condition.recorded)
    }
    for table in papers_tables():
        named = set()
        for row in table.rows:
            paths = {table.path(row, column) for column in table.columns}
            assert paths & cells, f'{table.cells}/{row}'
            named |= paths
        assert {cell for cell in cells if cell.startswith(f'{table.cells}/')} <= named
