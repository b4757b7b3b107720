"""The search view: hits and where they come from, controls, addresses, keys."""

import json

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

QUERY = 'keep slugs off lettuce'
ASKED = '?q=keep+slugs+off+lettuce&system=dense&system=bm25'


def test_an_example_leads_to_hits_that_say_where_they_come_from(opened, api):
    own = opened()
    page = own.open('?view=search', '.example')
    assert 'garden' in page.locator('.start').inner_text()
    page.get_by_role('button', name=QUERY).click()
    page.wait_for_selector('.hit')
    found = api(
        'garden/search', query=QUERY, system='dense,bm25', provenance='true', display='true'
    )
    assert own.docids() == [hit['docid'] for hit in found['candidates']]
    for card, hit in zip(page.locator('.hit').all(), found['candidates'], strict=True):
        dense, bm25, fused = (f'{one["ranking"]} {one["rank"] or "–"}' for one in hit['provenance'])
        assert card.locator('.journey').inner_text() == f'Ranks: {dense} · {bm25} → {fused}'
        assert card.locator('.passage').text_content() == ''.join(
            part['text'] for part in hit['display']
        )
        marked = [part['text'] for part in hit['display'] if part['match']]
        assert card.locator('mark').all_text_contents() == marked
    assert [text.split()[0] for text in page.locator('.steps li').all_text_contents()] == [
        'dense',
        'bm25',
        'interleave',
    ]
    assert 'nDCG@10' in page.locator('.judged').inner_text()
    assert page.locator('.hit.relevant h2').all_text_contents() == ['g3']
    assert 'q=keep+slugs+off+lettuce' in page.url and page.title().startswith(QUERY)


def test_controls_change_the_ranking_and_the_address(opened, api):
    own = opened()
    page = own.open(ASKED)
    page.get_by_label('Fusion').select_option('rrf')
    page.get_by_label('RRF constant k').fill('5')
    page.get_by_label('RRF constant k').press('Enter')
    page.get_by_role('button', name='Add a reranker').click()
    page.get_by_label('of the best').fill('4')
    page.get_by_label('of the best').press('Tab')
    page.wait_for_selector('.steps li:has-text("monobert-demo@4")')
    assert (
        'fusion=rrf' in page.url
        and 'rrf_k=5' in page.url
        and 'rerank=monobert-demo%404' in page.url
    )
    found = api(
        'garden/search',
        query=QUERY,
        system='dense,bm25',
        fusion='rrf',
        rrf_k=5,
        rerank='monobert-demo@4',
    )
    assert own.docids() == [hit['docid'] for hit in found['candidates']]
    moved = page.locator('svg.journey').first.get_attribute('aria-label')
    assert moved.startswith('Ranks: dense ') and 'monobert-demo@4' in moved
    assert '4 inferences' in page.locator('.steps li:has-text("monobert-demo@4")').inner_text()
    page.get_by_label('bm25', exact=True).uncheck()
    page.wait_for_selector('.steps li:has-text("bm25")', state='detached')
    assert 'system=bm25' not in page.url and page.get_by_label('Fusion').count() == 0


def test_each_system_has_a_weight(opened, api):
    own = opened()
    page = own.open(f'{ASKED}&fusion=interpolation')
    page.get_by_label('Scores').select_option('zscore')
    page.get_by_label('Weight of bm25').fill('2')
    page.get_by_label('Weight of bm25').press('Tab')
    page.wait_for_function("location.search.includes('weights=2')")
    assert 'weights=0.5&weights=2' in page.url
    found = api(
        'garden/search',
        query=QUERY,
        system='dense,bm25',
        fusion='interpolation',
        normalize='zscore',
        weights=[0.5, 2],
        provenance='true',
    )
    # A fused score says nothing to a person: those of the rankings are shown.
    first = found['candidates'][0]
    shown = [f'{part["ranking"]} {part["score"]:.4g}' for part in first['provenance'][:2]]
    page.wait_for_selector(f'.score:has-text("{" · ".join(shown)}")')
    assert own.docids() == [hit['docid'] for hit in found['candidates']]


def test_every_state_has_an_address(opened):
    own = opened()
    page = own.open(ASKED)
    first = own.docids()
    page.locator('.hit').nth(1).get_by_role('button', name='Why here?').click()
    page.get_by_role('tab', name='Similarities').click()
    page.wait_for_selector('.heat')
    other = opened()
    again = other.open(page.url.removeprefix(own.served), '.heat')
    assert other.docids() == first
    assert (
        again.locator('.hit')
        .nth(1)
        .get_by_role('tab', selected=True)
        .inner_text()
        .startswith('Similarities')
    )
    page.locator('#q').fill('apple')
    page.locator('#q').press('Enter')
    page.wait_for_selector('.hit h2:has-text("g7")')
    page.go_back()
    page.wait_for_selector('.hit h2:has-text("g3")')
    assert page.locator('#q').input_value() == QUERY and own.docids() == first


def test_keys(opened):
    own = opened()
    page = own.open(ASKED)
    focused = 'document.activeElement.getAttribute("aria-label") || document.activeElement.id'
    page.keyboard.press('j')
    assert page.evaluate(focused).startswith('Hit 1:')
    page.keyboard.press('j')
    page.keyboard.press('j')
    page.keyboard.press('k')
    assert page.evaluate(focused).startswith('Hit 2:')
    page.keyboard.press('Enter')
    page.locator('.hit').nth(1).locator('.terms').wait_for()
    page.keyboard.press('/')
    assert page.evaluate(focused) == 'q'
    page.keyboard.type('jk/')
    assert page.locator('#q').input_value() == 'jk/'
    page.keyboard.press('Escape')
    page.keyboard.press('?')
    page.get_by_label('Use these keys').uncheck()
    page.keyboard.press('Escape')
    page.keyboard.press('/')
    assert page.evaluate(focused) != 'q'


def test_themes(opened):
    page = opened(scheme='dark').open('?view=search', '.example')
    paper = 'getComputedStyle(document.body).backgroundColor'
    dark = page.evaluate(paper)
    page.get_by_text('More', exact=True).click()
    page.locator('#theme').click()
    light = page.evaluate(paper)
    assert sum(json.loads(f'[{dark[4:-1]}]')) < 120 and sum(json.loads(f'[{light[4:-1]}]')) > 600
    page.reload()
    page.wait_for_selector('.example')
    assert page.evaluate(paper) == light and page.locator('#theme').text_content() == 'Theme: light'


def test_on_a_phone(opened):
    page = opened(390).open(f'{ASKED}&rerank=monobert-demo%404&open=g3&why=epic', '.terms')
    assert page.locator('.hit').first.bounding_box()['y'] < 400
    assert page.locator('.terms').bounding_box()['width'] < 360
    assert page.locator('#index option').count() == 0 or page.locator('#index').is_hidden()
