"""The panel that learns from the judgments, in each state that the service can report."""

import re

import pytest
from learning_states import DONE, ENOUGH, NOTHING

pytestmark = [pytest.mark.slow, pytest.mark.jvm]


@pytest.fixture
def panel(opened, served_judging):
    """make(*answers) -> the page, whose requests to learn get these answers in turn, the last one
    for ever, and the methods and bodies of those requests.
    """

    def make(*answers):
        own = opened(address=served_judging)
        left = list(answers)
        asked = []

        def answer(route):
            asked.append((route.request.method, route.request.post_data))
            route.fulfill(json=left.pop(0) if len(left) > 1 else left[0])

        own.page.route(re.compile('/v1/mine/learn$'), answer)
        own.page.add_init_script('localStorage.judge = "panel"')
        return own.open('?view=judge', '.learn-state'), asked

    return make


def test_too_few_questions(panel):
    page, _ = panel(NOTHING)
    learn = page.get_by_role('button', name='Learn')
    assert learn.is_disabled()
    shown = page.locator('.learn').inner_text()
    assert '12 of the 20 judged questions that learning needs.' in shown
    reason = page.locator(f'#{learn.get_attribute("aria-describedby")}').inner_text()
    assert reason.startswith('Judge 8 more questions first')
    assert page.locator('.learn-report').count() == 0


def test_it_learns_with_progress(panel):
    running = ENOUGH | {'state': 'running'}
    answers = [ENOUGH, running, running | {'done': 2, 'total': 8}, DONE]
    page, asked = panel(*answers)
    page.get_by_role('button', name='Learn').press('Enter')
    page.get_by_text('2 of 8').wait_for()
    assert page.get_by_role('progressbar', name='Learning').get_attribute('value') == '2'
    assert page.get_by_role('button', name='Learn').is_disabled()
    page.wait_for_selector('.learn-report')
    assert [method for method, _ in asked] == ['GET', 'POST', 'GET', 'GET']
    assert page.locator('#status').inner_text() == 'Learned'


def test_the_report(panel):
    page, _ = panel(DONE)
    lead = page.locator('.learn-report .lead')
    lead.wait_for()
    assert lead.inner_text() == (
        'Another mix of meaning and words would answer 1 of 3 questions better and 1 worse. '
        'That is more than chance.'
    )
    assert not page.get_by_text('It helps').is_visible()
    page.get_by_text('Details', exact=True).click()
    page.get_by_text(
        'It helps: ‘meaning and words, by rank’, which learned nothing, is better than the present '
        'search (meaning 60 %, words 40 %, scores above the background).'
    ).wait_for()
    means, questions = page.locator('.learn-report table').all()
    assert means.locator('tbody th').all_text_contents() == [
        'meaning and words, by rank',
        'learned: what questions mean, and the shares',
        'meaning 60 %, words 40 %, scores above the background (now)',
        'meaning',
        'words',
        'words and meaning, in turn',
    ]
    assert means.locator('tbody td').all_text_contents()[0] == '0.7500'
    assert questions.locator('tbody th').all_text_contents() == ['worse', 'better']
    cells = questions.locator('tbody td').all_text_contents()
    assert cells[:3] == ['1.0000', '0.5000', '−0.5000'] and cells[5] == '+0.7500'
    assert '1 question unchanged.' in page.locator('.learn').inner_text()


WAYS = """async (names) => {
  const { wayName } = await import('/js/ways.js');
  return names.map((name) => wayName(name, { encoder: 'minilm' }));
}"""


def test_ways_of_searching_in_words(opened, served_judging):
    words_of = {
        'interpolation minilm+bm25 alpha=0.7': 'meaning 70 %, words 30 %, scores as they are',
        'interpolation minilm+bm25+epic weights=0.5 0.25 0.25 minmax': (
            'meaning 50 %, words 25 %, epic 25 %, scores from 0 to 1'
        ),
        'rrf minilm+bm25 k=10': 'meaning and words, by rank (k 10)',
        'rrf minilm+bm25 k=60, mono@10:weight=0.5': (
            'meaning and words, by rank, reranked by mono@10:weight=0.5'
        ),
        'minilm, mono@10': 'meaning, reranked by mono@10',
        'what is learned and used already, mono@10': 'what was learned before, reranked by mono@10',
        'another': 'another',
    }
    page = opened(address=served_judging, bypass_csp=True).open('?view=judge', '.judge-name')
    assert page.evaluate(WAYS, list(words_of)) == list(words_of.values())


def test_use_it_and_go_back(panel):
    page, asked = panel(DONE, DONE | {'in_use': True}, DONE)
    page.get_by_role('button', name='Use it').press('Enter')
    back = page.get_by_role('button', name='Go back')
    back.wait_for()
    assert back.evaluate('own => own === document.activeElement')
    back.press('Enter')
    page.get_by_role('button', name='Use it').wait_for()
    assert asked[1:] == [('PUT', '{"in_use":true}'), ('PUT', '{"in_use":false}')]


def test_what_is_not_better_takes_a_second_press(opened, served_judging):
    reason = 'what mine learned is below the present search, -0.054 nDCG@10'
    own = opened(address=served_judging)
    asked = []

    def answer(route):
        body = route.request.post_data_json
        if route.request.method != 'PUT':
            route.fulfill(json=DONE)
            return
        asked.append(body)
        if body.get('even_if_worse'):
            route.fulfill(json=DONE | {'in_use': True})
        else:
            route.fulfill(status=409, json={'error': reason})

    own.page.route(re.compile('/v1/mine/learn$'), answer)
    own.page.add_init_script('localStorage.judge = "panel"')
    page = own.open('?view=judge', '.learn-state')
    page.get_by_role('button', name='Use it').press('Enter')
    insist = page.get_by_role('button', name='Use it anyway')
    insist.wait_for()
    assert reason in page.locator('.message.bad').inner_text()
    assert insist.evaluate('own => own === document.activeElement')
    insist.press('Enter')
    page.get_by_role('button', name='Go back').wait_for()
    assert asked == [{'in_use': True}, {'in_use': True, 'even_if_worse': True}]


def test_time_to_learn_again(panel):
    due = 'A quarter of the judgments is new: learn again.'
    page, _ = panel(DONE | {'due': due, 'in_use': True})
    page.get_by_text(due).wait_for()
    assert page.get_by_role('button', name='Learn again').is_enabled()


def test_a_failure(panel):
    error = 'the encoder of the collection is not here'
    page, _ = panel(ENOUGH | {'state': 'failed', 'error': error})
    page.locator('.message.bad', has_text=error).wait_for()
    assert page.get_by_role('button', name='Learn').is_enabled()
