"""What is read of mail: all parts, in their encodings, and headers as programs write them."""

import gzip

import pytest

from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.mail_documents import mail_documents, mailbox_documents

PARTS = """\
Subject: Parts
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: {first}

{body}
--b
Content-Type: image/png
Content-Disposition: inline

x
--b
Content-Type: text/plain

The footer of a list.
--b
Content-Type: text/plain
Content-Disposition: attachment; filename=a.txt

An attachment.
--b--
"""
ALTERNATIVES = """\
Content-Type: multipart/alternative; boundary=c

--c
Content-Type: text/plain

{plain}
--c
Content-Type: text/html

<p>As HTML.</p>
--c--
"""


def document_of(tmp_path, raw):
    path = tmp_path / 'a.eml'
    path.write_bytes(raw)
    (document,) = mail_documents(FileToRead(path, 'd'))
    return document


def test_all_parts_are_read(tmp_path):
    """Of a page with the footer of a list, the footer alone was read."""
    page = PARTS.format(first='text/html', body='<h1>News</h1><p>They twine.</p>')
    text = document_of(tmp_path, page.encode()).text
    assert text == 'News\n\nThey twine.\n\nThe footer of a list.'
    plain = PARTS.format(first='text/plain', body='They twine.')
    assert document_of(tmp_path, plain.encode()).text == 'They twine.\n\nThe footer of a list.'


@pytest.mark.parametrize(('plain', 'text'), [('Plain.', 'Plain.'), (' ', 'As HTML.')])
def test_one_of_alternatives_is_read(tmp_path, plain, text):
    message = ALTERNATIVES.format(plain=plain)
    assert document_of(tmp_path, message.encode()).text == text
    inner = PARTS.format(first='text/plain', body='x').replace(
        'Content-Type: text/plain\n\nx', message
    )
    found = document_of(tmp_path, inner.encode()).text
    assert found == f'{text}\n\nThe footer of a list.'


@pytest.mark.parametrize(
    ('charset', 'encoding'),
    [
        ('', 'utf-8'),
        ('us-ascii', 'utf-8'),
        ('unknown-8bit', 'utf-8'),
        ('x-nothing', 'cp1252'),
        ('us-ascii', 'cp1252'),
        ('iso-8859-1', 'cp1252'),
        ('utf-8', 'cp1252'),
        ('cp850', 'cp850'),
    ],
)
def test_encodings_of_parts(tmp_path, charset, encoding):
    """Without the right charset, each such letter was a question mark, or the mail was refused."""
    words = 'Grüße aus dem schönen Münster, wo die Bäume blühen.'
    kind = f'Content-Type: text/plain; charset="{charset}"\n' if charset else ''
    raw = f'Subject: x\n{kind}\n{words}'.encode(encoding)
    assert document_of(tmp_path, raw).text == words


def test_headers_beyond_ascii_and_long_ones_stay(tmp_path):
    to = ', '.join(f'person{number}@example.org' for number in range(600))
    raw = f'Subject: Grüße\nTo: {to}\n\nx'.encode()
    document = document_of(tmp_path, raw)
    assert document.title == 'Grüße'
    assert document.fields['to'] == to


def test_a_sentence_that_begins_as_a_mailbox(tmp_path):
    """The mailbox was refused: what followed was a message without a header."""
    box = (
        'From a@b.org Mon Jan  1 00:00:00 2024\nSubject: One\n\nx\n\n'
        'From here on, water daily.\nAnd weed.\n\nFrom c\nSubject: Two\n\ny\n'
    )
    path = tmp_path / 'a.mbox.gz'
    path.write_bytes(gzip.compress(box.encode()))
    texts = [document.text for document in mailbox_documents(FileToRead(path, 'd'))]
    assert texts == ['x\n\nFrom here on, water daily.\nAnd weed.', 'y']
