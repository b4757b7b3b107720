"""A line without end, in a small packed file, is refused before it fills the memory."""

import gzip

import pytest

from pyserini_repbert import files
from pyserini_repbert.data.topics import read_topics
from pyserini_repbert.errors import InputError
from pyserini_repbert.names.corpora import open_corpus


@pytest.fixture
def packed(tmp_path, monkeypatch):
    """A file whose second line is longer than lines may be."""
    monkeypatch.setattr(files, 'MAX_LINE_BYTES', 1000)
    path = tmp_path / 'lines.tsv.gz'
    path.write_bytes(gzip.compress(b'1\tcat\n2\t' + b'a' * 1000 + b'\n'))
    return path


@pytest.mark.parametrize('read', [read_topics, lambda path: list(open_corpus(path))])
def test_a_line_without_end_is_refused(packed, read):
    with pytest.raises(InputError) as refused:
        read(packed)
    assert str(refused.value) == f'{packed}:2: the line has more than 1,000 bytes: cut it'


def test_the_longest_line_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(files, 'MAX_LINE_BYTES', 8)
    (tmp_path / 'topics.tsv').write_bytes(b'1\tcat45\n2\tdog')
    assert [topic.text for topic in read_topics(tmp_path / 'topics.tsv')] == ['cat45', 'dog']
