"""Two rankings side by side: of one question, and of two run files."""

from __future__ import annotations

import json
import urllib.request

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

RUN_A = '1 Q0 g7 1 9 a\n1 Q0 g1 2 8 a\n2 Q0 g3 1 9 a\n3 Q0 g6 1 9 a\n'
RUN_B = '1 Q0 g1 1 9 b\n1 Q0 g7 2 8 b\n2 Q0 g5 1 9 b\n2 Q0 g3 2 8 b\n3 Q0 g6 1 9 b\n'


def compared(served, **body):
    sent = urllib.request.Request(f'{served}v1/garden/compare', json.dumps(body).encode())
    sent.add_header('Content-Type', 'application/json')
    with urllib.request.urlopen(sent) as answer:
        return json.load(answer)


def test_two_systems_side_by_side(opened, served):
    page = opened().open('?view=compare&q=keep+slugs+off+lettuce&system=dense&b.system=bm25', '.pair')
    found = compared(served, query='keep slugs off lettuce', a={'system': ['dense']}, b={'system': ['bm25']})
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
            told = 'only in B' if up is None else '=' if up == 0 else f'{"▲" if up > 0 else "▼"} {abs(up)}'
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
    page.locator('.picker').nth(1).get_by_role('button', name='Add a reranker').click()
    page.wait_for_selector('.pair-heads h2:has-text("B: bm25 → monobert-demo@20")')
    assert 'b.rerank=monobert-demo%4020' in page.url


def choose(page, tmp_path, qrels=None):
    for label, name, text in (('Run A', 'first.txt', RUN_A), ('Run B', 'second.txt', RUN_B)):
        (tmp_path / name).write_text(text, encoding='utf-8')
        page.get_by_label(label).set_input_files(tmp_path / name)
    if qrels is not None:
        page.get_by_label('Judgments').select_option('file')
        (tmp_path / 'own.qrels').write_text(qrels, encoding='utf-8')
        page.get_by_label('Qrels file').set_input_files(tmp_path / 'own.qrels')
    page.get_by_role('button', name='Evaluate').click()


def test_run_files(opened, tmp_path):
    page = opened().open('?view=runs&measure=MRR%4010', '.runs-form')
    choose(page, tmp_path)
    page.wait_for_selector('.chart')
    # Of four judged topics: A has 1/2, 1, 0, nothing; B has 1, 1/2, 0, nothing.
    means = page.locator('.figures tbody tr').all_inner_texts()
    assert '0.3750' in means[0] and '0.3750' in means[1]
    assert '1 better, 1 worse, 2 the same' in page.locator('.runs-found > .lead').inner_text()
    wins, losses = page.locator('.topics').all()
    assert wins.locator('.docid').all_text_contents() == ['1'] and '+0.5000' in wins.inner_text()
    assert losses.locator('.docid').all_text_contents() == ['2'] and '−0.5000' in losses.inner_text()
    assert page.locator('.chart rect').count() == 2
    losses.get_by_role('button').first.click()
    page.wait_for_selector('.topic-found .extract:has-text("Slugs hide under boards")')
    assert 'topic=2' in page.url and 'keep slugs off lettuce' in page.locator('.topic-found h2').inner_text()
    assert page.locator('.topic-found .move').all_text_contents() == ['only in B', '▼ 1']
    page.locator('.topic-found .pair-row button').first.click()
    assert 'Slugs' in page.locator('dialog .passage').inner_text()


def test_run_files_with_judgments_of_their_own(opened, tmp_path):
    page = opened().open('?view=runs&measure=MRR%4010', '.runs-form')
    choose(page, tmp_path, '1 0 g7 1\n')
    page.wait_for_selector('.chart')
    means = page.locator('.figures tbody tr').all_inner_texts()
    assert '1.0000' in means[0] and '0.5000' in means[1]


def test_run_files_that_are_none(opened, tmp_path):
    page = opened().open('?view=runs', '.runs-form')
    page.get_by_role('button', name='Evaluate').click()
    assert 'Choose run A, run B.' in page.locator('.message').inner_text()
    choose(page, tmp_path, '1 0 g7\n')
    page.wait_for_selector('.message.bad')
    assert 'qrels:1' in page.locator('.message').inner_text()
