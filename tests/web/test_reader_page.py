"""The reader's page: hits of a few lines, filters, and a document of 5 MB opened at its passage."""

import time
from urllib.parse import quote_plus

import pytest
from folders import write_files
from long_texts import QUESTION, SHORT, long_page
from test_accessibility import violations
from web_service import command, run_service

from tests.collection.files.mixed_files import MAIL

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

ASKED = '?q=keep+slugs+off+lettuce'
LONG = 'chronicle.md'
# Seconds in which a document opens, on a quiet machine; others work beside the tests.
OPENED = 1.0
BUSY = 5


@pytest.fixture
def library(tiny_checkpoint, tmp_path):
    """The address of a service over a collection of a page of 5 MB and a short one."""
    ranking = {'system': 'repbert', 'max_query_length': 20, 'max_doc_length': 500}
    tiny_checkpoint('encoder', max_position_embeddings=512, ranking=ranking)
    docs = tmp_path / 'docs'
    docs.mkdir()
    (docs / LONG).write_text(long_page(5_000_000), encoding='utf-8')
    (docs / 'keys.md').write_text(SHORT, encoding='utf-8')
    (docs / 'tape.eml').write_text(MAIL, encoding='utf-8')
    made = ('--corpus', 'docs', '--encoder', 'encoder', '--passage-tokens', '400')
    command('index', 'sync', '--index', 'mine', *made, folder=tmp_path)
    with run_service(tmp_path, '--index', 'mine') as address:
        yield address


@pytest.fixture
def mine(opened, served_collection):
    """The reader's page of the garden's collection."""
    return opened(address=served_collection, bypass_csp=True)


def is_in_view(page, selector):
    top = page.locator(selector).first.evaluate('own => own.getBoundingClientRect().top')
    return 0 <= top < page.viewport_size['height']


def test_a_document_of_5_mb_opens_at_its_passage(opened, library):
    # Playwright waits by `eval`.
    own = opened(address=library, bypass_csp=True)
    page = own.open(f'?q={quote_plus(QUESTION)}', '.hit')
    start = time.perf_counter()
    page.get_by_role('link', name='The long chronicle').click()
    page.wait_for_selector('.in-passage')
    page.wait_for_function('document.querySelector(".in-passage").getBoundingClientRect().top > 0')
    seconds = time.perf_counter() - start
    assert seconds < OPENED * BUSY, seconds
    assert is_in_view(page, '.in-passage')
    assert 'Match' in page.locator('.matches').inner_text()
    # No more than some parts of the text are on the page.
    assert len(page.locator('.parts').inner_text()) < 300_000

    first = page.locator('.part').first.inner_text()
    page.keyboard.press('n')
    page.wait_for_function(
        'text => !document.querySelector(".part").innerText.startsWith(text)', arg=first[:200]
    )
    page.wait_for_selector('.in-passage')
    page.get_by_role('button', name='The keeper').click()
    page.locator('.heading', has_text='The keeper').wait_for()
    assert is_in_view(page, '.heading:has-text("The keeper")')
    shown = page.locator('.part p', has_text='The lost key of the lighthouse').inner_text()
    assert shown == 'The lost key of the lighthouse lies below the third step, see the map.'
    page.get_by_role('link', name='All hits').click()
    page.wait_for_selector('.hit')
    check_both_directions(own)
    check_a_mail_has_sender_and_date(own)


def check_a_mail_has_sender_and_date(own):
    """A document without sender and date has no such line."""
    page = own.open('?doc=tape.eml', '.reading .head-fields')
    lines = page.locator('.head-fields').inner_text().replace('\n', ' ')
    assert lines.startswith('From Ada <ada@example.org> To bob@example.org Date Jan 1, 2024')
    page = own.open('?doc=keys.md', '.reading')
    assert page.locator('.head-fields').count() == 0


