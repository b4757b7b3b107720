"""What is copied does what the page did: run as it stands, it gives the same hits."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.jvm,
    pytest.mark.skipif(not shutil.which('curl'), reason='there is no curl here'),
]

HARD = '?q=it%27s+%22slugs%22+%24HOME+%5C+off+lettuce+%C3%A9&system=dense&system=bm25&fusion=rrf&rrf_k=7&hits=4'  # noqa: E501


def commands(page):
    page.get_by_text('More', exact=True).click()
    page.get_by_role('button', name='Copy as…').click()
    texts = {
        own.get_attribute('aria-label'): own.text_content()
        for own in page.locator('dialog pre').all()
    }
    page.keyboard.press('Escape')
    assert page.evaluate('document.activeElement.textContent') == 'More'
    assert page.get_by_role('button', name='Copy as…').is_hidden()
    return texts


def shell(text, folder):
    done = subprocess.run(
        ['bash', '-c', text], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_search(opened, garden):
    own = opened()
    page = own.open(HARD)
    copied = commands(page)
    assert set(copied) == {'curl', 'Command line'}
    found = json.loads(shell(copied['curl'], garden))
    assert [hit['docid'] for hit in found['candidates']] == own.docids()


def test_a_comparison(opened, garden):
    page = opened().open(HARD + '&view=compare&b.system=bm25&b.rerank=monobert-demo%403', '.pair')
    copied = commands(page)
    assert copied['Command line'].count('pyserini_repbert.search') == 2
    found = json.loads(shell(copied['curl'], garden))
    tiles = page.locator('.tile b').all_inner_texts()
    assert tiles == [f'{int(100 * found["overlap"] + 0.5)} %', f'{found["rbo"]:.4g}']


def test_weights_are_copied(opened, garden):
    own = opened()
    page = own.open(
        '?q=lettuce&system=dense&system=bm25&fusion=interpolation&normalize=zscore&weights=0.2&weights=1.5'
    )
    copied = commands(page)
    assert (
        '--weights 0.2 1.5' in copied['Command line']
        and '--normalize zscore' in copied['Command line']
    )
    found = json.loads(shell(copied['curl'], garden))
    assert [hit['docid'] for hit in found['candidates']] == own.docids()


def test_a_command_line(opened, garden, monkeypatch):
    monkeypatch.setenv('PYTHONPATH', str(Path(__file__).parents[2]))
    own = opened()
    # 'garden' and 'words' are folders below `garden`, as the command line takes them.
    page = own.open(
        '?q=keep+slugs+off+lettuce&system=dense&system=bm25&hits=3&rerank=monobert-demo%404'
    )
    line = commands(page)['Command line'].replace('python -m', f'{sys.executable} -m', 1)
    told = shell(line + ' --quiet', garden)
    places = [told.index(docid) for docid in own.docids()]
    assert places == sorted(places)


def test_the_button_copies(opened):
    page = opened(permissions=['clipboard-read', 'clipboard-write']).open('?q=lettuce&system=dense')
    page.get_by_text('More', exact=True).click()
    page.get_by_role('button', name='Copy as…').click()
    page.get_by_role('button', name='Copy curl').click()
    page.locator('dialog .copy button', has_text='Copied').wait_for()
    assert (
        page.evaluate('navigator.clipboard.readText()')
        == page.locator('dialog pre').first.text_content()
    )
