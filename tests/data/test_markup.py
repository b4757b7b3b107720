"""The words of a page: what the HTML standard's parser makes of its markup."""

import time

import pytest
from hypothesis import given, strategies as st

from pyserini_repbert.data import markup as markup_module
from pyserini_repbert.data.markup import visible_text
from pyserini_repbert.data.page_encodings import decode_page
from pyserini_repbert.names.corpora import open_corpus

# The kinds of the HTML standard's tests of tokenisation and tree construction that decide about
# words: comments, raw text, attributes, character references, implied and misnested tags.
PAGES = [
    ('', ''),
    ('plain', 'plain'),
    ('a<!-- b -->c', 'ac'),
    ('<!-- <script> was removed --><p>garlic</p><script>x=1</script><p>End', 'garlic End'),
    ('a<!-->b', 'ab'),
    ('a<!--->b', 'ab'),
    ('a<!-- x -- y --!>b', 'ab'),
    ('a<!-- never closed <p>b', 'a'),
    ('<!DOCTYPE html><p>a', 'a'),
    ('a<!x>b<?php echo 1 ?>c', 'abc'),
    ('a<![CDATA[b]]>c', 'ac'),
    ('a</>b</ c>d', 'abd'),
    ('1 < 2 <3 m<n', '1 < 2 <3 m'),
    ('a<b', 'a'),
    ('<p title="a > b" data-x=\'>\'>c', 'c'),
    ('<p title=a>b>c', 'b>c'),
    ('<p/class=x>a', 'a'),
    ('<script>var a = "<p>b</p>";</script>c', 'c'),
    ('<script><!-- <script> </script> --></script>a', 'a'),
    ('<SCRIPT>x</Script >a', 'a'),
    ('a<script>never closed <p>b', 'a'),
    ('<style>p > a { color: red }</style>b', 'b'),
    ('<style-guide>Use <scripted>commas</scripted></style-guide>', 'Use commas'),
    ('<p>a<noscript>Turn it on</noscript><iframe>old</iframe>', 'a'),
    ('<template>{{ x }}</template>a', 'a'),
    ('<textarea>a<b>&amp;</textarea>c', 'a<b>& c'),
    ('<title>a<b>&lt;</title>c', 'a<b>< c'),
    ('<svg><title>a</title><text>b</text><style>c</style></svg>d', 'a b d'),
    ('<math><mi>x</mi></math>y', 'x y'),
    ('H<sub>2</sub>O, x<sup>2</sup>, <b>b</b>old<i>er</i>', 'H2O, x2, bolder'),
    ('<span>a</span><span>b</span><a href=x>c</a>', 'abc'),
    ('co&shy;op&#8203;er, su<wbr>per', 'cooper, super'),
    ('a<br>b<br/>c<hr>d', 'a b c d'),
    ('<p>a<p>b<div>c</div><b>d</b>', 'a b c d'),
    ('<ul><li>a<li>b</ul><dl><dt>c<dd>d</dl>', 'a b c d'),
    ('<table><tr><td>a<td>b<tr><th>c</table>', 'a b c'),
    ('<table><caption>a</caption>b<tr><td>c</table>', 'b a c'),
    ('<select><option>a<option>b</select><button>c</button>d', 'a b c d'),
    ('<b>a<p>b</b>c</p>', 'a bc'),
    ('<a>a<a>b</a>', 'ab'),
    ('<pre>a\n  b</pre>', 'a b'),
    ('a&nbsp;b\tc\n\nd', 'a b c d'),
    ('&amp;amp; &lt;p&gt; &eacute; &#233; &#xE9; &#x80;', '&amp; <p> é é é €'),
    ('&copy &notit; &noti; AT&T R&D &nosuch; &', '© ¬it; ¬i; AT&T R&D &nosuch; &'),
    ('&#0;&#xD800;&#99999999999999999999;', '\ufffd\ufffd\ufffd'),
    ('<body><frameset></frameset>a', 'a'),
    ('<frameset><frame><noframes><p>a</p>b</noframes></frameset>', 'a b'),
    ('<noframes>old</noframes>a', 'a'),
    ('<head>a</head>b', 'ab'),
    ('</p>a</br>b', 'a b'),
    ('<plaintext>a</plaintext>', 'a</plaintext>'),
    ('<image>a', 'a'),
]  # fmt: skip


@pytest.mark.parametrize(('page', 'text'), PAGES)
def test_the_words_of_a_page(page, text):
    assert visible_text(page) == text


@pytest.mark.jvm
def test_the_words_are_those_of_anserini():
    """Its HtmlCollection and TrecCollection index what Jsoup calls the text."""
    from pyserini_repbert.lucene.jvm import java_class

    jsoup = java_class('org.jsoup.Jsoup')
    # Jsoup takes contents of <noscript>, <iframe>, <noframes> and <template> for words, joins the
    # parts of forms and drawings, and joins a block with an element behind it.
    others = '<noscript> <noframes> <template> <select> <svg> <frameset> <hr> <textarea> <caption>'
    parts = (*others.split(), '<p>b<div>', '<!-- x -- y', '<head>a', '<![CDATA[', '&notit', '&#0')
    pages = [page for page, _ in PAGES if not any(part in page for part in parts)]
    assert len(pages) > 30
    differences = {}
    for page in pages:
        words = jsoup.parse(page).text().split()
        if visible_text(page).split() != words:
            differences[page] = words
    assert differences == {}


