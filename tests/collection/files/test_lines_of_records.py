"""A document of a record knows its file, and the line at which the record begins."""

import pyarrow as pa
import pytest
from folders import write_files
from pyarrow import parquet

from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.origins import Origin
from pyserini_repbert.names.corpora import open_corpus

FILES = {
    'a.jsonl': ('{"id": "1", "text": "x"}\n\n{"id": "2", "text": "y\\nz"}\n', [1, 3]),
    'a.tsv': ('1\tx\n2\ty\n', [1, 2]),
    'b.tsv': ('id\ttitle\ttext\n1\tT\tx\n2\tT\ty\n', [2, 3]),
    'a.csv': ('id,text\n1,"x\ny"\n,\n\n2,z\n', [2, 6]),
    'a.trec': ('<DOC>\n<DOCNO>1</DOCNO>\nx\n</DOC>\n<DOC>\n<DOCNO>2</DOCNO>\ny\n</DOC>\n', [1, 5]),
    'a.json': ('[{"id": "1", "text": "x"},\n{"id": "2", "text": "y"}]', [1, 2]),
    'b.json': ('\r\n[\r\n{"id": 1,\r\n "text": "a, b"}, {"id": 2, "text": "]\\n"}\r\n]', [3, 4]),
    'd.json': ('// a\n[/* b\n*/\n{"text": "http://x"}, // c\n{"text": "y,]"},\n]', [4, 5]),
    'c.json': ('{"1": {"text": "x"},\n\n"2"\n: {"text": "y", "n": [1]}}', [1, 3]),
}


def places(corpus):
    found = []
    for document in corpus.documents():
        end = len(document.text)
        lines = [document.origin.line_at(document.text, position) for position in (0, end)]
        assert lines[0] == lines[1]
        found.append((document.origin.file, lines[0]))
    return found


@pytest.mark.parametrize('name', FILES)
def test_lines_of_records(tmp_path, name):
    content, lines = FILES[name]
    write_files(tmp_path, {f'in/{name}': content})
    expected = [(name, line) for line in lines]
    assert places(open_corpus(tmp_path / 'in')) == expected
    write_files(tmp_path, {'in/z.html': '<p>x'})
    assert places(open_corpus(tmp_path / 'in'))[:-1] == expected
    assert places(open_corpus(tmp_path / 'in' / name)) == expected


def test_parts_of_a_corpus_keep_their_lines(tmp_path):
    write_files(tmp_path, {'a.tsv': '1\tx\n2\ty\n3\tz\n'})
    corpus = open_corpus(tmp_path / 'a.tsv')
    assert places(corpus.part(1, 2)) == [('a.tsv', 2)]


def test_rows_of_parquet_have_numbers(tmp_path):
    """A Parquet file has no lines."""
    table = pa.table({'id': ['a', 'b'], 'text': ['x', 'y']})
    parquet.write_table(table, tmp_path / 'a.parquet')
    documents = list(open_corpus(tmp_path).documents())
    assert [document.origin for document in documents] == [
        Origin('a.parquet', row=1),
        Origin('a.parquet', row=2),
    ]
    assert documents[0].origin.line_at('x', 0) is None


def test_a_record_is_stored_with_its_line():
    origin = Document('d', 'x\ny').at_line(7).in_file('a.csv').origin
    assert Origin.parsed('a.csv', origin.rendered()) == origin == Origin('a.csv', record=7)
    origin = Document('d', 'x').at_row(7).in_file('a.parquet').origin
    assert Origin.parsed('a.parquet', origin.rendered()) == origin == Origin('a.parquet', row=7)
    with pytest.raises(ValueError):
        Origin.parsed('a.csv', '{"record": [7]}')
