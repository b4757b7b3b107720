"""Judging on the page, with the keyboard alone: grades, undo, skip, comments, marks in a search.

Each test judges under a name of its own, so none sees the judgments of another.
"""

import json
import urllib.parse
import urllib.request

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

SLUGS = 'keep slugs off lettuce'
SPLIT = 'why do tomatoes split'
COMPOST = 'what does compost want'
QUESTIONS = [SLUGS, SPLIT, COMPOST]
FOCUSED = 'document.activeElement.className'


@pytest.fixture
def judge(opened, served_judging, request):
    """make(**settings) -> a page of a judge named after the test; the questions are there."""
    name = request.node.originalname

    def make(**settings):
        sent = urllib.request.Request(
            f'{served_judging}v1/mine/questions?judge={name}',
            json.dumps({'questions': QUESTIONS}).encode(),
            {'Content-Type': 'application/json'},
        )
        with urllib.request.urlopen(sent) as answer:
            json.load(answer)
        own = opened(address=served_judging, **settings)
        own.page.add_init_script(f'localStorage.judge = "{name}"')
        return own

    return make


@pytest.fixture
def stored(served_judging, request):
    """get(question) -> {docid: (grade, comment)} as the service has it for this test's judge."""

    def get(question):
        parameters = {'judge': request.node.originalname, 'question': question}
        address = f'{served_judging}v1/mine/judgments?{urllib.parse.urlencode(parameters)}'
        with urllib.request.urlopen(address) as answer:
            judgments = json.load(answer)['judgments']
        return {own['docid']: (own['grade'], own['comment']) for own in judgments}

    return get


def question_address(question):
    return f'?view=judge&q={urllib.parse.quote_plus(question)}'


def shown_docid(page):
    return page.locator('.judge-document .docid').inner_text()


def wait_for_document(page, number):
    """Wait until the document of a number is shown, and give its docid."""
    page.locator('.judge-progress', has_text=f'· document {number} of 3').wait_for()
    return shown_docid(page)


def press_and_wait(page, key, number):
    page.keyboard.press(key)
    return wait_for_document(page, number)


def test_from_the_name_to_the_summary_with_the_keyboard_alone(
    opened, served_judging, stored, request
):
    name = request.node.originalname
    own = opened(address=served_judging)
    page = own.open('?view=search', '.views [data-view=judge]:visible')
    for _ in range(20):
        page.keyboard.press('Tab')
        if page.evaluate('document.activeElement.dataset.view') == 'judge':
            break
    page.keyboard.press('Enter')
    page.wait_for_selector('.judge-name')
    page.keyboard.press('Tab')
    while page.evaluate('document.activeElement.tagName') != 'INPUT':
        page.keyboard.press('Tab')
    page.keyboard.type(name)
    page.keyboard.press('Enter')
    page.wait_for_selector('.judge-overview')
    while page.evaluate('document.activeElement.tagName') != 'TEXTAREA':
        page.keyboard.press('Tab')
    page.keyboard.type('\n'.join(QUESTIONS))
    page.keyboard.press('Tab')
    page.keyboard.press('Enter')
    page.get_by_text('0 of 3 questions judged.').wait_for()
    page.keyboard.press('n')
    first = wait_for_document(page, 1)
    question = page.locator('.judge-head h2').inner_text()
    assert question in QUESTIONS and page.evaluate(FOCUSED) == 'judge-document'
    second = press_and_wait(page, '2', 2)
    third = press_and_wait(page, '0', 3)
    assert (
        page.locator('.judge-progress').inner_text() == '1 of 3 questions judged · document 3 of 3'
    )
    page.keyboard.press('3')
    page.wait_for_selector('.judge-summary')
    assert page.evaluate(FOCUSED) == 'judge-summary'
    assert stored(question) == {first: (2, ''), second: (0, ''), third: (3, '')}
    assert {first, second, third} == {'guide/slugs', 'tomatoes', 'note'}
    summary = page.locator('.judge-summary').inner_text()
    assert '3 of 3 documents judged, 2 related or relevant.' in summary
    page.keyboard.press('n')
    wait_for_document(page, 1)
    assert page.locator('.judge-head h2').inner_text() in set(QUESTIONS) - {question}


def test_undo_gives_the_grade_before(judge, stored):
    page = judge().open(question_address(SLUGS), '.judge-document')
    first = wait_for_document(page, 1)
    press_and_wait(page, '3', 2)
    assert press_and_wait(page, 'u', 1) == first and stored(SLUGS) == {}
    assert page.locator('.grades [aria-pressed=true]').count() == 0
    press_and_wait(page, '1', 2)
    press_and_wait(page, 'ArrowLeft', 1)
    press_and_wait(page, '2', 2)
    assert stored(SLUGS) == {first: (2, '')}
    press_and_wait(page, 'u', 1)
    assert stored(SLUGS) == {first: (1, '')}
    assert page.locator('.grades [aria-pressed=true]').inner_text() == '1 related'


