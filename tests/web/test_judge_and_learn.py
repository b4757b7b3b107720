"""From a folder of texts to a search that has learned: all that a person does, with the keyboard.

PICTURES=docs/images python -m pytest tests/web/test_judge_and_learn.py also takes the pictures of
the guide docs/guides/judging.md.
"""

import os
from pathlib import Path

import pytest
from kitchen_texts import NOTES, QUESTIONS
from web_service import command, run_service

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

_LEARNED_WITHIN = 240_000  # ms
_PICTURED = 'how to chop onions without crying'


@pytest.fixture(scope='module')
def served_kitchen(tmp_path_factory, browser):
    """The address of a service over a folder of notes that was just indexed."""
    folder = tmp_path_factory.mktemp('kitchen')
    (folder / 'notes').mkdir()
    for name, text in NOTES.items():
        note = f'# {name.capitalize()}\n\n{text}\n'
        (folder / 'notes' / f'{name}.md').write_text(note, encoding='utf-8')
    made = ('--index', 'kitchen', '--corpus', 'notes', '--encoder', 'repbert-demo')
    command('index', 'sync', *made, folder=folder)
    with run_service(folder, '--index', 'kitchen') as address:
        yield address


def take_picture(page, name, width=1280, height=800):
    """Write a picture of the guide, if somebody wants them."""
    if 'PICTURES' not in os.environ:
        return
    usual = page.viewport_size
    page.set_viewport_size({'width': width, 'height': height})
    page.screenshot(path=Path(os.environ['PICTURES']) / f'judge-{name}.png')
    page.set_viewport_size(usual)


def wait_for_question(page, other_than):
    """Wait for another question than one, and give its text."""
    page.wait_for_function(
        """text => {
          const shown = document.querySelector('.judge-head h2')?.textContent;
          return shown && shown !== text && document.querySelector('.judge-document');
        }""",
        arg=other_than,
    )
    return page.locator('.judge-head h2').inner_text()


def judge_question(page, question):
    """Grade each document of the question shown: 3 for the note that answers it, else 0."""
    while page.locator('.judge-summary').count() == 0:
        progress = page.locator('.judge-progress').inner_text()
        docid = page.locator('.judge-document .docid').inner_text()
        answers = docid.split('.')[0] == QUESTIONS[question]
        # The type and the day of a file do not help to judge.
        assert page.locator('.judge-document .hit-fields').count() == 0
        if answers and question == _PICTURED:
            take_picture(page, 'document', height=720)
            take_picture(page, 'phone', width=390, height=844)
        page.keyboard.press('3' if answers else '0')
        page.wait_for_function(
            'text => document.querySelector(".judge-progress").textContent !== text', arg=progress
        )


def default_docids(own):
    own.open('?view=search&q=how+to+sharpen+a+blade')
    return own.docids()


def test_judge_learn_use_and_go_back(opened, served_kitchen):
    own = opened(address=served_kitchen)
    own.page.add_init_script('localStorage.judge = "cook"')
    before = default_docids(own)
    page = own.open('?view=judge', '.judge-add')
    page.get_by_label('Add questions').focus()
    page.keyboard.insert_text('\n'.join(QUESTIONS))
    page.keyboard.press('Tab')
    page.keyboard.press('Enter')
    page.get_by_text('0 of 20 questions judged.').wait_for()
    assert page.get_by_role('button', name='Learn').is_disabled()
    judged = []
    page.keyboard.press('n')
    for number in range(len(QUESTIONS)):
        judged.append(wait_for_question(page, judged[-1] if judged else ''))
        judge_question(page, judged[-1])
        line = page.locator('.judge-progress').inner_text()
        assert line == f'{number + 1} of 20 questions judged · summary'
        if number == 3:
            page.get_by_role('button', name='All questions').press('Enter')
            page.get_by_text('4 of 20 questions judged.').wait_for()
            take_picture(page, 'questions', height=1000)
        page.keyboard.press('n')
    assert sorted(judged) == sorted(QUESTIONS)
    page.get_by_text('20 of 20 questions judged.').wait_for()

    learn = page.get_by_role('button', name='Learn', exact=True)
    learn.wait_for()
    learn.press('Enter')
    page.wait_for_selector('.learn-report', timeout=_LEARNED_WITHIN)
    page.wait_for_selector('.learn-running', state='detached')
    lead = page.locator('.learn-report .lead').inner_text()
    assert ' of 20 questions better and ' in lead
    page.get_by_text('Details', exact=True).click()
    tables = page.locator('.learn-report table').all()
    assert tables[0].locator('tbody tr').count() > 2
    changed = tables[1].locator('tbody th').all_text_contents() if len(tables) > 1 else []
    assert set(changed) <= set(QUESTIONS)
    page.get_by_text(f'{len(QUESTIONS) - len(changed)} question').last.wait_for()
    page.locator('.learn').evaluate('own => own.scrollIntoView()')
    take_picture(page, 'learn', height=1000)
    # Twenty questions on a small collection teach nothing that is better than the search is.
    page.get_by_role('button', name='Use it', exact=True).press('Enter')
    page.get_by_text('Not better than now').wait_for()
    page.get_by_role('button', name='Use it anyway').press('Enter')
    page.get_by_role('button', name='Go back').wait_for()
    default_docids(own)
    page.get_by_text('you: 3 perfectly relevant').wait_for()
    take_picture(page, 'search', height=760)

    page = own.open('?view=judge', '.learn-report')
    page.get_by_role('button', name='Go back').press('Enter')
    page.get_by_role('button', name='Use it', exact=True).wait_for()
    assert default_docids(own) == before
