"""What the page says when there is no answer, and while one is on its way."""

import json
import time

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

ASKED = '?q=keep+slugs+off+lettuce&system=dense&system=bm25'


def test_no_hits(opened):
    own = opened()
    page = own.open('?q=zzzz&system=bm25', '.message')
    assert (
        page.locator('.message h2').inner_text() == 'No hits'
        and '“zzzz”' in page.locator('.message').inner_text()
    )
    page.get_by_role('button', name='Search by meaning').click()
    page.wait_for_selector('.hit')
    assert 'system=dense' in page.url


def test_offline_and_back(opened):
    own = opened()
    page = own.open(ASKED)
    page.context.set_offline(True)
    page.locator('#q').fill('apple tree')
    page.locator('#q').press('Enter')
    page.wait_for_selector('.message')
    assert page.locator('.message h2').inner_text() == 'The service cannot be reached'
    page.context.set_offline(False)
    page.wait_for_selector('.hit h2:has-text("g7")')


def test_busy(opened):
    own = opened()
    refusals = []

    def refuse(route):
        refusals.append(time.monotonic())
        headers = {'Retry-After': '1', 'Content-Type': 'application/json'}
        route.fulfill(status=429, headers=headers, body='{"error": "too many requests wait"}')

    own.page.route('**/search?*', refuse, times=1)
    page = own.open(ASKED, '.message')
    assert page.locator('.message h2').inner_text() == 'The service is busy'
    page.wait_for_selector('.hit')
    assert len(refusals) == 1 and time.monotonic() - refusals[0] >= 1


def test_a_key(opened):
    own = opened()
    keys = []

    def guard(route):
        keys.append(route.request.headers.get('x-api-key'))
        if keys[-1] == 'open-sesame':
            route.continue_()
        else:
            body = json.dumps({'error': 'this service takes a key, none was given'})
            route.fulfill(status=401, content_type='application/json', body=body)

    own.page.route('**/v1/**', guard)
    page = own.open(ASKED, '.message')
    page.get_by_label('Key', exact=True).fill('öffne dich')
    page.get_by_role('button', name='Use it').click()
    assert page.get_by_label('Key', exact=True).get_attribute('aria-invalid') == 'true'
    page.get_by_label('Key', exact=True).fill('open-sesame')
    page.get_by_role('button', name='Use it').click()
    page.wait_for_selector('.hit')
    assert keys[0] is None and set(keys[1:]) == {'open-sesame'}


def test_progress_and_stop(opened):
    own = opened()
    own.page.route('**/search?*', lambda route: None)  # no answer ever
    told = {'api': 'v1', 'stage': 'monobert-demo@8', 'done': 2, 'total': 8}
    own.page.route('**/progress/*', lambda route: route.fulfill(json=told))
    page = own.open(f'{ASKED}&rerank=monobert-demo%408', '.waiting')
    page.locator('.told', has_text='2 of 8 inferences, ').wait_for()
    assert page.locator('.waiting progress').get_attribute('value') == '0.25'
    assert page.locator('#found').get_attribute('aria-busy') == 'true'
    page.get_by_role('button', name='Stop').click()
    page.wait_for_selector('.message h2:has-text("Stopped")')
    assert page.locator('#found').get_attribute('aria-busy') is None
