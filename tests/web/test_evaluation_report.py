"""The page of `evaluate --html` in a browser: WCAG 2.2 AA by axe-core, in light and dark and on a
narrow screen; it loads nothing.
"""

import json

import pytest
from garden_texts import PASSAGES, QRELS, TOPICS
from test_accessibility import violations

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.evaluate import main

pytest.importorskip('axe_playwright_python', reason='the web extra is not installed: make test-web')
pytestmark = [pytest.mark.slow]

FIRST = '1 Q0 g7 1 2 t\n1 Q0 g1 2 1 t\n2 Q0 g3 1 1 t\n'
OTHER = '1 Q0 g1 1 2 t\n2 Q0 g5 1 2 t\n2 Q0 g3 2 1 t\n3 Q0 g4 1 1 t\n'


@pytest.fixture(scope='module')
def report(tmp_path_factory):
    """The path of a report of two runs over the garden, with hostile words and texts."""
    folder = tmp_path_factory.mktemp('report')
    lines = [json.dumps({'id': docid, 'contents': text}) for docid, text in PASSAGES.items()]
    (folder / 'garden.jsonl').write_text('\n'.join(lines), encoding='utf-8')
    topics = [f'{qid}\t{text}\n' for qid, text in TOPICS.items()]
    (folder / 'topics.tsv').write_text(''.join(topics), encoding='utf-8')
    texts = {'qrels.txt': QRELS, 'first.txt': FIRST, 'other.txt': OTHER}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding='utf-8')
    arguments = ['--quiet', '--qrels', f'{folder}/qrels.txt', '--html', f'{folder}/report.html']
    arguments += ['--topics', f'{folder}/topics.tsv', '--corpus', f'{folder}/garden.jsonl']
    assert run(main, [*arguments, f'{folder}/first.txt', f'{folder}/other.txt']) == 0
    return folder / 'report.html'


@pytest.mark.parametrize(('width', 'scheme'), [(1280, 'light'), (1280, 'dark'), (360, 'light')])
def test_the_report_is_accessible(browser, report, width, scheme):
    context = browser.new_context(
        viewport={'width': width, 'height': 900}, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    requests = []
    page.on('request', lambda request: requests.append(request.url))
    page.goto(report.as_uri())
    assert requests == [report.as_uri()]
    assert violations(page) == []
    assert page.evaluate('document.documentElement.scrollWidth') <= width
    assert page.evaluate('window.hacked') is None
    assert page.locator('svg rect').count() == 3
    context.close()