def check_both_directions(own):
    """Parts above and below those on the page are fetched, and none is left out."""
    page = own.open(f'?doc={LONG}&at=2500000-2500100', '.part')
    for place in ('0', 'document.body.scrollHeight', '0', 'document.body.scrollHeight'):
        count = page.locator('.part').count()
        page.evaluate(f'window.scrollTo(0, {place})')
        page.wait_for_function(f'document.querySelectorAll(".part").length > {count}')
    parts = page.locator('.part').all_inner_texts()
    chapters = []
    for part in parts:
        for line in part.split('\n'):
            if line.startswith('Chapter '):
                chapters.append(int(line.split()[1]))
    assert len(chapters) > 40
    assert chapters == list(range(chapters[0], chapters[-1] + 1))


def test_a_hit_has_its_title_and_a_few_lines(mine):
    page = mine.open(ASKED, '.hit')
    first = page.locator('.hit').first
    assert first.get_by_role('heading').inner_text() == 'Lettuce without slugs'
    assert 'slugs' in first.locator('mark').all_text_contents()
    assert first.locator('.snippet').bounding_box()['height'] < 120
    for word in ('score', 'dense', 'bm25', 'interpolation'):
        assert word not in page.locator('main').inner_text()
    first.get_by_role('link', name='Lettuce without slugs').click()
    page.wait_for_selector('.in-passage')
    assert 'Bed number 0 ' in page.locator('.parts').text_content()
    page.go_back()
    page.wait_for_selector('.hit')


def test_filters_are_the_values_of_fields(mine):
    page = mine.open(ASKED, '.hit')
    assert page.locator('.hit').count() == 3
    page.get_by_role('checkbox', name='guide').check()
    page.wait_for_selector('.filter-chips')
    page.wait_for_function('document.querySelectorAll(".hit").length === 2')
    assert 'f.type=guide' in page.url
    # The box stays as it is while it has the focus; what its numbers count does not.
    counted = page.locator('#filters .counted').text_content()
    assert counted.endswith('the first 3 hits had the value before you chose a filter.')
    page.get_by_role('button', name='Without the filter type: guide').click()
    page.wait_for_function('document.querySelectorAll(".hit").length === 3')


FACETS = """async () => {
  const { valuesOf } = await import('/js/facets.js');
  const { filterOf } = await import('/js/reader_state.js');
  const hit = (file, fields, docid = file) => ({
    docid, fields: { type: file.split('.').pop(), ...fields }, passage: { file },
  });
  const hits = [
    hit('desk/a/one.md', { folder: 'desk/a', modified: '2023-05-01', tags: ['x'] }),
    hit('desk/a/b/two.md', { folder: 'desk/a/b', modified: '2024-05-01' }),
    hit('desk/c/t.csv', { folder: 'desk/c', modified: '2024-05-02', price: 7 }, 'desk/c/t.csv#1'),
    hit('desk/c/p.html', { folder: 'desk/c', viewport: 'wide' }),
    hit('desk/m.eml', { folder: 'desk', modified: '2024-01-01', date: '2021-01-01T10:00:00Z' }),
  ];
  const rows = [1, 2].map((row) => hit('t.csv', { price: row }, `t.csv#${row}`));
  const chosen = { filter: '', chosen: [['folder', 'desk/a'], ['year', '2024']] };
  const ofFiles = { fields: { folder: ['text'], modified: ['date'] } };
  const withDates = { fields: { folder: ['text'], modified: ['date'], date: ['date'] } };
  return [valuesOf(hits), valuesOf(rows), filterOf(chosen, ofFiles), filterOf(chosen, withDates),
    filterOf({ filter: '', chosen: [['folder', 'desk']] }, { fields: {} })];
}"""


def test_filters_are_the_folders_own(mine):
    """Columns of a table and <meta> of pages are left out among other files."""
    counted, of_rows, term, dated, without = mine.open(ASKED, '.hit').evaluate(FACETS)
    assert counted == {
        'type': {'md': 2, 'csv': 1, 'html': 1, 'eml': 1},
        'folder': {'desk/a': 2, 'desk/c': 2, 'desk': 1},
        'year': {'2023': 1, '2024': 2, '2021': 1},
        'tags': {'x': 1},
    }
    assert of_rows == {'type': {'csv': 2}, 'price': {'1': 1, '2': 1}}
    assert term == 'folder:"desk/a" AND modified:[2024 TO 2024]'
    assert dated.endswith('(date:[2024 TO 2024] OR (NOT date:* AND modified:[2024 TO 2024]))')
    assert without == r'docid:desk\/*'