@pytest.mark.parametrize(
    ('markup', 'text'),
    [
        ('<TEXT><![CDATA[a <b> c]]></TEXT>', 'a <b> c'),
        ('a<![CDATA[b]]>c', 'abc'),
        ('<![CDATA[a\n< b]]> &lt; <![CDATA[&lt;]]>', 'a < b < &lt;'),
        ('<![CDATA[a <![CDATA[ b]]>', 'a <![CDATA[ b'),
        ('a ]]> b', 'a ]]> b'),
        ('<![CDATA[<script>]]>a', '<script>a'),
    ],
)
def test_cdata_is_text_in_sgml(markup, text):
    assert visible_text(markup, is_sgml=True) == text


def test_elements_of_sgml_separate_words():
    assert visible_text('<HL>a</HL><LP>b<F P=1>c</F></LP>', is_sgml=True) == 'a b c'
    assert visible_text('<TEXT>H<SUB>2</SUB>O AT&amp;T</TEXT>', is_sgml=True) == 'H2O AT&T'


NESTED = '<ul><li><a href="x>y"><x-y><b><p title=z>w'


def test_a_page_takes_time_linear_in_its_length():
    started = time.process_time()
    words = visible_text(NESTED * 5_000).split()
    assert words == ['w'] * 5_000
    assert time.process_time() - started < 5


def element(parts):
    """An element of a name with these contents."""
    name, contents = parts
    return f'<{name} title="a>b">{"".join(contents)}</{name}>'


# No element that ends another of its name: that one's own end tag would then end nothing.
NAMES = st.sampled_from(['p', 'b', 'div', 'ul', 'dl', 'x-y', 'i', 'span'])
UNSEEN = ['<!--x-->', '<script title="a>b"><p></script>', '<style><b></style>']
WORDS = st.sampled_from(['a', 'b1', '&amp;', ' ', '<br>', '<img alt="<p>">', *UNSEEN])
ELEMENTS = st.recursive(
    WORDS, lambda parts: st.tuples(NAMES, st.lists(parts, max_size=4)).map(element), max_leaves=12
)


@given(st.lists(ELEMENTS).map(''.join))
def test_a_page_of_many_tags_has_the_same_words(page):
    most = markup_module._MOST_TAGS
    expected = visible_text(page)
    try:
        markup_module._MOST_TAGS = 0
        assert visible_text(page) == expected
    finally:
        markup_module._MOST_TAGS = most


@given(st.text('<>/!-[]"\'= pbrtdscimx\n&#;é', max_size=60))
def test_text_around_any_markup_is_found(text):
    assert visible_text(f'before {text}').startswith('before')


def test_all_readers_have_the_same_words(tmp_path):
    page = (
        '<title>T</title><script>tracking</script><style>p{}</style><!-- <script> -->'
        '<p>H<sub>2</sub>O</p>'
    )
    (tmp_path / 'a.html').write_text(page, encoding='utf-8')
    corpus = open_corpus(tmp_path)
    assert [passage.text for passage in corpus] == ['T H2O']
    assert [(document.title, document.text) for document in corpus.documents()] == [('T', 'H2O')]


@pytest.mark.parametrize(
    ('label', 'codec', 'text'),
    [
        ('iso-2022-jp', 'iso2022_jp', '日本語の辞書'),
        ('csISO2022JP', 'iso2022_jp', '日本語'),
        ('iso-2022-kr', 'iso2022_kr', '한국어'),
        ('hz-gb-2312', 'hz', '中文'),
        ('x-sjis', 'cp932', '①日本'),
        ('euc-jp', 'euc_jp', '日本語'),
        ('ks_c_5601-1987', 'cp949', '한국똠'),
        ('gb2312', 'gb18030', '中文€'),
        ('big5', 'big5hkscs', '繁體'),
        ('latin1', 'cp1252', '“é”'),
        ('us-ascii', 'cp1252', '“é”'),
        ('cp1251', 'cp1251', 'Привет'),
        ('iso-8859-8-i', 'iso8859-8', 'שלום'),
        ('x-mac-cyrillic', 'mac-cyrillic', 'Да'),
        ('dos-874', 'cp874', 'ไทย'),
        ('unicode-1-1-utf-8', 'utf-8', 'é'),
    ],
)
def test_labels_are_those_of_the_encoding_standard(label, codec, text):
    raw = f'<meta charset="{label}"><title>{text}</title>'.encode(codec)
    assert visible_text(decode_page(raw)) == text
    header = f'text/html; charset={label}'
    assert decode_page(text.encode(codec), header) == text


def test_encodings_of_sixteen_bits():
    assert decode_page('\ufeffé'.encode('utf-16-be')) == 'é'
    assert decode_page('\ufeffa'.encode('utf-8'), 'text/html; charset=koi8-r') == 'a'
    assert decode_page('ab'.encode('utf-16-le'), 'text/html; charset=utf-16') == 'ab'
    # A page whose <meta> can be read is not in UTF-16.
    assert decode_page(b'<meta charset=utf-16>caf\xe9').endswith('caf\ufffd')


@pytest.mark.parametrize(
    ('label', 'codec', 'text'),
    [
        ('iso-8859-2', 'iso8859-2', 'Łódź'),
        ('ISO-2022-JP', 'iso2022_jp', '日本語'),
        ('x', 'cp1252', 'é'),
    ],
)
def test_an_xml_declaration_counts_where_no_meta_does(label, codec, text):
    """As "get an XML encoding" of the HTML standard, for pages of XHTML."""
    raw = f"<?xml version='1.0' encoding='{label}'?><p>{text}</p>".encode(codec)
    assert visible_text(decode_page(raw)) == text
    other = b'<meta charset=windows-1251><p>\xcf</p>'
    declaration = f'<?xml version="1.0" encoding="{label}"?>'.encode()
    assert visible_text(decode_page(declaration + other)) == 'П'


def test_a_declaration_of_utf_16_in_plain_bytes_is_of_utf_8():
    assert decode_page(b'<?xml version="1.0" encoding="utf-16"?>caf\xe9').endswith('caf\ufffd')
