"""The link “More like this”: with a click, by keyboard, within a filter, and back to a question."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

ASKED = '?view=search&q=keep+slugs+off+lettuce'


@pytest.fixture
def mine(opened, served_collection):
    """A page of the collection's service."""
    return opened(address=served_collection)


def likeness(page):
    return page.locator('.like-note')


def test_a_hit_leads_to_what_is_like_it(mine):
    page = mine.open(ASKED)
    assert mine.docids()[0] == 'guide/slugs'
    page.locator('.hit').first.get_by_role('link', name='More like guide/slugs').click()
    likeness(page).wait_for()
    assert 'More like guide/slugs.' in likeness(page).inner_text()
    assert 'guide/slugs' not in mine.docids()
    assert len(mine.docids()) == 2
    assert 'like=guide%2Fslugs' in page.url and 'q=' not in page.url
    assert page.get_by_label('Question').input_value() == ''
    assert page.title().startswith('like guide/slugs')
    assert page.get_by_role('button', name='Why here?').count() == 0, 'rerankers read questions'
    # The address holds it, and the history leads back.
    page.reload()
    likeness(page).wait_for()
    assert len(mine.docids()) == 2
    page.go_back()
    page.wait_for_selector('.hits:not(.stale) .hit:nth-child(3)')
    assert page.get_by_label('Question').input_value() == 'keep slugs off lettuce'


def test_by_keyboard_and_back_to_a_question(mine):
    page = mine.open(ASKED)
    page.locator('.hit').first.get_by_role('link', name='More like').focus()
    page.keyboard.press('Enter')
    likeness(page).wait_for()
    assert page.locator('#found').evaluate('own => own === document.activeElement')
    page.get_by_role('button', name='Ask a question instead').press('Enter')
    page.wait_for_selector('.start')
    assert page.get_by_label('Question').evaluate('own => own === document.activeElement')
    page.keyboard.type('tomatoes')
    page.keyboard.press('Enter')
    page.locator('.hit').first.wait_for()
    assert 'like=' not in page.url


def test_a_filter_stays(mine):
    page = mine.open(f'{ASKED}&filter=type%3Aguide')
    page.locator('.hit').first.get_by_role('link', name='More like').click()
    likeness(page).wait_for()
    assert len(mine.docids()) == 1
    assert 'filter=type%3Aguide' in page.url
    page = mine.open('?like=guide%2Fslugs&filter=depth%3A99', '.message')
    assert 'is like guide/slugs' in page.locator('.message').inner_text()
    page = mine.open('?like=nowhere', '.message')
    assert "has no document 'nowhere'" in page.locator('.message').inner_text()


def test_rerankers_are_left_out(opened):
    own = opened()
    page = own.open('?q=how+to+grow+tomatoes&rerank=monobert-demo@3')
    page.locator('.hit').first.get_by_role('link', name='More like').click()
    likeness(page).wait_for()
    assert 'rerank' not in page.url
    assert len(own.docids()) > 0
