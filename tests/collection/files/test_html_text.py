"""What is read of a page: blocks, lists, tables and code, headings, and lines of the file."""

import time
from pathlib import Path

import pytest
from folders import write_files
from hypothesis import given, strategies as st

from pyserini_repbert.collection.files.html_documents import document_of_html
from pyserini_repbert.data.file_selection import FileSelection
from pyserini_repbert.data.markup import visible_text
from pyserini_repbert.names.corpora import open_corpus

PAGE = Path(__file__).with_name('dialects.html').read_text(encoding='utf-8')
READ = """\
- Home
- Next

Beans

They climb, and H2O.

Where to sow

text in no block

def f():
    return 1

1. one

more
2. two
  - nested

a\tb
1\t2 three

Deep

line one
line two

first

term

definition

Made by us"""


def test_blocks_are_lines_and_code_stays():
    """A page was one line, its code too."""
    document = document_of_html('d', PAGE)
    assert (document.title, document.text) == ('Beans — Garden', READ)
    assert ' '.join(READ.split()) == ' '.join(document.text.split())


def test_headings_have_anchors_and_lines():
    document = document_of_html('d', PAGE)
    origin = document.origin
    assert [(own.level, own.title, own.anchor) for own in origin.headings] == [
        (1, 'Beans', 'beans'),
        (2, 'Where to sow', 'sow'),
        (3, 'Deep', 'deep'),
    ]
    lines = PAGE.split('\n')
    for word in ('Home', 'climb', 'Where', 'text in', 'def', 'return', 'three', 'Deep', 'line two'):
        line = origin.line_at(document.text, document.text.index(word))
        # The last cell of a row may stand on the next line.
        assert word.split()[-1] in '\n'.join(lines[line - 1 : line + 1])
    path = origin.headings_at(document.text.index('line one'))
    assert [heading.title for heading in path] == ['Beans', 'Where to sow', 'Deep']


@pytest.mark.parametrize(
    ('markup', 'anchor'),
    [
        ('<h2 id=a>x</h2>', 'a'),
        ('<h2><a name=a>x</a></h2>', 'a'),
        ('<h2><span id=a></span>x</h2>', 'a'),
        ('<a id=a></a>\n<h2>x</h2>', 'a'),
        ('<div id=a><h2>x</h2></div>', 'a'),
        ('<section id=a><span id=b></span><h2>x</h2></section>', 'b'),
        ('<div id=a><p>y</p><h2>x</h2></div>', ''),
        ('<a name=a>y</a><h2>x</h2>', ''),
        ('<h2>x</h2>', ''),
    ],
)
def test_anchors(markup, anchor):
    (heading,) = document_of_html('d', f'<title>t</title><p>z</p>{markup}').origin.headings
    assert (heading.title, heading.anchor) == ('x', anchor)


@pytest.mark.parametrize(
    ('markup', 'title', 'text'),
    [
        ('<title>A</title><h1>A</h1><p>x', 'A', 'x'),
        ('<title>A</title><h1>B</h1><p>x', 'A', 'B\n\nx'),
        ('<h1>B</h1><p>x', 'B', 'x'),
        ('<p>x<h1>B</h1>', 'B', 'x\n\nB'),
        ('<p>x', '', 'x'),
        ('<h2><div>a</div><div>b</div></h2>c', 'a b', 'c'),
        ('<pre>a\n  b<br>c<pre>d</pre></pre>e', '', 'a\n  b\nc\nd\n\ne'),
        ('<table><tr><td><h1>A</h1><td><ul><li>b</ul></table>', 'A', '- b'),
        ('<li>a<p>b', '', '- a\n\nb'),
        ('<ol start=3><li>a<li>b</ol><ol start=x><li>c</ol>', '', '3. a\n4. b\n\n1. c'),
        ('<textarea><p>a</textarea>', '', '<p>a'),
        ('\ue000<p>\ue001 5\ue002</p>', '', '\ue000\n\n\ue001 5\ue002'),
        ('<a href="#x">[1]</a> <a href="#y">↑</a><p>a&shy;b', '', '[1]\n\nab'),
    ],
)
def test_titles_and_texts(markup, title, text):
    document = document_of_html('d', markup)
    assert (document.title, document.text) == (title, text)


TAGS = 'p div h1 h2 li ul ol table tr td pre br b a title section textarea'.split()
PARTS = [*(f'<{tag}>' for tag in TAGS), *(f'</{tag}>' for tag in TAGS), 'a', ' ', '\n', '&lt;', '<']


