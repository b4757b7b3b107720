"""Folders of Markdown and text: a file is a document."""

import gzip
import json

import pytest
from folders import write_files

from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.passages import Passage
from pyserini_repbert.errors import InputError
from pyserini_repbert.names.corpora import open_corpus


def test_a_file_is_a_document_and_its_path_the_docid(tmp_path):
    folder = write_files(
        tmp_path / 'docs',
        {
            'b.md': '# Title\n\nOne\ttab.\n',
            'a/my 100% notes.md': '\ufeffTwo.',
            'c.txt': 'Three words here.\nMore.',
            'left.out': 'No.',
        },
    )
    assert list(open_corpus(folder, 'text')) == [
        Passage('a/my%20100%25%20notes.md', 'Two.'),
        Passage('b.md', '# Title\n\nOne\ttab.'),
        Passage('c.txt', 'Three words here.\nMore.'),
    ]


@pytest.mark.parametrize(
    ('contents', 'docids'),
    [
        ({'a.md': 'x'}, ['a.md']),
        ({'a.txt': 'Prose in a line.\n\tAnd more.'}, ['a.txt']),
        ({'a.txt': 'd1\ttext\n'}, ['d1']),
        ({'a.txt': 'A title\twith a tab\nd1\ttext\n'}, ['a.txt']),
        ({'a.txt': 'A\ttitle with a tab\nProse.\nMore.'}, ['a.txt']),
        ({'a.txt': '<DOC>\n<DOCNO>d1</DOCNO>\nx\n</DOC>\n'}, ['d1']),
        ({'a.txt': '{"id": "d1", "contents": "x"}\n'}, ['d1']),
        ({'a.md': 'x', '.hidden/b.md': 'x', '._c.md': 'x', 'd.txt': 'x'}, ['a.md', 'd.txt']),
        ({'a.md': 'x', 'archive.bz2': b'BZh9'}, ['a.md']),
        ({'a.md': 'x', '.obsidian/app.json': '{}', '.vscode/x.tsv': 'a\tb'}, ['a.md']),
        ({'a.html': 'x', '.vscode/settings.json': '{}'}, ['a']),
        ({'.hidden/a.jsonl': '{"id": "d1", "contents": "x"}'}, ['d1']),
        ({'a.html': '<p>x</p>', 'README.md': 'About.', 'readme.txt': 'About.'}, ['a']),
        ({'a.jsonl': '{"id": "d1", "contents": "x"}\n', 'README.md': 'About.'}, ['d1']),
    ],
)
def test_the_format_is_told_by_the_files(tmp_path, contents, docids):
    assert [passage.docid for passage in open_corpus(write_files(tmp_path, contents))] == docids


@pytest.mark.parametrize(
    ('contents', 'docids'),
    [
        ({'a.html': 'x', 'b.htm': 'x', 'c.HTML': 'x', 'd.Htm': 'x'}, ['a', 'b', 'c', 'd']),
        ({'a.html': 'x', 'a.htm': 'y'}, ['a.htm', 'a']),
        (
            {'B.MD': 'x', 'NOTES.TXT': 'x', 'a.md': 'x', 'd.mkd': 'x', 'e.text': 'x'},
            ['B.MD', 'NOTES.TXT', 'a.md', 'd.mkd', 'e.text'],
        ),
        ({'a.mdown': 'x', 'b.MarkDown': 'x', 'c.mkdn': 'x'}, ['a.mdown', 'b.MarkDown', 'c.mkdn']),
        ({'A.JSONL': '{"id": "d1", "contents": "x"}'}, ['d1']),
        ({'A.TREC': '<DOC>\n<DOCNO>d1</DOCNO>\nx\n</DOC>\n'}, ['d1']),
        ({'A.TSV': 'd1\tx\n'}, ['d1']),
        ({'a.MD.gz': gzip.compress(b'x')}, ['a.MD.gz']),
    ],
)
def test_suffixes_count_in_any_case(tmp_path, contents, docids):
    assert [passage.docid for passage in open_corpus(write_files(tmp_path, contents))] == docids


@pytest.mark.parametrize('name', ['page.html', 'page.HTM'])
def test_one_page_is_a_corpus(tmp_path, name):
    write_files(tmp_path, {name: '<title>T</title><p>x'})
    assert list(open_corpus(tmp_path / name)) == [Passage('page', 'T x')]


def test_one_file_is_named_as_it_is(tmp_path):
    write_files(tmp_path, {'notes.md': 'x'})
    assert list(open_corpus(tmp_path / 'notes.md')) == [Passage('notes.md', 'x')]


def test_damaged_text_is_refused(tmp_path):
    write_files(tmp_path, {'a.md': 'Café, naïve'.encode() + b'\xff'})
    with pytest.raises(InputError, match=r'a\.md: damaged UTF-8 .*: fix the corpus'):
        list(open_corpus(tmp_path / 'a.md'))


@pytest.mark.parametrize('name', ['b.md', 'b.txt'])
def test_pages_and_text_are_one_corpus(tmp_path, name):
    """They were refused; before, the pages or the text were left out without a word."""
    folder = write_files(tmp_path, {'a.html': '<p>x</p>', name: 'x'})
    assert [passage.docid for passage in open_corpus(folder)] == ['a', name]
    for fmt, docid, unread in (('text', name, '1 .html'), ('html', 'a', f'1 {name[1:]}')):
        corpus = open_corpus(folder, fmt)
        assert [passage.docid for passage in corpus] == [docid]
        assert str(corpus.unread) == f'not read: {unread}'