FOLDERS = """async () => {
  const { facets, filterChips, valuesOf } = await import('/js/facets.js');
  const docids = ['old%20notes/a%25b/1', 'old%20notes/a%25b/2', 'old%20notes/c/3'];
  const hits = docids.map((docid) => ({ docid }));
  const about = { fields: {} };
  const chosen = [['folder', 'old%20notes/c']];
  const box = facets({ about, values: valuesOf(hits), nHits: 3, chosen, onchange() {} });
  const shown = [...box.querySelectorAll('.value')].map((own) => own.textContent);
  return [...shown, filterChips({ filter: '', chosen }, about).textContent];
}"""


def test_folders_of_docids_are_shown_as_a_person_writes_them(mine):
    shown = mine.open(ASKED, '.hit').evaluate(FOLDERS)
    assert shown == ['old notes/a%b', 'old notes/c', 'folder: old notes/c ×']


SNIPPETS = """async () => {
  const { hitElements } = await import('/js/reader_hits.js');
  const hit = (text, start) => ({
    docid: 'd', rank: 1, doc: text, display: [{ text, match: false }], passage: { start, end: 9 },
  });
  const state = { index: 'mine', q: 'q', chosen: [] };
  const texts = [': the path of it', 'is read.', 'A whole one.'].map((text) => hit(text, 5));
  const shown = { about: { name: 'mine' }, state, onopen() {} };
  return [...texts, hit('a first one.', 0)].map((candidate) => {
    const elements = hitElements({ candidates: [candidate], query: {}, rerank: [] }, shown);
    const list = elements.flat().find((own) => own?.className === 'hits');
    return list.querySelector('.snippet').textContent;
  });
}"""


def test_a_passage_from_within_a_sentence_says_so(mine):
    shown = mine.open(ASKED, '.hit').evaluate(SNIPPETS)
    assert shown == ['… the path of it', '… is read.', 'A whole one.', 'a first one.']


MARKS = """async () => {
  const { hitElements } = await import('/js/reader_hits.js');
  const long = (sign) => Array.from({ length: 40 }, (_, number) => `word${number}${sign}`).join('');
  const marked = (before, after) => [
    { text: before, match: false }, { text: 'copper', match: true }, { text: after, match: false },
  ];
  const lines = long('\\n');
  const texts = [
    marked(long(' '), ''), marked(long(' '), long(' ')), marked(lines, lines), marked('', lines),
    [...marked('The ', ` ${long(' ')}`), ...marked('', ' band')],
    [...marked('A ', ` ${long(' ')}`), ...marked('', ' '), { text: 'bands', match: true }],
  ];
  const candidates = texts.map((display, number) => ({
    title: `Hit ${number}`, docid: `d${number}`, doc: '', display,
    passage: { file: 'd', start: 0, end: 3, headings: [], is_code: number === 2 },
  }));
  const page = { about: { name: 'mine' }, state: { chosen: [] }, onopen: () => {}, onmore: null };
  const hits = hitElements({ candidates, query: {} }, page).flat().filter(Boolean);
  document.querySelector('.hits').replaceWith(...hits);
}"""
SEEN = """() => [...document.querySelectorAll('.snippet')].map((own) => {
  const { bottom } = own.getBoundingClientRect();
  const marks = [...own.querySelectorAll('mark')];
  const seen = marks.filter((mark) => mark.getBoundingClientRect().bottom <= bottom + 1);
  return [own.textContent.trim().slice(0, 1), seen.map((mark) => mark.textContent).join(' ')];
})"""


