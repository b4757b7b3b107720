"""The filter box: fields with their counts, the address, errors, the keyboard, a hit's fields."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

ASKED = '?view=search&q=keep+slugs+off+lettuce'


@pytest.fixture
def mine(opened, served_collection):
    """A page of the collection's service."""
    return opened(address=served_collection)


def wait_for_hits(page, count):
    page.locator('.hit').nth(count - 1).wait_for()
    page.wait_for_selector(f'.hits:not(.stale) .hit:nth-child({count}):last-child')


def open_fields(page):
    page.get_by_text('Fields (', exact=False).click()
    return page.locator('.filter-fields')


def test_the_fields_have_their_counts(mine):
    page = mine.open(ASKED)
    fields = open_fields(page)
    names = [' '.join(text.split()) for text in fields.locator('.field-name').all_inner_texts()]
    assert names == [
        'day date, 1',
        'depth number, 1',
        'language text, 2',
        'path:of text, 1',
        'tags text, 1',
        'type text, 3',
        'year number, 3',
    ]
    values = fields.locator('li', has_text='type').get_by_role('button').all_inner_texts()
    assert values == ['guide 2', 'note 1']


def test_values_make_a_filter_that_the_address_holds(mine):
    page = mine.open(ASKED)
    assert len(mine.docids()) == 3
    fields = open_fields(page)
    fields.get_by_role('button', name='guide 2').click()
    wait_for_hits(page, 2)
    assert page.get_by_label('Filter').input_value() == 'type:guide'
    assert 'filter=type%3Aguide' in page.url
    assert fields.get_by_role('button', name='guide 2').get_attribute('aria-pressed') == 'true'
    fields.get_by_role('button', name='pest control 1').click()
    wait_for_hits(page, 1)
    assert page.get_by_label('Filter').input_value() == 'type:guide AND tags:"pest control"'
    page.go_back()
    wait_for_hits(page, 2)
    assert page.get_by_label('Filter').input_value() == 'type:guide'
    # The fields are shown where there is a filter.
    fields.get_by_role('button', name='guide 2').click()
    wait_for_hits(page, 3)
    assert 'filter=' not in page.url


def test_any_value_can_be_chosen(mine):
    page = mine.open(f'{ASKED}&filter=type%3Anote')
    assert mine.docids() == ['note']
    for name, docid in (('<b onmouseover', 'note'), ('2023-05-04', 'tomatoes'), ('-3', 'guide')):
        page = mine.open(ASKED)
        open_fields(page).get_by_role('button', name=name).click()
        wait_for_hits(page, 1)
        assert mine.docids()[0].startswith(docid)


def test_the_keyboard_is_enough(mine):
    page = mine.open(ASKED)
    box = page.get_by_label('Filter')
    box.focus()
    page.keyboard.type('year:[2020 TO *]')
    page.keyboard.press('Enter')
    wait_for_hits(page, 2)
    assert sorted(mine.docids()) == ['note', 'tomatoes']
    page.keyboard.press('Tab')
    page.keyboard.press('Enter')
    values = page.locator('.filter-fields button')
    page.keyboard.press('Tab')
    assert values.first.evaluate('own => own === document.activeElement')
    page.keyboard.press('Enter')
    wait_for_hits(page, 1)
    assert mine.docids() == ['tomatoes']
    # The value keeps the focus, so that it can be taken out again.
    assert values.first.evaluate('own => own === document.activeElement')
    page.keyboard.press('Enter')
    wait_for_hits(page, 2)


def test_a_range_is_begun_in_the_box(mine):
    page = mine.open(ASKED)
    open_fields(page).get_by_role('button', name='year: from').click()
    box = page.get_by_label('Filter')
    assert box.input_value() == 'year:[* TO *]'
    page.keyboard.type('2024')
    page.keyboard.press('Enter')
    wait_for_hits(page, 1)
    assert 'filter=year%3A%5B2024+TO+*%5D' in page.url


def test_errors_are_those_of_the_page(mine):
    page = mine.open(f'{ASKED}&filter=kind%3Aguide', '.message.bad')
    shown = page.locator('.message').inner_text()
    assert 'That cannot be answered' in shown
    assert "There is no field 'kind': the fields are docid, day, depth, folder, language" in shown
    page = mine.open(f'{ASKED}&filter=type%3A%22guide', '.message.bad')
    assert 'cannot be read' in page.locator('.message').inner_text()
    page.get_by_label('Filter').fill('type:note')
    page.keyboard.press('Enter')
    page.wait_for_selector('.hit')


def test_no_hits_within_a_filter(mine):
    page = mine.open('?q=lettuce&system=bm25&filter=type%3Anote', '.message')
    shown = page.locator('.message').inner_text()
    assert 'No document of mine within type:note answers “lettuce”.' in shown
    page.get_by_role('button', name='Search without the filter').click()
    page.wait_for_selector('.hit')
    assert 'filter=' not in page.url


def test_a_hit_shows_its_fields(mine):
    page = mine.open(ASKED)
    fields = page.locator('.hit').first.locator('.hit-fields')
    shown = dict(
        zip(
            fields.locator('dt').all_inner_texts(),
            fields.locator('dd').all_inner_texts(),
            strict=True,
        )
    )
    assert shown == {
        'depth': '-3',
        'tags': 'lettuce, pest control',
        'type': 'guide',
        'year': '2019',
    }


def test_commands_and_comparisons_have_the_filter(mine):
    page = mine.open(f'{ASKED}&filter=year%3A%5B2020+TO+*%5D')
    page.get_by_text('More', exact=True).click()
    page.locator('#copy').click()
    command = page.get_by_label('Command line', exact=True).inner_text()
    assert "--filter 'year:[2020 TO *]'" in command
    curl = page.get_by_label('curl', exact=True).inner_text()
    assert "--data-urlencode 'filter=year:[2020 TO *]'" in curl
    compared = ASKED.replace('search', 'compare')
    page = mine.open(f'{compared}&system=dense&b.system=bm25&filter=type%3Aguide', '.pair')
    docids = page.locator('.pair-row .docid').all_inner_texts()
    assert set(docids) == {'guide/slugs', 'tomatoes'}


def test_an_index_without_fields_has_no_box(opened):
    page = opened().open('?view=search&q=lettuce')
    assert page.locator('.filter').count() == 0


def test_a_question_without_a_word_is_said(mine):
    page = mine.open('?q=the&system=bm25', '.message')
    warning = page.locator('.warning').inner_text()
    assert "Lucene finds nothing for 'the': the analyzer of language 'en'" in warning