def test_parts_of_a_folder_are_files(tmp_path):
    folder = write_files(tmp_path, {f'{number}.md': 'x' for number in range(5)})
    corpus = open_corpus(folder)
    assert corpus.count_hint() == 5
    assert [passage.docid for passage in corpus.part(0, 2)] == ['0.md', '2.md', '4.md']
    assert [passage.docid for passage in corpus.part(1, 2)] == ['1.md', '3.md']


def test_a_folder_without_a_corpus_says_what_was_expected(tmp_path):
    wanted = r'holds no corpus files \(\.md, .*\.htm, .*\); not read: 1 \.zip'
    with pytest.raises(InputError, match=wanted):
        open_corpus(write_files(tmp_path, {'a.zip': 'x'}))


@pytest.mark.parametrize(
    ('name', 'text', 'docid'),
    [
        ('z.jsonl', '{"id": "d", "text": "x"}\n', 'd'),
        ('z.json', '[{"id": "d", "text": "x"}]', 'z.json#d'),
        ('z.tsv', 'd\tx\n', 'd'),
        ('z/table.tsv', 'd\tx\n', 'd'),
        ('z.trec', '<DOC>\n<DOCNO>d</DOCNO>\nx\n</DOC>\n', 'd'),
    ],
)
def test_records_beside_markdown_and_pages_are_one_corpus(tmp_path, name, text, docid):
    (tmp_path / 'z').mkdir()
    folder = write_files(tmp_path, {'a.md': 'x', 'b.html': '<p>x</p>', name: text})
    assert [passage.docid for passage in open_corpus(folder)] == ['a.md', 'b', docid]


@pytest.mark.parametrize('name', ['a.json', 'a.jsonl'])
def test_a_json_array_is_a_list_of_records(tmp_path, name):
    write_files(tmp_path, {name: '[{"id": "d", "text": "x"}, {"text": "y", "title": "T"}]'})
    assert list(open_corpus(tmp_path / name).documents()) == [
        Document('d', 'x'),
        Document(f'{name}#2', 'y', 'T'),
    ]


def test_a_title_alone_is_no_text_where_others_are(tmp_path):
    """The body was not searched, without a word."""
    record = {'id': 'd', 'title': 'Slugs', 'body': 'They hide by day.'}
    path = write_files(tmp_path, {'a.jsonl': json.dumps(record)}) / 'a.jsonl'
    for read in (list, lambda corpus: list(corpus.documents())):
        with pytest.raises(InputError, match='name the fields'):
            read(open_corpus(path))
    assert list(open_corpus(path, fields=['body'])) == [Passage('d', 'They hide by day.')]
    for kept in ({'id': 'd', 'title': 'Slugs', 'year': 2020}, {**record, 'text': None}):
        path.write_text(json.dumps(kept), encoding='utf-8')
        assert list(open_corpus(path)) == [Passage('d', 'Slugs')]


TEXT = 'Die Gärten – „schön“'


@pytest.mark.parametrize(
    ('head', 'encoding'),
    [
        ('', 'utf-8'),
        ('', 'utf-8-sig'),
        ('', 'utf-16'),
        ('<meta charset="utf-8">', 'utf-8'),
        ('<meta charset="iso-8859-1">', 'utf-8'),  # what reads as UTF-8 is UTF-8
        ('<meta charset="windows-1252">', 'cp1252'),
        ('<meta charset=ISO-8859-1>', 'cp1252'),  # as browsers do
        ('<META http-equiv="Content-Type" content="text/html; charset=windows-1252">', 'cp1252'),
        ('<meta name=a><meta charset="gb18030">', 'gb18030'),
        ('', 'cp1252'),  # as browsers do
        ('<!-- <meta charset=koi8-r> --><meta title="a>b" charset=cp1252>', 'cp1252'),
        ('<script>"<meta charset=koi8-r>"</script><meta charset=x-cp1252>', 'cp1252'),
        ('<meta charset=nonsense><meta charset=windows-1252>', 'cp1252'),
        ('<meta name=x content="charset=koi8-r">', 'cp1252'),
    ],
)
def test_a_page_is_read_in_its_encoding(tmp_path, head, encoding):
    page = f'<html><head>{head}<title>{TEXT}</title></head><p>{TEXT}'
    write_files(tmp_path, {'a.html': page.encode(encoding)})
    (document,) = open_corpus(tmp_path).documents()
    assert (document.title, document.text) == (TEXT, TEXT)
    (passage,) = open_corpus(tmp_path)
    assert passage.text.split() == f'{TEXT} {TEXT}'.split()


@pytest.mark.parametrize('charset', ['rot13', 'undefined', 'none', 'idna', 'hex', 'x-user-defined'])
def test_a_charset_that_no_page_has_is_passed_over(tmp_path, charset):
    """Browsers read such a page as Windows-1252."""
    page = f'<meta charset={charset}><p>caf\xe9 au lait'.encode('latin-1')
    write_files(tmp_path, {'a.html': page})
    (document,) = open_corpus(tmp_path).documents()
    assert document.text == 'caf\xe9 au lait'
