"""The panel that says how good the search is, and what it cannot answer."""

import re

import pytest
from learning_states import NOTHING

pytestmark = [pytest.mark.slow, pytest.mark.jvm]


def mean(value):
    return {'mean': value, 'low': value - 0.1, 'high': value + 0.1}


def generation(number, ndcg, unanswered=(), change=None):
    return {
        'generation': number,
        'measured': '2026-11-28T11:09:35+00:00',
        'questions': 3,
        'with_relevant': 2,
        'judged_share': 0.5,
        'ndcg': mean(ndcg),
        'condensed': mean(ndcg),
        'answered': 0.75,
        'unanswered': list(unanswered),
        'change': change,
    }


CHANGE = {
    'since': 1,
    'ndcg': mean(-0.5),
    'condensed': mean(-0.5),
    'questions': [
        {
            'question': 'how to sharpen a blade',
            'before': {'ndcg': 1.0, 'condensed': 1.0, 'answered': 0.9},
            'after': {'ndcg': 0.0, 'condensed': 0.0, 'answered': 0.2},
            'left': ['knife.1', 'stone.1'],
            'deleted': ['knife.1'],
            'entered': [],
            'unjudged': [],
        }
    ],
}
LOST = {'question': 'how to sharpen a blade', 'answered': 0.2}


@pytest.fixture
def panel(opened, served_judging):
    """make(*generations) -> the text of the panel for these."""

    def make(*generations, is_newest=True):
        own = opened(address=served_judging)
        answer = {
            'api': 'v1',
            'index': 'mine',
            'generations': list(generations),
            'is_newest': is_newest,
        }
        own.page.route(re.compile('/v1/mine/learn$'), lambda route: route.fulfill(json=NOTHING))
        own.page.route(re.compile('/v1/mine/history$'), lambda route: route.fulfill(json=answer))
        own.page.add_init_script('localStorage.judge = "panel"')
        own.open('?view=judge', '.history .place > *')
        return own.page.locator('.history')

    return make


def test_nothing_was_asked(panel):
    assert 'Not measured yet.' in panel().inner_text()


def test_what_the_last_change_lost(panel):
    shown = panel(generation(1, 1.0), generation(2, 0.5, [LOST], CHANGE), is_newest=False)
    text = shown.inner_text()
    assert (
        'nDCG@10 of 2 judged questions with a relevant document is 0.5000 (0.4000 to 0.6000).'
        in text
    )
    assert 'It has changed since' in text
    unanswered, moved, generations = shown.locator('table').all()
    assert unanswered.locator('caption').inner_text().endswith('1 of 3')
    assert unanswered.locator('tbody th').all_text_contents() == ['how to sharpen a blade']
    cells = moved.locator('tbody td').all_text_contents()
    assert cells == ['0.0000', '−1.0000', 'knife.1 (deleted), stone.1']
    assert generations.locator('tbody th').all_text_contents() == ['2', '1']


def test_all_are_answered(panel):
    shown = panel(generation(1, 1.0))
    assert 'Each of the 3 questions has a relevant document' in shown.inner_text()
    assert shown.locator('table').count() == 1