def test_marked_words_are_seen_at_any_width(mine):
    """They stood below the lines that a narrow screen shows."""
    page = mine.open(ASKED, '.hit')
    page.evaluate(MARKS)
    for width in (320, 390, 1280, 390):
        page.set_viewport_size({'width': width, 'height': 900})
        page.wait_for_timeout(200)
        signs, words = zip(*page.evaluate(SEEN), strict=True)
        assert words[:4] == ('copper',) * 4, width
        # The first of equals, and the stretch with more different words.
        assert words[4].startswith('copper'), width
        assert words[5].endswith('copper bands'), width
        assert signs[:3] == ('…', '…', '…') or width == 1280
        assert signs[3:5] == ('c', 'T'), width


def test_the_start_tells_the_types_of_files(mine):
    """How many documents come from each."""

    def about(route):
        values = route.fetch().json()
        for index in values['indexes']:
            index['fields'] |= {'folder': ['text']}
            counts = [{'value': 'markdown', 'documents': 1200}, {'value': 'pdf', 'documents': 3}]
            index['field_counts']['type'] = {'documents': 1203, 'values': counts}
        route.fulfill(json=values)

    mine.page.route('**/v1/indexes', about)
    page = mine.open('', '.start')
    assert page.locator('.kinds').inner_text() == 'By type: markdown 1,200, pdf 3.'


def test_the_laboratory_is_one_control_away_and_keeps_its_address(mine):
    page = mine.open(ASKED, '.hit')
    page.get_by_text('More', exact=True).click()
    page.get_by_role('link', name='Laboratory').click()
    page.wait_for_selector('.steps')
    assert page.locator('#q').input_value() == 'keep slugs off lettuce'
    page.get_by_text('More', exact=True).click()
    page.get_by_role('link', name='Plain search page').click()
    page.wait_for_selector('.snippet')
    mine.open('?q=lettuce&system=dense', '.steps')


def give_address(own, address):
    """Let all hits and documents have an address."""

    def answer(route):
        found = route.fetch().json()
        for candidate in found.get('candidates', [found]):
            candidate['url'] = address
        route.fulfill(json=found)

    own.page.route('**/v1/mine/search*', answer)
    own.page.route('**/v1/mine/outline/*', answer)


@pytest.mark.parametrize('is_of_web', [True, False])
def test_hits_and_documents_link_to_their_source(mine, is_of_web):
    address = 'https://docs.example.org/a.md#b' if is_of_web else 'javascript:window.hacked=1'
    give_address(mine, address)
    page = mine.open(ASKED, '.hit')
    link = page.get_by_role('link', name='Source of Lettuce without slugs')
    assert link.count() == int(is_of_web)
    page.get_by_role('link', name='Lettuce without slugs', exact=True).click()
    page.wait_for_selector('.part')
    assert link.count() == int(is_of_web)
    if is_of_web:
        assert link.get_attribute('href') == address


def test_the_address_of_a_file_is_copied(opened, served_collection):
    permissions = ['clipboard-read', 'clipboard-write']
    own = opened(address=served_collection, bypass_csp=True, permissions=permissions)
    give_address(own, 'file:///srv/docs/a.md')
    page = own.open(ASKED, '.hit')
    page.get_by_role('button', name='Copy source address: Lettuce without slugs').focus()
    page.keyboard.press('Enter')
    page.get_by_text('Copied', exact=True).wait_for()
    assert page.evaluate('navigator.clipboard.readText()') == 'file:///srv/docs/a.md'


def test_a_hit_says_why_it_is_there(mine):
    page = mine.open(ASKED, '.hit')
    control = page.get_by_role('button', name='Why here? Lettuce without slugs')
    control.focus()
    page.keyboard.press('Enter')
    page.wait_for_selector('.reasons .words-found')
    assert control.get_attribute('aria-expanded') == 'true'
    panel = page.locator('.reasons:visible')
    sentence = panel.locator('.lead a').inner_text().strip('“”')
    assert sentence == 'A copper band around the bed keeps slugs off the lettuce.'
    words = set(panel.locator('.words-found mark').all_inner_texts())
    assert {'slugs', 'lettuce'} <= words <= {'keep', 'slugs', 'off', 'lettuce'}
    assert panel.locator('table').count() == 0, 'figures are for the laboratory'
    assert all('/explain?' not in url or 'model=' not in url for url in mine.asked)
    page.keyboard.press('Enter')
    assert not panel.is_visible()
    page.keyboard.press('Enter')
    page.get_by_role('link', name=sentence).click()
    page.wait_for_selector('.in-passage')
    assert 'at=951-1008' in page.url


