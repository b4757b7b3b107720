"""Two rankings of one question side by side."""

import json
import urllib.request

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.jvm]


def compared(served, **body):
    sent = urllib.request.Request(f'{served}v1/garden/compare', json.dumps(body).encode())
    sent.add_header('Content-Type', 'application/json')
    with urllib.request.urlopen(sent) as answer:
        return json.load(answer)


def test_two_systems_side_by_side(opened, served):
    page = opened().open(
        '?view=compare&q=keep+slugs+off+lettuce&system=dense&b.system=bm25', '.pair'
    )
    found = compared(
        served, query='keep slugs off lettuce', a={'system': ['dense']}, b={'system': ['bm25']}
    )
    for side, place in (('a', 0), ('b', 1)):
        shown = page.locator('.pair-list').nth(place).locator('.docid').all_text_contents()
        assert shown == [hit['docid'] for hit in found[side]['candidates']]
    tiles = page.locator('.tiles').inner_text()
    assert f'{int(100 * found["overlap"] + 0.5)} %' in tiles and f'{found["rbo"]:.4g}' in tiles
    for name, value in found['judged']['measures']['a'].items():
        cells = page.locator('.tiles tr', has_text=name).locator('td').all_text_contents()
        assert cells[:2] == [f'{value:.4f}', f'{found["judged"]["measures"]["b"][name]:.4f}']
    marks = dict(
        zip(
            page.locator('.pair-list').nth(1).locator('.docid').all_text_contents(),
            page.locator('.pair-list').nth(1).locator('.move').all_text_contents(),
            strict=True,
        )
    )
    for move in found['moves']:
        if move['b'] is not None:
            up = None if move['a'] is None else move['a'] - move['b']
            told = (
                'only in B'
                if up is None
                else '='
                if up == 0
                else f'{"▲" if up > 0 else "▼"} {abs(up)}'
            )
            assert marks[move['docid']] == told
    common = sum(move['a'] is not None and move['b'] is not None for move in found['moves'])
    assert page.locator('.links .end').count() == common
    assert set(page.locator('.pair-row.relevant .docid').all_text_contents()) == {'g3'}
    page.locator('.pair-list').first.locator('.pair-row button').first.click()
    assert page.locator('dialog .passage').is_visible()
    page.keyboard.press('Escape')
    assert page.locator('dialog').is_hidden()


def test_from_a_search_to_a_comparison(opened):
    page = opened().open('?q=apple&system=dense&system=bm25')
    page.get_by_role('link', name='Compare').click()
    page.wait_for_selector('.pair')
    assert 'view=compare' in page.url and 'b.system=bm25' in page.url
    page.locator('#controls summary').click()
    page.locator('.picker').nth(1).get_by_role('button', name='Add a reranker').click()
    page.wait_for_selector('.pair-heads h2:has-text("B: bm25 → monobert-demo@20")')
    assert 'b.rerank=monobert-demo%4020' in page.url


def test_a_hit_below_those_shown_has_its_rank(opened, served):
    pair = {'a': {'system': ['dense']}, 'b': {'system': ['dense'], 'rerank': ['cedr-knrm-demo@9']}}
    found = compared(served, query='apple tree in wet weather', hits=2, **pair)
    page = opened().open(
        '?view=compare&q=apple+tree+in+wet+weather&system=dense&b.system=dense&b.rerank=cedr-knrm-demo%409&hits=2',
        '.pair',
    )
    marks = page.locator('.pair-list').nth(1).locator('.move').all_text_contents()
    ranks = {move['docid']: move['a'] for move in found['moves']}
    far = [
        f'A: {ranks[hit["docid"]]}' for hit in found['b']['candidates'] if ranks[hit['docid']] > 2
    ]
    assert far and [mark for mark in marks if mark.startswith('A: ')] == far