@given(st.lists(st.sampled_from(PARTS), max_size=40))
def test_words_are_those_of_the_page_and_offsets_are_exact(parts):
    markup = ''.join(parts)
    document = document_of_html('d', markup)
    for heading in document.origin.headings:
        assert document.text[heading.start :].startswith(heading.title)
    for start, line in document.origin.lines:
        assert 1 <= line <= 1 + markup.count('\n')
        assert start == 0 or document.text[start - 1] == '\n'
    # Nobody sees a script, which ends as a title does.
    letters = visible_text(markup.replace('title', 'script')).count('a')
    assert (document.title + document.text).count('a') >= letters


@pytest.mark.parametrize(
    'part', ['<div>', '<ul><li>', '<pre>', '<table><tr><td>', '<h1><p>', '<b>']
)
def test_nested_tags_take_time_linear_in_their_number(part):
    begun = time.process_time()
    document = document_of_html('d', f'<h1>A</h1>{part * 20_000}x')
    assert time.process_time() - begun < 8
    assert 'x' in document.text


def test_a_long_page_keeps_its_code_and_headings():
    """Beyond 10,000 tags, elements were read as if they were line breaks."""
    section = '<h2 id="a">A</h2><p>b <i>c</i></p><pre>d\n  e</pre>\n'
    document = document_of_html('d', f'<title>t</title>{section * 2_000}')
    assert document.text.startswith('A\n\nb c\n\nd\n  e\n\nA\n')
    assert len(document.origin.headings) == 2_000
    last = document.origin.headings[-1]
    # The last line of the code is on a line of its own.
    assert document.origin.line_at(document.text, last.start) == 3_999


def test_a_tag_within_an_attribute_changes_nothing():
    markup = '<p>a</p>\n<p title="<p>">b<br/>\n</p>\n<p/class=x>c</p>'
    document = document_of_html('d', markup)
    assert document.text == 'a\n\nb\n\nc'
    lines = [document.origin.line_at(document.text, place) for place in (0, 3, 6)]
    assert lines == [1, 2, 4]


def test_pages_know_their_file(tmp_path):
    write_files(tmp_path, {'a/b.html': '<p>x', 'c.html': '<p>y'})
    for options in ({}, {'fmt': 'html'}):
        documents = list(open_corpus(tmp_path, **options).documents())
        assert [document.origin.file for document in documents] == ['a/b.html', 'c.html']
    (document,) = open_corpus(tmp_path / 'c.html').documents()
    assert document.origin.file == 'c.html'


@pytest.mark.parametrize(
    ('markup', 'text'),
    [
        ('<header>a</header><nav>b</nav><p>c<footer>d</footer>', 'c'),
        ('<nav>a</nav><div>b</div><main><header>c</header><p>d</main>', 'c\n\nd'),
        ('<div role=banner>a</div><div role=main>b</div>c', 'b'),
        ('<div>a</div><article>b</article>', 'b'),
        ('<div>a</div><article>b</article><article>c</article>', 'a\n\nb\n\nc'),
        ('<nav>a</nav>', 'a'),
        ('<form>a</form>', 'a'),
    ],
)
def test_main_content(markup, text):
    assert document_of_html('d', markup, main_content=True).text == text


def test_main_content_of_a_folder_and_of_a_page(tmp_path):
    write_files(tmp_path, {'a.html': '<nav>x</nav><p>y', 'b.md': 'z'})
    selection = FileSelection(main_content=True)
    for corpus in (tmp_path, tmp_path / 'a.html'):
        document = next(open_corpus(corpus, selection=selection).documents())
        assert (document.docid, document.text) == ('a', 'y')


def test_a_page_with_all_private_characters_of_two_bytes_is_read():
    private = ''.join(map(chr, range(0xE000, 0xF900)))
    page = document_of_html('d', f'<p>{private}</p><p>words</p>')
    assert private[:9] in page.text and page.text.endswith('words')


@pytest.mark.parametrize(
    ('markup', 'text'),
    [
        ('<p>x <img src="a.png" alt="A  cat"> y', 'x A cat y'),
        ('<p>x<a href="b.html"><span><img alt="Next" src="n.png"></span></a>', 'x'),
        ('<p><a href="big.PNG?w=3"><img alt="A cat" src="n.png"></a>', 'A cat'),
        ('<figure><img alt="A cat"><figcaption>A cat.</figcaption></figure>', 'A cat.'),
        ('<p>x<img alt="a.png"><img alt=""><img>', 'x'),
        ('<table><tr><td><img alt="A cat"><td>b</table>', 'A cat\tb'),
        ('<table><tr><td><td>A<tr><td>b<td>c<td></table>', '\tA\nb\tc'),
        ('<pre>a\n<img alt="x\ny">b</pre>', 'a\n x y b'),
    ],
)
def test_pictures_and_cells(markup, text):
    assert document_of_html('d', markup).text == text


