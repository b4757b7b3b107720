"""Folders of Markdown and text: a file is a document."""

import pytest

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.errors import InputError
from pyserini_repbert.names.corpora import open_corpus


def files(folder, contents):
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def test_a_file_is_a_document_and_its_path_the_docid(tmp_path):
    folder = files(
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
        ({'a.txt': '<DOC>\n<DOCNO>d1</DOCNO>\nx\n</DOC>\n'}, ['d1']),
        ({'a.txt': '{"id": "d1", "contents": "x"}\n'}, ['d1']),
        ({'a.jsonl': '{"id": "d1", "contents": "x"}\n', 'README.md': 'About.'}, ['d1']),
    ],
)
def test_the_format_is_told_by_the_files(tmp_path, contents, docids):
    assert [passage.docid for passage in open_corpus(files(tmp_path, contents))] == docids


def test_one_file_is_named_as_it_is(tmp_path):
    files(tmp_path, {'notes.md': 'x'})
    assert list(open_corpus(tmp_path / 'notes.md')) == [Passage('notes.md', 'x')]


def test_other_encodings_are_refused(tmp_path):
    files(tmp_path, {'a.md': b'\xff\xfe'})
    with pytest.raises(InputError, match=r'a\.md: not valid UTF-8 .*save it as UTF-8'):
        list(open_corpus(tmp_path))
