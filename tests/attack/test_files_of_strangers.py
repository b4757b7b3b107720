"""Files that are made to harm: what reads them ends in time, and the next file is read."""

import io
import json
import resource
import subprocess
import sys
import time
import zipfile

import pytest
from folders import write_files

from pyserini_repbert.collection.files import office_documents, office_process
from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.office_documents import OfficeReader
from pyserini_repbert.collection.files.reader_process import ReaderProcess
from pyserini_repbert.data.unread_files import UnreadableFile
from pyserini_repbert.names.corpora import open_corpus

# In the place of MarkItDown: what it does with a file is what the file's content says.
MARKITDOWN = """
import os, socket, subprocess, time
from types import SimpleNamespace

def StreamInfo(extension):
    assert extension == '.epub'

class Converter:
    def convert(self, stream, info, **_):
        content = stream.read().decode()
        if content == 'hang':
            time.sleep(1000)
        if content == 'die':
            os._exit(3)
        if content == 'eat':
            bytearray(1 << 40)
        if content == 'fetch':
            socket.create_connection(('127.0.0.1', 9))
        if content == 'run':
            subprocess.run(['true'])
        if content == 'write':
            open(stream.name, 'w')
        if content == 'print':
            print('{"text": "forged"}')
            os.write(1, b'{"text": "forged"}\\n')
        return SimpleNamespace(markdown=content + '\\ud800', title=None)

kinds = ('Docx', 'Pptx', 'Xlsx', 'Epub')
converters = SimpleNamespace(**{f'{kind}Converter': Converter for kind in kinds})
"""


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """Reads a file with the given content, in a process whose MarkItDown is the one above."""
    (tmp_path / 'markitdown.py').write_text(MARKITDOWN)
    monkeypatch.setenv('PYTHONPATH', f'{tmp_path}:{":".join(sys.path)}')
    path = tmp_path / 'a.epub'
    with OfficeReader(seconds=5) as office:

        def read(content):
            path.write_text(content)
            (document,) = office.documents(FileToRead(path, 'a.epub'))
            return document.text

        yield read


@pytest.mark.parametrize(
    ('content', 'reason'),
    [
        ('hang', 'its reader ended'),
        ('die', 'its reader ended'),
        ('eat', 'too much memory'),
        ('fetch', r'socket\.\w+ is forbidden'),
        ('run', r'(subprocess|os|_posix).* is forbidden'),
        ('write', 'writing a file is forbidden'),
    ],
)
def test_a_process_that_misbehaves(reader, content, reason):
    assert reader('before') == 'before?'
    with pytest.raises(UnreadableFile, match=reason):
        reader(content)
    assert reader('behind') == 'behind?'


def test_what_a_library_prints_is_no_answer(reader):
    assert reader('print') == 'print?'
    assert reader('next') == 'next?'


def test_the_process_has_a_limit_of_memory():
    code = (
        'import resource;'
        'from pyserini_repbert.collection.files.office_process import _limit_memory;'
        '_limit_memory(); print(resource.getrlimit(resource.RLIMIT_AS)[0])'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    limit = int(done.stdout)
    assert 0 < limit <= office_process._MOST_MEMORY
    assert resource.getrlimit(resource.RLIMIT_AS)[0] in (resource.RLIM_INFINITY, limit)


def test_a_zip_bomb_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(ReaderProcess, 'ask', None)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr('word/document.xml', bytes(office_documents.FREE_BYTES * 3))
    path = tmp_path / 'a.docx'
    path.write_bytes(stream.getvalue())
    with pytest.raises(UnreadableFile, match='unpacks to 192'):
        list(OfficeReader().documents(FileToRead(path, 'a.docx')))


def test_an_archive_of_an_unknown_version_is_named(tmp_path):
    """It ended the whole command with a traceback: NotImplementedError."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, 'w') as archive:
        archive.writestr('word/document.xml', 'x')
    raw = bytearray(stream.getvalue())
    needed = raw.index(b'PK\x01\x02') + 6
    raw[needed] = 123
    write_files(tmp_path, {'a.docx': raw, 'b.md': 'x'})
    corpus = open_corpus(tmp_path)
    assert [document.docid for document in corpus.documents()] == ['b.md']
    assert str(corpus.unread) == 'not read: 1 .docx that cannot be read'


def nested_mail(depth, kind):
    """A message whose parts hold one another."""
    lines = ['Subject: deep']
    for level in range(depth):
        lines += [f'Content-Type: {kind}; boundary=b{level}', '', f'--b{level}']
    return '\n'.join([*lines, 'Content-Type: text/plain', '', 'text'])


@pytest.mark.parametrize('kind', ['multipart/mixed', 'message/rfc822'])
@pytest.mark.parametrize('depth', [150, 5_000])
def test_mail_nested_deeply(tmp_path, kind, depth):
    write_files(tmp_path, {'a.eml': nested_mail(depth, kind), 'b.md': 'x'})
    corpus = open_corpus(tmp_path, keep_empty=True)
    start = time.monotonic()
    assert 'b.md' in [document.docid for document in corpus.documents()]
    assert time.monotonic() - start < 60


@pytest.mark.parametrize(
    'header',
    [
        'To: ' + 'a@b.org, ' * 20_000,
        'To: ' + '(' * 20_000,
        'Subject: ' + '=?utf-8?q?a?= ' * 20_000,
        'From: "' + '\\' * 50_000,
        'Date: ' + '9' * 50_000,
        'Content-Type: text/plain; charset=' + 'x' * 50_000,
        'Content-Type: text/plain; ' + 'a*0=b; ' * 20_000,
        'Content-Type: text/plain; ' + 'a*0=b; ' * 250,
    ],
)
def test_mail_with_a_long_header(tmp_path, header):
    write_files(tmp_path, {'a.eml': f'{header}\nMessage-ID: <1>\n\nBody.\n', 'b.md': 'x'})
    start = time.monotonic()
    documents = list(open_corpus(tmp_path).documents())
    assert documents[-1].docid == 'b.md'
    assert time.monotonic() - start < 60


def test_a_huge_cell(tmp_path):
    write_files(
        tmp_path,
        {
            'a.csv': 'text\n"' + 'x' * 17_000_000,
            'b.csv': 'text,note\nshort,' + 'y' * 1_500_000 + '\n',
            'c.csv': ','.join(f'c{number}' for number in range(2_000)) + '\n1\n',
            'd.md': 'x',
        },
    )
    corpus = open_corpus(tmp_path)
    documents = {document.docid: document for document in corpus.documents()}
    # What no field can hold is text.
    assert set(documents) == {'b.csv#1', 'd.md'}
    assert documents['b.csv#1'].fields == {}
    assert len(documents['b.csv#1'].text) > 1_500_000
    assert str(corpus.unread) == 'not read: 2 .csv that cannot be read'


def test_json_nested_deeply_and_surrogates(tmp_path):
    write_files(tmp_path, {'a.json': '[' * 100_000, 'b.ipynb': '{"cells": ' + '[' * 100_000})
    half = json.dumps([{'id': '1', 'text': 'a\ud800b'}])
    write_files(tmp_path, {'c.json': half, 'd.md': 'x'})
    corpus = open_corpus(tmp_path)
    assert [document.text for document in corpus.documents()] == ['a?b', 'x']
    assert str(corpus.unread) == (
        'not read: 1 .ipynb that cannot be read, 1 .json that cannot be read'
    )