def test_the_laboratory_shows_what_ranked(mine):
    page = mine.open(f'{ASKED}&view=search', '.steps')
    hit = page.locator('.hit').first
    hit.get_by_role('button', name='Why here?').click()
    page.wait_for_selector('.why .lead a')
    assert [tab.inner_text() for tab in hit.get_by_role('tab').all()] == ['Words rankings']
    hit.get_by_role('button', name='Other models').click()
    assert hit.get_by_role('tab').count() == 2
    page.keyboard.press('Enter')
    page.wait_for_selector('.why .lead:has-text("monobert-demo")')
    mine.open(f'{ASKED}&view=search&system=bm25&rerank=monobert-demo%403', '.steps')
    hit.get_by_role('button', name='Why here?').click()
    page.wait_for_selector('.why caption')
    assert hit.get_by_role('tab').count() == 2
    assert page.locator('.why .lead a').count() == 0, 'BM25 has no nearest sentence'


def test_nothing_answers(mine):
    def answer(route):
        found = route.fetch().json()
        found['confidence'] = {'found': 'nothing', 'answered': 0.04, 'source': 'learned'}
        for hit in found['candidates']:
            hit['probability'] = 0.04
        route.fulfill(json=found)

    mine.page.route('**/v1/mine/search*', answer)
    page = mine.open(ASKED, '.nearest')
    assert 'Nothing here seems to answer this' in page.locator('.message').inner_text()
    assert not page.locator('.hit').first.is_visible()
    page.get_by_text('The nearest 3 hits').click()
    assert page.locator('.likely').first.inner_text() == '4 % likely'


def test_confidence_that_is_gone_is_said(mine):
    """The collection had learned when nothing answers, for another search than this one."""

    def about(route):
        values = route.fetch().json()
        for index in values['indexes']:
            index['lost_confidence'] = 'confidence was learned for another search'
        route.fulfill(json=values)

    mine.page.route('**/v1/indexes', about)
    page = mine.open(ASKED, '.hit')
    said = page.locator('.found .note').first.inner_text()
    assert said.endswith('is not told any more: confidence was learned for another search.')


@pytest.mark.parametrize(('width', 'scheme'), [(1280, 'light'), (1280, 'dark'), (360, 'light')])
def test_anybody_can_read_it(opened, served_collection, width, scheme):
    settings = {'bypass_csp': True, 'reduced_motion': 'reduce'}
    own = opened(width, scheme, address=served_collection, **settings)
    give_address(own, 'https://docs.example.org/slugs.md')
    for address, wait in (
        ('', '.start'),
        (f'{ASKED}&f.type=guide', '.hit'),
        ('?q=slugs&doc=guide%2Fslugs', '.part'),
    ):
        page = own.open(address, wait)
        if wait == '.hit':
            page.get_by_role('button', name='Why here?').first.click()
            page.wait_for_selector('.reasons .words-found')
        assert violations(page) == []
        assert page.evaluate('document.documentElement.scrollWidth') <= width


PROSE = """async () => {
  const { proseElements, snippetNodes } = await import('/js/prose.js');
  const snippet = document.createElement('p');
  snippet.append(...snippetNodes([{ text: '- one\\ngoes on\\n- two\\n\\n>>> x', match: false }]));
  const program = document.createElement('p');
  program.append(...snippetNodes([{ text: '# a comment', match: false }], { isCode: true }));
  const text = 'Words:\\n\\nx = 1\\n\\n  y = 2\\n\\nMore.';
  const elements = proseElements(text, { code: [{ start: 8, end: 22 }] });
  const blocks = elements.map((own) => [own.tagName, own.textContent]);
  return [snippet.textContent, program.textContent, blocks];
}"""


