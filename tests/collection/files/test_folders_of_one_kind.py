"""Folders of one kind of file: the docids and documents that they always had."""

import gzip

import pytest
from folders import write_files

from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.passages import Passage
from pyserini_repbert.names.corpora import open_corpus

MARKDOWN = {
    'b.md': '---\ntopic: garden\n---\n# Slugs\n\nThey hide by day.\n',
    'a/my notes.MD': 'No title here.\n',
    'a/more.markdown': '# More\n\nText.\n',
    'z.md.gz': gzip.compress(b'# Packed\n\nWords.\n'),
}
PAGES = {
    'index.html': '<title>Home</title><meta name=topic content=garden><p>Welcome.</p>',
    'sub/a.htm': '<p>One.</p>',
    'sub/a.html': '<p>Two.</p>',
    'my page.HTML': '<p>Three.</p>',
    'README.md': 'About these pages.',
}
RECORDS = {
    'a.jsonl': '{"id": "r2", "title": "T", "text": "x", "year": 9}\n{"id": 3, "contents": "y"}\n',
    'b.json': '{"_id": "r4", "contents": "z"}\n',
    'README.md': 'About these records.',
}
TABS = {'a.tsv': 'd1\tone\nd2\ttwo\tthree\n', 'b.tsv': 'd3\tthree\n'}
TREC = {
    'a.trec': '<DOC>\n<DOCNO>t1</DOCNO>\n<TEXT>one</TEXT>\n</DOC>\n',
    'b.txt': '<DOC>\n<DOCNO>t2</DOCNO>\n<TEXT>two</TEXT>\n</DOC>\n',
}
CEDR = {'a.tsv': 'query\tq1\tslugs\ndoc\tc1\tone\n', 'b.tsv': 'doc\tc2\ttwo\n'}
LINES_IN_TEXT = {'a.txt': 'd1\tone\n', 'b.txt': 'd2\ttwo\n'}

DOCUMENTS = {
    'markdown': (
        MARKDOWN,
        [
            Document('a/more.markdown', 'Text.', 'More'),
            Document('a/my%20notes.MD', 'No title here.', 'my notes'),
            Document('b.md', 'They hide by day.', 'Slugs', {'topic': 'garden'}),
            Document('z.md.gz', 'Words.', 'Packed'),
        ],
    ),
    'pages': (
        PAGES,
        [
            Document('index', 'Welcome.', 'Home', {'topic': 'garden'}),
            Document('my%20page', 'Three.'),
            Document('sub/a.htm', 'One.'),
            Document('sub/a', 'Two.'),
        ],
    ),
    'records': (
        RECORDS,
        [
            Document('r2', 'x', 'T', {'year': 9}),
            Document('3', 'y'),
            Document('r4', 'z'),
        ],
    ),
    'tabs': (TABS, [Document('d1', 'one'), Document('d2', 'two\tthree'), Document('d3', 'three')]),
    'trec': (TREC, [Document('t1', 'one'), Document('t2', 'two')]),
    'cedr': (CEDR, [Document('c1', 'one'), Document('c2', 'two')]),
    'lines': (LINES_IN_TEXT, [Document('d1', 'one'), Document('d2', 'two')]),
}


@pytest.mark.parametrize('kind', DOCUMENTS)
def test_documents(tmp_path, kind):
    contents, expected = DOCUMENTS[kind]
    corpus = open_corpus(write_files(tmp_path / 'docs', contents))
    assert list(corpus.documents()) == expected
    assert [passage.docid for passage in corpus] == [document.docid for document in expected]


def test_passages_have_the_text_as_written(tmp_path):
    corpus = open_corpus(write_files(tmp_path / 'docs', MARKDOWN))
    assert list(corpus)[2] == Passage(
        'b.md', '---\ntopic: garden\n---\n# Slugs\n\nThey hide by day.'
    )
    pages = open_corpus(write_files(tmp_path / 'pages', PAGES))
    assert next(iter(pages)) == Passage('index', 'Home Welcome.')


@pytest.mark.parametrize('kind', DOCUMENTS)
def test_parts_have_all_documents_once(tmp_path, kind):
    contents, expected = DOCUMENTS[kind]
    corpus = open_corpus(write_files(tmp_path / 'docs', contents))
    for of in (2, 9):
        docids = []
        for index in range(of):
            docids += [document.docid for document in corpus.part(index, of).documents()]
        assert sorted(docids) == sorted(document.docid for document in expected)
