"""A collection on the page: titles, passages cut around the question's words, whole documents."""

import json
import urllib.request

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

ASKED = '?view=search&q=keep+slugs+off+lettuce'


@pytest.fixture
def mine(opened, served_collection):
    """A page of the collection's service."""
    return opened(address=served_collection)


def whole_text(served, docid):
    with urllib.request.urlopen(f'{served}v1/mine/doc/{docid}') as answer:
        return json.load(answer)['doc']['text']


def test_a_hit_has_its_title_and_its_passage_around_the_words(mine, served_collection):
    page = mine.open('?view=search', '.start')
    assert '3 documents in mine' in page.locator('.start').inner_text()
    page = mine.open(ASKED)
    assert mine.docids()[0] == 'guide/slugs'
    first = page.locator('.hit').first
    assert first.locator('.document-title').inner_text() == 'Lettuce without slugs'
    shown = first.locator('.passage').text_content()
    assert shown.startswith('… ') and shown.endswith(' …')
    assert 'A copper band around the bed keeps slugs off the lettuce.' in shown
    assert first.locator('mark').all_text_contents() == ['keeps', 'slugs', 'off', 'lettuce']
    assert 'passage 2 of the document: characters ' in first.locator('.excerpt').inner_text()
    assert first.locator('.journey').inner_text() == 'Ranks: dense 1 · bm25 1 → interpolation 1'


def test_the_whole_document_is_shown_on_demand(mine, served_collection):
    page = mine.open(ASKED)
    first = page.locator('.hit').first
    cut = first.locator('.passage').text_content()
    first.get_by_role('button', name='Whole document').click()
    first.get_by_role('button', name='Less').wait_for()
    # Paragraphs are elements, whose lines flow.
    paragraphs = whole_text(served_collection, 'guide/slugs').split('\n\n')
    assert first.locator('.passage p').all_text_contents() == paragraphs
    first.get_by_role('button', name='Less').click()
    assert first.locator('.passage').text_content() == cut


def test_its_own_fusion_is_what_the_controls_show(mine):
    page = mine.open(ASKED)
    assert page.get_by_label('Fusion').input_value() == 'interpolation'
    assert page.get_by_label('Weight of dense').input_value() == '0.6'
    assert page.get_by_label('Weight of bm25').input_value() == '0.4'
    assert 'fusion=' not in page.url
    page.get_by_label('Fusion').select_option('interleave')
    page.wait_for_selector('.steps li:has-text("interleave")')
    assert 'fusion=interleave' in page.url
    page.get_by_label('Fusion').select_option('interpolation')
    page.wait_for_selector('.steps li:has-text("interpolation")')
    assert 'fusion=' not in page.url


def test_a_comparison_opens_whole_documents(mine):
    page = mine.open(
        f'{ASKED.replace("search", "compare")}&system=dense&b.system=bm25', '.pair-row'
    )
    page.locator('.pair-row button').first.click()
    dialog = page.locator('#dialog')
    assert dialog.locator('.document-title').inner_text() == 'Lettuce without slugs'
    dialog.get_by_role('button', name='Whole document').click()
    dialog.get_by_role('button', name='Less').wait_for()
    assert 'Bed number 0 ' in dialog.locator('.passage').text_content()


def test_the_command_names_the_collection_alone(mine):
    page = mine.open(ASKED)
    page.get_by_text('More', exact=True).click()
    page.locator('#copy').click()
    shown = page.get_by_label('Command line', exact=True).inner_text()
    assert ' '.join(shown.replace('\\\n', ' ').split()) == (
        "python -m pyserini_repbert.search --index mine --hits 10 --query 'keep slugs off lettuce'"
    )
