"""PDF, Office files and EPUB, which the extra `files` reads."""

import pytest

from pyserini_repbert.data.file_to_read import FileToRead
from pyserini_repbert.data.office_documents import OfficeReader
from pyserini_repbert.data.unread_files import UnreadableFile
from pyserini_repbert.names.corpora import open_corpus
from tests.data.mixed_files import write_files
from tests.data.office_files import WRITERS

pytest.importorskip('markitdown')


def test_each_kind_is_read(tmp_path):
    sentences = {suffix: f'Snails avoid copper {suffix[1:]} tape.' for suffix in WRITERS}
    for suffix, writer in WRITERS.items():
        write_files(tmp_path, {f'a{suffix}': writer(sentences[suffix])})
    damaged = WRITERS['.docx']('x')[:100]
    write_files(tmp_path, {'b.docx': damaged, 'c.pdf': WRITERS['.pdf'](''), 'd.md': 'x'})
    corpus = open_corpus(tmp_path)
    documents = {document.docid: document for document in corpus.documents()}
    assert set(documents) == {'d.md', *(f'a{suffix}' for suffix in WRITERS)}
    for suffix, sentence in sentences.items():
        assert sentence in documents[f'a{suffix}'].text
        assert documents[f'a{suffix}'].title
    assert str(corpus.unread) == 'not read: 1 .docx that cannot be read, 1 .pdf without text'


def test_what_is_damaged_is_not_taken_for_text(tmp_path):
    path = write_files(tmp_path, {'a.docx': WRITERS['.docx']('x')}) / 'a.docx'
    with OfficeReader() as reader:
        (document,) = reader.documents(FileToRead(path, 'a.docx'))
        assert (document.title, document.text) == ('a', 'x')
        path.write_bytes(b'PK\x03\x04 nothing')
        with pytest.raises(UnreadableFile, match='damaged'):
            list(reader.documents(FileToRead(path, 'a.docx')))
