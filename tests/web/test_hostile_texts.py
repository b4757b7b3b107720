"""No passage, docid, topic or address becomes markup or script."""

import urllib.request

import pytest
from garden_texts import HOSTILE, HOSTILE_TEXT

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

# What the texts would make if they were read as markup; the page itself has none of these.
INJECTED = (
    'img[onerror], main script, svg[onload], b[onmouseover], body > script, iframe, '
    'object, [onerror], [onload]'
)
QUERY = '%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D1%3E%20sweet%20melon'


def clean(page):
    assert page.locator(INJECTED).count() == 0
    assert page.evaluate('window.hacked') is None


def test_hits(opened):
    own = opened()
    page = own.open(f'?q={QUERY}&system=dense&system=bm25')
    card = page.locator('.hit').first
    assert own.docids()[0] == HOSTILE
    assert card.locator('.passage').text_content() == HOSTILE_TEXT
    for name, seen in (
        ('Terms', '.shaded'),
        ('Similarities', '.heat'),
        ('Scores', '.terms .rerank'),
    ):
        if card.locator('.why').count() == 0:
            card.get_by_role('button', name='Why here?').click()
        page.get_by_role('tab', name=name).click()
        page.wait_for_selector(seen)
        clean(page)
    page.get_by_role('tab', name='Pairs').click()
    page.get_by_role('button', name='Compare', exact=True).click()
    page.wait_for_selector('.matrix')
    page.get_by_text('More', exact=True).click()
    page.get_by_role('button', name='Copy as…').click()
    clean(page)
    assert '<img src=x onerror=window.hacked=1>' in page.locator('dialog pre').first.text_content()


def test_comparison_and_topics(opened):
    page = opened().open(f'?view=compare&q={QUERY}&system=dense&b.system=bm25', '.pair')
    page.locator('.pair-row', has_text='Ripe').first.get_by_role('button').click()
    assert HOSTILE_TEXT in page.locator('dialog').text_content()
    clean(page)
    page = opened().open('?view=search', '.example')
    page.get_by_role('button', name='melons').click()
    page.wait_for_selector('.hit')
    clean(page)


def test_texts_cannot_become_markup_even_by_mistake(opened, served):
    own = opened()
    page = own.open('?view=search', '.example')
    refused = page.evaluate(
        "() => { try { document.body.innerHTML = '<b>x</b>'; return 'done' } catch (e) { return "
        'e.name } }'
    )
    assert refused == 'TypeError' and 'TrustedHTML' in own.problems.pop()
    with urllib.request.urlopen(served) as answer:
        policy = answer.headers['Content-Security-Policy']
    assert (
        'unsafe' not in policy
        and "script-src 'self'" in policy
        and answer.headers['Cache-Control'] == 'no-cache'
    )


def test_a_docid_with_all_that_addresses_are_made_of(opened):
    page = opened().open(
        '?q=paths+between+beds&system=dense&open=garden%2Fbeds%26paths%3F%231%2541&why=epic',
        '.terms',
    )
    assert (
        page.locator('.hit', has=page.locator('.terms')).locator('h2').inner_text()
        == 'garden/beds&paths?#1%41'
    )