LINES = """async () => {
  const { proseElements } = await import('/js/prose.js');
  const flowing = 'A line of a text that a mail program broke\\n'
    + 'where it was full, at seventy or so characters, as such programs do.\\nEnd.';
  const textOf = (text) => proseElements(text, {}).map((own) => own.textContent).join('|');
  return [textOf(flowing), textOf('Ring a ring\\no’ roses')];
}"""


def test_lines_that_were_full_flow_on_and_verse_stays(mine):
    flowing, verse = mine.open(ASKED, '.hit').evaluate(LINES)
    assert flowing.count('\n') == 0
    assert flowing.startswith('A line of a text that a mail program broke where it was full')
    assert verse == 'Ring a ring\no’ roses'


def test_a_document_keeps_title_file_and_question_in_sight(mine):
    page = mine.open(ASKED, '.hit')
    page.get_by_role('link', name='Lettuce without slugs', exact=True).click()
    page.wait_for_selector('.in-passage')
    page.evaluate('window.scrollTo(0, document.body.scrollHeight)')
    for selector in ('#q', '.back', '.name-of-document'):
        assert is_in_view(page, selector), selector
    assert page.locator('#q').input_value() == 'keep slugs off lettuce'
    count = page.locator('.matches .note').inner_text()
    previous = page.get_by_role('button', name='Previous match')
    following = page.get_by_role('button', name='Next match')
    for _ in range(int(count.split()[-1]) - 1):
        page.keyboard.press('n')
    page.wait_for_function('document.querySelectorAll(".matches button:disabled").length === 1')
    assert following.is_disabled() or previous.is_disabled()


SECTIONED = '# Shed\n\n' + ''.join(
    f'## {name}\n\n{text}\n\n'
    + 'The shed is locked in the evening, and opened at seven. ' * 30
    + '\n\n'
    for name, text in {
        'Tools': 'A spade.',
        'Slugs': 'A copper band stops slugs. ' * 12,
        'Seeds': 'Peas and beans.',
    }.items()
)


@pytest.fixture
def shed(opened, tmp_path):
    """The reader's page of a document of three long sections, and a short one."""
    rows = 'client,place\nMrs Sahli,Nidau\nMr Lo,Brugg\n'
    files = {'shed.md': SECTIONED, 'keys.md': SHORT, 'tape.eml': MAIL, 'visits.csv': rows}
    write_files(tmp_path / 'docs', files)
    made = ('--corpus', 'docs', '--encoder', 'repbert-demo')
    command('index', 'sync', '--index', 'mine', *made, folder=tmp_path)
    with run_service(tmp_path, '--index', 'mine') as address:
        yield opened(address=address, bypass_csp=True)


def test_an_opened_row_says_which_it_is_and_what_its_title_is(shed):
    """The text of a row leaves out the column that is its title."""
    page = shed.open('?doc=visits.csv%232', '.reading .head-fields')
    assert page.locator('.head-fields').inner_text().split('\n') == ['client', 'Mr Lo']
    assert page.locator('.name-of-document').inner_text().endswith('visits.csv › line 3')


def test_a_document_opens_at_the_section_of_its_hit_and_its_contents_say_so(shed):
    """It opened at the passage, and the contents marked no heading."""
    page = shed.open('?q=copper+against+slugs', '.hit')
    assert page.locator('.hit .crumbs').first.inner_text() == 'shed.md › Slugs'
    assert page.locator('.hit .snippet').first.inner_text().startswith('A copper band')
    page.get_by_role('link', name='Shed').click()
    page.wait_for_selector('.outline [aria-current]')
    current = page.locator('.outline [aria-current]')
    assert current.inner_text() == 'Slugs'
    assert is_in_view(page, '.heading:has-text("Slugs")')
    told = page.locator('.matches .note').inner_text()
    number, total = told.removeprefix('Match ').split(' of ')
    assert 1 <= int(number) <= int(total)
    page.evaluate('window.scrollTo(0, 0)')
    page.wait_for_function('document.querySelector(".outline [aria-current]").innerText == "Tools"')
    page.get_by_role('button', name='Seeds').click()
    page.wait_for_function('document.querySelector(".outline [aria-current]").innerText == "Seeds"')
    assert current.count() == 1