def test_undo_after_the_question(judge, stored):
    page = judge().open(question_address(SLUGS), '.judge-document')
    wait_for_document(page, 1)
    press_and_wait(page, '0', 2)
    last = press_and_wait(page, '0', 3)
    page.keyboard.press('0')
    page.wait_for_selector('.judge-summary')
    page.keyboard.press('n')
    page.locator('.judge-head h2', has_not_text=SLUGS).wait_for()
    wait_for_document(page, 1)
    page.keyboard.press('u')
    page.locator('.judge-head h2', has_text=SLUGS).wait_for()
    assert wait_for_document(page, 3) == last
    assert last not in stored(SLUGS) and len(stored(SLUGS)) == 2


def test_skip_and_what_was_skipped(judge, stored):
    page = judge().open(question_address(SLUGS), '.judge-document')
    first = wait_for_document(page, 1)
    second = press_and_wait(page, 's', 2)
    press_and_wait(page, '1', 3)
    page.keyboard.press('ArrowRight')
    page.wait_for_selector('.judge-summary')
    assert stored(SLUGS) == {second: (1, '')}
    page.get_by_role('button', name='Judge what was skipped').press('Enter')
    assert wait_for_document(page, 1) == first


def test_a_comment(judge, stored):
    page = judge().open(question_address(SLUGS), '.judge-document')
    first = wait_for_document(page, 1)
    page.keyboard.press('c')
    page.keyboard.type('0 of 3, u & n')
    assert page.get_by_label('Comment').input_value() == '0 of 3, u & n'
    page.keyboard.press('Enter')
    assert page.evaluate(FOCUSED) == 'judge-document' and stored(SLUGS) == {}
    press_and_wait(page, '2', 2)
    assert stored(SLUGS) == {first: (2, '0 of 3, u & n')}
    press_and_wait(page, 'ArrowLeft', 1)
    page.keyboard.press('c')
    page.keyboard.press('Control+A')
    page.keyboard.type('better')
    with page.expect_response('**/judgments'):
        page.keyboard.press('Escape')
    assert stored(SLUGS) == {first: (2, 'better')}


def test_the_whole_document_and_its_words(judge):
    page = judge().open(question_address(SLUGS), '.judge-document')
    wait_for_document(page, 1)
    while shown_docid(page) != 'guide/slugs':
        number = int(
            page.locator('.judge-progress').inner_text().split('· document ')[1].split()[0]
        )
        press_and_wait(page, 's', number + 1)
    assert page.locator('.judge-document h3').inner_text() == 'Lettuce without slugs'
    assert {'slugs', 'lettuce'} <= set(page.locator('.judge-document mark').all_text_contents())
    assert 'guide' in page.locator('.judge-document .hit-fields').inner_text()
    part = page.locator('.passage').text_content()
    page.keyboard.press('o')
    page.get_by_role('button', name='Less').wait_for()
    assert len(page.locator('.passage').text_content()) > len(part)
    page.keyboard.press('o')
    page.get_by_role('button', name='Whole document').wait_for()
    assert page.locator('.passage').text_content() == part


def test_no_rank_score_or_system_is_shown(judge):
    page = judge().open(question_address(SLUGS), '.judge-document')
    wait_for_document(page, 1)
    shown = page.locator('main').inner_text().lower()
    for word in ('dense', 'bm25', 'score', 'rank'):
        assert word not in shown


def test_a_reload_shows_the_same_document(judge):
    own = judge()
    page = own.open(question_address(SLUGS), '.judge-document')
    wait_for_document(page, 1)
    press_and_wait(page, '0', 2)
    third = press_and_wait(page, 's', 3)
    page.reload()
    assert wait_for_document(page, 3) == third
    page.get_by_role('button', name='All questions').click()
    page.get_by_text('1 of 3 questions judged.').wait_for()
    page.go_back()
    assert wait_for_document(page, 3) == third


def test_what_is_refused_can_be_sent_again(judge, stored):
    page = judge().open(question_address(SLUGS), '.judge-document')
    first = wait_for_document(page, 1)
    refused = []

    def refuse_the_first(route):
        # The page may still be reading what was judged.
        if refused or route.request.method == 'GET':
            route.fallback()
            return
        refused.append(route.request.method)
        route.fulfill(status=500, json={'error': 'the disk is full'})

    page.route('**/judgments', refuse_the_first)
    page.keyboard.press('2')
    page.locator('.judge-problem', has_text='The disk is full').wait_for()
    assert shown_docid(page) == first and stored(SLUGS) == {}
    page.get_by_role('button', name='Try again').press('Enter')
    wait_for_document(page, 2)
    assert stored(SLUGS) == {first: (2, '')}


