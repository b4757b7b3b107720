"""Why a hit is where it is: the four panels show what the service says, and ask for no more than
they say.
"""

import json
import urllib.parse
import urllib.request

import pytest
from sentence_folders import write_multi_vector
from web_service import run_service

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

QUERY = 'keep slugs off lettuce'
ASKED = '?q=keep+slugs+off+lettuce&system=dense&hits=4&open=g3&why='


def explanations(own):
    return [url for url in own.asked if '/explain?' in url]


def joined(tokens):
    """Words with the places of their pieces: ('lettuce', [3, 4, 5])."""
    words = []
    for place, token in enumerate(tokens):
        if token.startswith('##'):
            words[-1] = (words[-1][0] + token[2:], [*words[-1][1], place])
        else:
            words.append((token, [place]))
    return words


def test_terms(opened, api):
    page = opened().open(ASKED + 'epic', '.terms')
    (found,) = api('garden/explain', query=QUERY, model='epic', docid='g3', top=15)['passages']
    rows = page.locator('.terms tbody tr')
    assert rows.locator('th').all_text_contents() == [one['term'] for one in found['contributions']]
    first = found['contributions'][0]
    assert f'{first["contribution"]:.4g}' in rows.first.inner_text()
    shown = [text.split()[0] for text in page.locator('.chips li').all_text_contents()]
    assert shown == [one['term'] for one in found['expansions']]
    assert 'slugs hide under boards' in ' '.join(page.locator('.shaded').inner_text().split())


def test_similarities(opened, api):
    own = opened()
    page = own.open(ASKED + 'cedr', '.heat')
    (found,) = api('garden/explain', query=QUERY, model='cedr-knrm-demo', docid='g3')['passages']
    columns, rows = (joined(found[tokens]) for tokens in ('passage_tokens', 'query_tokens'))
    assert page.locator('.heat .token').all_text_contents() == [word for word, _ in columns]
    assert (
        page.locator('.heat-rows li').all_text_contents()
        == QUERY.split()
        == [word for word, _ in rows]
    )
    (values,) = (one['values'] for one in found['maps'])
    words = [
        [max(values[i][j] for i in row for j in column) for _, column in columns] for _, row in rows
    ]
    assert page.locator('.heat .cell').count() == len(columns) * len(rows)
    page.locator('.cell[data-i="3"][data-j="3"]').hover()
    told = page.locator('.readout').inner_text()
    assert told.startswith(f'lettuce · {columns[3][0]}: ')
    assert float(told.split()[-1]) == pytest.approx(words[3][3], rel=1e-3)
    best = columns[max(range(len(columns)), key=lambda place: words[0][place])][0]
    assert page.locator('.strongest li').first.inner_text().startswith(f'keep {best} ')
    page.get_by_label('Layer').fill('0')
    page.get_by_label('Layer').press('Tab')
    page.locator('.why output', has_text='0 of 6').wait_for()
    page.wait_for_selector('.heat')
    assert 'layer=0' in explanations(own)[-1]


def test_pairs(opened, api):
    own = opened()
    page = own.open(ASKED + 'duobert', '.pair-count')
    assert page.locator('.pair-count').inner_text() == '4 × 3 = 12 inferences.'
    assert explanations(own) == []
    page.get_by_role('button', name='Compare', exact=True).click()
    page.wait_for_selector('.matrix')
    docids = own.docids()
    found = api('garden/explain', query=QUERY, model='duobert', docid=docids)
    cells = [
        row.locator('td').all_text_contents() for row in page.locator('.matrix tbody tr').all()
    ]
    expected = [
        ['' if value is None else str(int(100 * value + 0.5)) for value in row]
        for row in found['probabilities']
    ]
    assert cells == expected
    asked = len(explanations(own))
    for method, own_scores in found['methods'].items():
        page.get_by_label(method, exact=True).check()
        assert page.locator('.order .docid').all_text_contents() == own_scores['order']
        assert 'No new inference' in page.locator('.pairs .note').inner_text()
    assert len(explanations(own)) == asked == 1
    assert list(found['methods']) == ['sum', 'binary', 'min', 'max', 'sample']


def test_scores(opened, api):
    own = opened()
    page = own.open(ASKED + 'monobert', '.terms')
    found = api('garden/explain', query=QUERY, model='monobert', docid=own.docids())
    place = found['docids'].index('g3')
    sure = f'{int(100 * found["probabilities"][place] + 0.5)} %'
    rank = sorted(found['scores'], reverse=True).index(found['scores'][place]) + 1
    assert (
        sure in page.locator('.lead').inner_text()
        and f'{rank} of the 4 hits' in page.locator('.lead').inner_text()
    )
    by_score = sorted(zip(found['scores'], found['docids'], strict=True), reverse=True)
    assert page.locator('.terms th').all_text_contents() == [docid for _, docid in by_score]


def test_each_loads_on_demand_and_once(opened):
    own = opened()
    page = own.open('?q=keep+slugs+off+lettuce&system=dense&hits=4')
    assert explanations(own) == []
    card = page.locator('.hit').first
    card.get_by_role('button', name='Why here?').click()
    page.wait_for_selector('.terms')
    assert len(explanations(own)) == 1
    page.get_by_role('tab', name='Terms').press('ArrowRight')
    page.wait_for_selector('.heat')
    page.get_by_role('tab', name='Similarities').press('ArrowLeft')
    page.wait_for_selector('.terms')
    assert len(explanations(own)) == 2
    card.get_by_role('button', name='Why here?').click()
    assert card.locator('.why').count() == 0


def test_tables_of_another_reranker(opened, garden, tmp_path):
    folder = write_multi_vector(tmp_path, dense=[(16, 8, False)])
    with run_service(garden, '--index', 'garden', '--rerankers', str(folder)) as address:
        page = opened(address=address).open(ASKED + 'multi-vector', '.why .terms')
        query = urllib.parse.urlencode({'query': QUERY, 'model': 'model', 'docid': 'g3'})
        with urllib.request.urlopen(f'{address}v1/garden/explain?{query}') as answer:
            (table,) = json.load(answer)['tables']
        assert page.locator('.why .terms caption').inner_text() == table['title']
        tokens = page.locator('.why .terms tbody th').all_text_contents()
        assert tokens == [row['token'] for row in table['rows']]
        found = page.locator('.why .terms tbody tr').last.locator('td').all_text_contents()
        last = table['rows'][-1]
        assert found[-2:] == [last['match'], str(last['position'])]