def test_a_filter_that_leaves_nothing_is_taken_away_by_one_control(mine):
    page = mine.open(f'{ASKED}&filter=type%3Anowhere', '.message')
    assert 'No document that the filter lets through' in page.locator('.message').inner_text()
    page.get_by_role('button', name='Search without the filter').click()
    page.wait_for_selector('.hit')
    assert 'filter=' not in page.url


def test_the_menu_closes_when_one_clicks_elsewhere(mine):
    page = mine.open(ASKED, '.hit')
    for leave in (
        lambda: page.locator('.hit p').first.click(),
        lambda: page.keyboard.press('Escape'),
    ):
        page.get_by_text('More', exact=True).click()
        assert page.get_by_role('link', name='Laboratory').is_visible()
        leave()
        page.get_by_role('link', name='Laboratory').wait_for(state='hidden')


def test_the_start_offers_what_was_asked_last(mine):
    mine.open(ASKED, '.hit')
    page = mine.open('', '.start')
    page.get_by_role('button', name='keep slugs off lettuce').click()
    page.wait_for_selector('.hit')


TITLES = """async () => {
  const { hitElements } = await import('/js/reader_hits.js');
  const hit = (title, file, doc) => ({
    title, docid: file, doc, display: [{ text: doc, match: false }],
    passage: { file, start: 0, end: 3, headings: [] },
  });
  const candidates = [
    hit('November', 'diary/2023.md', 'a'), hit('Recipes', 'x/one.md', 'b'),
    { ...hit('Recipes', 'y/two.md', 'c'), also_in: ['copy/two.md'] },
    hit('Market day', 'm.md', 'd'), hit('Cats', 'cats.md', 'e'),
    { ...hit('', 't.csv', 'code: LI\\nname: Liechtenstein\\nDial: 423'), docid: 't.csv#2' },
    hit('Lease', 'lease.pdf', 'f'), hit('Manual', 'manual.pdf', 'g'),
  ];
  Object.assign(candidates.at(-2).passage, { anchor: 'page=2', last_page: 3 });
  Object.assign(candidates.at(-1).passage, { anchor: 'page=2', last_page: null });
  const page = { about: { name: 'mine' }, state: { chosen: [] }, onopen: () => {}, onmore: null };
  const place = document.createElement('div');
  place.append(...hitElements({ candidates, query: {} }, page).flat().filter(Boolean));
  const text = (own, selector) => own.querySelector(selector).textContent;
  return [...place.querySelectorAll('.hit')].map((own) => [text(own, 'h2'), text(own, '.crumbs')]);
}"""


TERMS = """async () => {
  const { termsIn } = await import('/js/filters.js');
  const about = { fields: { type: ['text'], from: ['text'], modified: ['date'], time: ['text'] } };
  const texts = ['seed type:mail from:"Ada B" order', 'modified:[2020 TO *] beds', 'type:mail x',
    'Re: type: unknown', 'std::vector', 'type::mail', 'time 10:30', 'https://type:80/x',
    'constructor:x', 'author:ada', 'subtype:mail', 'type:', 'a "type:mail"'];
  return texts.map((text) => termsIn(text, text.endsWith(' x') ? 'type:mail' : '', about));
}"""


def test_what_is_written_as_a_filter_is_offered_as_one(mine):
    """It was searched as words without a line about it."""
    page = mine.open('?q=keep+slugs+off+type:guide', '.filter-hint')
    assert 'type:guide was searched as words' in page.locator('.filter-hint').inner_text()
    page.get_by_role('button', name='Use it as a filter').click()
    page.wait_for_selector('.filter-chips')
    assert 'q=keep+slugs+off&filter=type%3Aguide' in page.url
    assert page.locator('.filter-hint').count() == 0
    asks, ranges, *others = page.evaluate(TERMS)
    assert (asks, ranges) == (['type:mail', 'from:"Ada B"'], ['modified:[2020 TO *]'])
    # Times, addresses and program code stay words, and so does what is a filter already.
    assert others == [[]] * 11