def test_the_keys_are_listed_and_can_be_switched_off(judge, stored):
    page = judge().open(question_address(SLUGS), '.judge-document')
    first = wait_for_document(page, 1)
    page.keyboard.press('?')
    keys = page.locator('.keys kbd').all_text_contents()
    assert keys == ['0, 1, 2, 3', 's, →', '←', 'u', 'c', 'o', 'n', 'Esc', '?']
    page.get_by_label('Use these keys').uncheck()
    page.keyboard.press('Escape')
    page.keyboard.press('2')
    page.get_by_role('button', name='1 related').press('Enter')
    wait_for_document(page, 2)
    assert stored(SLUGS) == {first: (1, '')}


def test_hits_of_a_search_are_marked_and_judged(judge, stored):
    own = judge()
    page = own.open('?view=search&q=keep+slugs+off+lettuce', '.hit-grade')
    first, second = page.locator('.hit').all()[:2]
    assert page.locator('.own-grade .badge').count() == 0
    page.keyboard.press('j')
    page.keyboard.press('3')
    first.get_by_text('you: 3 perfectly relevant').wait_for()
    assert first.get_by_role('button', name='3 perfectly relevant').get_attribute('aria-pressed')
    second.get_by_role('button', name='0 not relevant').press('Enter')
    second.get_by_text('you: 0 not relevant').wait_for()
    docids = own.docids()
    assert stored(SLUGS) == {docids[0]: (3, ''), docids[1]: (0, '')}
    page.reload()
    page.get_by_text('you: 3 perfectly relevant').wait_for()
    first.get_by_role('button', name='3 perfectly relevant').press('Enter')
    page.get_by_text('you: 3 perfectly relevant').wait_for(state='detached')
    assert stored(SLUGS) == {docids[1]: (0, '')}


def test_a_search_leads_to_the_judging_of_its_question(judge):
    page = judge().open('?view=search&q=keep+slugs+off+lettuce', '.hit')
    page.locator('.views [data-view=judge]').click()
    wait_for_document(page, 1)
    assert page.locator('.judge-head h2').inner_text() == SLUGS
    page.locator('.views [data-view=judge]').click()
    page.wait_for_selector('.judge-overview')
    page.locator('.views [data-view=search]').click()
    page.wait_for_selector('.start')


def test_downloads(judge, served_judging):
    page = judge().open(question_address(SLUGS), '.judge-document')
    first = wait_for_document(page, 1)
    press_and_wait(page, '2', 2)
    page.get_by_role('button', name='All questions').click()
    for format_name, link in (('topics', 'Topics'), ('qrels', 'qrels'), ('jsonl', 'JSON lines')):
        with page.expect_download() as waiting:
            page.get_by_role('link', name=link).click()
        text = waiting.value.path().read_text(encoding='utf-8')
        address = f'{served_judging}v1/mine/judgments?format={format_name}'
        with urllib.request.urlopen(address) as answer:
            assert text == answer.read().decode()
        assert waiting.value.suggested_filename.startswith('mine.')
    assert first in text


def test_two_judges(judge, served_judging, request):
    # Of two documents, the judges agree on one: by chance they would on half, so kappa is 0.
    for name, grades in ((request.node.originalname, (2, 2)), ('another', (2, 0))):
        judgments = []
        for docid, grade in zip(('tomatoes', 'note'), grades, strict=True):
            judgments.append({'question': SPLIT, 'docid': docid, 'grade': grade, 'judge': name})
        sent = urllib.request.Request(
            f'{served_judging}v1/mine/judgments',
            json.dumps({'judgments': judgments}).encode(),
            {'Content-Type': 'application/json'},
        )
        with urllib.request.urlopen(sent) as answer:
            assert json.load(answer)['stored'] == 2
    page = judge().open('?view=judge', '.judge-kept')
    shown = page.locator('.judge-kept').inner_text()
    assert '2 judgments of yours.' in shown
    assert 'another and test_two_judges both judged 2 documents: Cohen’s kappa 0.00.' in shown


def test_an_index_that_does_not_learn(judge):
    own = judge()

    def without_learning(route):
        answer = route.fetch().json()
        for index in answer['indexes']:
            index['learning'] = False
        route.fulfill(json=answer)

    own.page.route('**/v1/indexes', without_learning)
    page = own.open('?view=judge', '.judge-overview')
    page.get_by_text('0 of 3 questions judged.').wait_for()
    assert page.locator('.learn').count() == 0


def test_where_nothing_can_be_judged(opened):
    own = opened()
    page = own.open('?view=search&q=keep+slugs+off+lettuce')
    judging = page.evaluate(
        'fetch("v1/garden").then((own) => own.json()).then((own) => own.judging)'
    )
    if judging:
        pytest.skip('this service keeps judgments for the garden')
    assert page.locator('.views [data-view=judge]').is_hidden()
    assert page.locator('.hit-grade').count() == 0
    page = own.open('?view=judge', '.message')
    assert 'Nothing can be judged here' in page.locator('.message').inner_text()