def test_what_is_empty_in_xml_ends():
    """Behind '<script/>' of XHTML, nothing was read."""
    markup = '<?xml version="1.0"?>\n<html><head><title/><script src="a.js"/></head><body><p>x</p>'
    assert document_of_html('d', markup).text == 'x'
    assert visible_text(markup) == 'x'
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><iframe src="a" /><p>y</p><textarea/>z'
    assert document_of_html('d', page).text == 'y\n\nz'
    # To a browser, a page of HTML has a script there.
    assert document_of_html('d', '<p>x<script/>y</script>z').text == 'xz'


@pytest.mark.parametrize(
    'unseen',
    [
        '<p hidden>x</p>',
        '<p style="display:none">x</p>',
        '<div style="color: red; DISPLAY : none !important">x</div>',
        '<span style="visibility: hidden">x</span>',
        '<dialog>x</dialog>',
        '<template><p>x</p></template>',
        '<math><mi>seen</mi><annotation encoding="application/x-tex">x</annotation></math>',
    ],
)
def test_what_a_browser_does_not_show(unseen):
    text = document_of_html('d', f'<p>Seen.</p>{unseen}<p>Seen, too.</p>').text
    assert text.replace('seen\n\n', '') == 'Seen.\n\nSeen, too.'


@pytest.mark.parametrize(
    'seen',
    [
        '<p style="background-image: none">x</p>',
        '<p style="overflow:hidden">x</p>',
        '<p hidden="until-found">x</p>',
        '<dialog open>x</dialog>',
        '<p aria-hidden="true">x</p>',
        '<details><summary>x</summary></details>',
    ],
)
def test_what_a_browser_shows(seen):
    assert document_of_html('d', f'<p>Seen.</p>{seen}').text == 'Seen.\n\nx'


def test_a_formula_is_there_once():
    katex = (
        '<span class="katex"><span class="katex-mathml"><math><mi>E</mi><mo>=</mo><mi>m</mi>'
        '<annotation>E=m</annotation></math></span>'
        '<span class="katex-html" aria-hidden="true"><span>E</span><span>=m</span></span></span>'
    )
    assert document_of_html('d', f'<p>So {katex} holds.</p>').text == 'So E=m holds.'


def test_changes_stand_in_their_line():
    page = '<p>Price <del>ten</del><ins>eight</ins> euros, <ins>un</ins>done.</p>'
    assert document_of_html('d', page).text == 'Price ten eight euros, undone.'


@pytest.mark.parametrize(
    'sign',
    [
        '<sup><a href="#fn1">1</a></sup>',
        '<a href="#fn1"><sup>[12]</sup></a>',
        '<sup class="reference"><a href="#c"><span>[</span>3<span>]</span></a></sup>',
        '<a epub:type="noteref" href="notes.xhtml#n2">2</a>',
        '<a role="doc-noteref" href="notes.html#n2"><sup>*</sup></a>',
        '<sup><a href="#fna">a</a></sup>',
    ],
)
def test_signs_of_notes_are_no_text(sign):
    """Of 'quince1', a search for quince found nothing."""
    text = document_of_html('d', f'<p>The quince{sign} of 3 m<sup>2</sup>.</p>').text
    assert text == 'The quince of 3 m2.'


@pytest.mark.parametrize('link', ['<a href="#ports">see ports</a>', '<a href="#x">12</a>'])
def test_links_within_a_page_are_text(link):
    words = 'see ports' if 'ports' in link else '12'
    assert document_of_html('d', f'<p>At {link}.</p>').text == f'At {words}.'


@pytest.mark.parametrize(
    'attribute', [' a{}=""', ' a{}', '/a{}', " a{}='>'", ' a{}=x', ' a<{}', '\na{} = "y"']
)
def test_a_tag_of_many_attributes(attribute):
    """100,000 took 23 seconds: the parser compares each with all others."""
    tag = '<p' + ''.join(attribute.format(number) for number in range(100_000)) + '>'
    begun = time.process_time()
    assert document_of_html('d', f'{tag}Beans.</p><p class="a">Peas.').text == 'Beans.\n\nPeas.'
    assert time.process_time() - begun < 5