HINTS = """async () => {
  const { filterHint } = await import('/js/facets.js');
  const dated = { fields: { type: ['text'], modified: ['date'] } };
  const own = { fields: { year: ['number'], modified: ['date'] } };
  const state = { filter: '', chosen: [['year', '2024']] };
  const use = (q, about) => {
    let change = null;
    const hint = filterHint({ ...state, q }, about, (next) => { change = next; });
    hint?.querySelector('button').click();
    return change;
  };
  return [use('type:mail', dated), use('year:2025 beds year:2024', dated), use('year:25 x', dated),
    use('year:2025 x', { fields: { type: ['text'] } }), use('year:2025 x', own)];
}"""


def test_a_filter_leaves_the_question_and_a_year_is_one_where_documents_have_dates(mine):
    """The only word of a question stayed in the box, and `year:2025` was words."""
    alone, year, short, undated, own = mine.open(ASKED, '.hit').evaluate(HINTS)
    assert alone == {'q': '', 'filter': 'type:mail', 'chosen': [['year', '2024']]}
    assert year == {'q': 'beds', 'filter': '', 'chosen': [['year', '2024'], ['year', '2025']]}
    assert short is None and undated is None
    assert (own['filter'], own['chosen']) == ('year:2025', [['year', '2024']])
    page = mine.open('?q=type:guide', '.filter-hint')
    page.get_by_role('button', name='Use it as a filter').click()
    page.wait_for_selector('.start')
    assert page.locator('#q').input_value() == ''
    page.locator('#q').fill('slugs')
    page.keyboard.press('Enter')
    page.wait_for_selector('.hit')
    assert 'q=slugs&filter=type%3Aguide' in page.url


COUNTED = """async () => {
  const { facets, valuesOf } = await import('/js/facets.js');
  const mail = (from, date) => ({ docid: from, fields: { type: 'mail', from, date } });
  const note = (date) => ({ docid: date, fields: { type: 'note', date } });
  const hits = [mail('Ada B <ada@example.org>', '2025-07'), mail('bo@example.org', '2025'),
    note('2024-07-01'), note('2025-01-02'), note('2025-01-03')];
  const about = { fields: { from: ['text'] } };
  const box = (areShown) => facets({ about, values: valuesOf(hits), nHits: 5, areShown, chosen: [],
    onchange() {} });
  const from = [...box(true).querySelectorAll('fieldset')].at(-1);
  const years = box(true).textContent.match(/20254/) !== null;
  return [...[true, false].map((areShown) => box(areShown).querySelector('.note').textContent),
    from.textContent, years];
}"""


def test_numbers_of_filters_say_what_they_count_and_mails_have_their_senders(mine):
    shown, before, senders, has_year = mine.open(ASKED, '.hit').evaluate(COUNTED)
    assert shown == 'A number says how many of these 5 hits have the value.'
    assert before == (
        'A number says how many of the first 5 hits had the value before you chose a filter.'
    )
    assert senders == 'fromAda B1bo@example.org1'
    assert has_year


def test_titles_that_say_nothing_have_their_file_and_copies_are_one_hit(mine):
    assert mine.open(ASKED, '.hit').evaluate(TITLES) == [
        ['November (2023.md)', 'diary/2023.md'],
        ['Recipes (one.md)', 'x/one.md'],
        ['Recipes (two.md)', 'y/two.md; the same in copy/two.md'],
        ['Market day', 'm.md'],
        ['Cats', 'cats.md'],
        ['Liechtenstein (t.csv)', 't.csv'],
        ['Lease', 'lease.pdf › pages 2–3'],
        ['Manual', 'manual.pdf › page 2'],
    ]


def test_items_go_on_and_code_stays_as_it_is(mine):
    snippet, program, blocks = mine.open(ASKED, '.hit').evaluate(PROSE)
    assert snippet == 'one goes on · two >>> x'
    assert program == '# a comment'
    assert blocks == [['P', 'Words:'], ['PRE', 'x = 1\n\n  y = 2'], ['P', 'More.']]
