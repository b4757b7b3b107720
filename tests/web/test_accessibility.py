"""WCAG 2.2 AA by axe-core, in light and dark and on a narrow screen; nothing is wider than the
screen.
"""

from importlib import resources

import pytest
from learning_states import DONE

pytest.importorskip('axe_playwright_python', reason='the web extra is not installed: make test-web')
pytestmark = [pytest.mark.slow, pytest.mark.jvm]

TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
SEARCH = '?q=keep+slugs+off+lettuce&system=dense&system=bm25&hits=4'
STATES = {
    'start': ('?view=search', '.example'),
    'hits': (f'{SEARCH}&rerank=monobert-demo%404', '.hit'),
    'epic': (f'{SEARCH}&open=g3&why=epic', '.terms'),
    'cedr': (f'{SEARCH}&open=g3&why=cedr', '.heat'),
    'pairs': (f'{SEARCH}&open=g3&why=duobert', '.matrix'),
    'scores': (f'{SEARCH}&open=g3&why=monobert', '.terms'),
    'compare': (
        '?view=compare&q=keep+slugs+off+lettuce&system=dense&b.system=bm25&hits=5',
        '.pair',
    ),
    'message': ('?q=lettuce&system=bm52', '.message'),
}


def violations(page):
    page.evaluate(
        resources.files('axe_playwright_python').joinpath('axe.min.js').read_text(encoding='utf-8')
    )
    found = page.evaluate('tags => axe.run({runOnly: {type: "tag", values: tags}})', TAGS)
    assert len(found['passes']) > 10  # it has looked
    return [
        (one['id'], [node['html'][:160] for node in one['nodes']][:3])
        for one in found['violations']
    ]


@pytest.mark.parametrize(('width', 'scheme'), [(1280, 'light'), (1280, 'dark'), (360, 'light')])
@pytest.mark.parametrize('state', STATES)
def test_a_state(opened, state, width, scheme):
    address, wait = STATES[state]
    own = opened(width, scheme, bypass_csp=True, reduced_motion='reduce')
    page = own.open(address, '.pair-count' if state == 'pairs' else wait)
    if state == 'pairs':
        page.get_by_role('button', name='Compare', exact=True).click()
        page.wait_for_selector(wait)
    assert violations(page) == []
    assert page.evaluate('document.documentElement.scrollWidth') <= width


@pytest.mark.parametrize(('width', 'scheme'), [(1280, 'dark'), (360, 'light')])
def test_documents_of_a_collection(opened, served_collection, width, scheme):
    settings = {'bypass_csp': True, 'reduced_motion': 'reduce'}
    own = opened(width, scheme, address=served_collection, **settings)
    page = own.open('?view=search&q=keep+slugs+off+lettuce&filter=type%3Aguide')
    summary = page.get_by_text('How to search')
    if summary.is_visible():
        summary.click()
    assert page.get_by_role('button', name='guide 2').is_visible()
    page.get_by_role('button', name='Whole document').first.click()
    page.get_by_role('button', name='Less').wait_for()
    assert violations(page) == []
    assert page.evaluate('document.documentElement.scrollWidth') <= width


@pytest.mark.parametrize(('width', 'scheme'), [(1280, 'light'), (1280, 'dark'), (320, 'light')])
def test_judging(opened, served_judging, width, scheme):
    settings = {'bypass_csp': True, 'reduced_motion': 'reduce'}
    own = opened(width, scheme, address=served_judging, **settings)
    own.page.route('**/v1/mine/learn', lambda route: route.fulfill(json=DONE | {'due': 'Now.'}))

    def check(page):
        assert violations(page) == []
        assert page.evaluate('document.documentElement.scrollWidth') <= width

    page = own.open('?view=judge', '.judge-name')
    check(page)
    page.get_by_label('Your name').fill(f'{scheme} {width}')
    page.get_by_label('Your name').press('Enter')
    page.wait_for_selector('.learn-report')
    check(page)
    page = own.open('?view=judge&q=keep+slugs+off+lettuce', '.judge-document')
    check(page)
    page.keyboard.press('o')
    page.get_by_role('button', name='Less').wait_for()
    check(page)
    for number in (2, 3):
        page.keyboard.press('2')
        page.locator('.judge-progress', has_text=f'· document {number} of 3').wait_for()
    page.keyboard.press('s')
    page.wait_for_selector('.judge-summary')
    check(page)
    page.keyboard.press('?')
    page.wait_for_selector('.keys')
    check(page)
    check(own.open('?view=search&q=keep+slugs+off+lettuce', '.own-grade .badge'))
    check(own.open('?view=judge', '.judge-kept'))
