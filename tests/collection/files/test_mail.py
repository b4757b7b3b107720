"""What is read of mail: all parts, in their encodings, and headers as programs write them."""

import gzip

import pytest

from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.mail_documents import mail_documents, mailbox_documents
from pyserini_repbert.collection.files.mail_headers import codec_of_mail
from pyserini_repbert.data.unread_files import UnreadableFile
from pyserini_repbert.names.corpora import open_corpus

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


@pytest.mark.parametrize('end', ['\n', '      \r\n'])
def test_mail_of_apple(tmp_path, end):
    """Its size stands above a message, and a property list below; such files were not read."""
    message = 'From: a@b\nSubject: Seed order\n\nThe broad beans arrive in Märch.\n'.encode()
    properties = '<?xml version="1.0"?><plist><dict><key>flags</key></dict></plist>\n'
    raw = f'{len(message)}{end}'.encode() + message + properties.encode()
    for name in ('1.emlx', '2.partial.emlx', '3.EMLX'):
        (tmp_path / name).write_bytes(raw)
    documents = list(open_corpus(tmp_path).documents())
    assert [document.docid for document in documents] == ['1.emlx', '2.partial.emlx', '3.EMLX']
    for document in documents:
        assert (document.title, document.text) == (
            'a@b: Seed order',
            'The broad beans arrive in Märch.',
        )


def test_mail_of_apple_without_a_size_is_named(tmp_path):
    (tmp_path / 'a.emlx').write_text('Subject: x\n\nText.')
    corpus = open_corpus(tmp_path)
    assert list(corpus.documents()) == []
    (unread,) = corpus.unread
    assert 'its first line is not the size of a message' in unread.reason


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


MULTIPART = """\
Subject: S
MIME-Version: 1.0
Content-Type: multipart/{kind}

--{boundary}
Content-Type: text/plain; charset=utf-8

Rhubarb crowns arrived.
--{boundary}--
"""


@pytest.mark.parametrize(
    ('kind', 'boundary'),
    [
        ('mixed; boundary=----=_Part_1', '----=_Part_1'),
        ('mixed; boundary=a/b?c', 'a/b?c'),
        ('alternative; boundary=----=_Next_1; charset=utf-8', '----=_Next_1'),
        ('mixed; boundary="wrong"', 'right'),
        ('mixed', 'missing'),
        ('alternative', 'missing'),
        ('mixed; boundary=""', 'empty'),
        ('mixed; BOUNDARY = spaces and more', 'spaces and more'),
    ],
)
def test_boundaries_as_programs_write_them(tmp_path, kind, boundary):
    """Of each, the subject was read, and no text."""
    message = MULTIPART.format(kind=kind, boundary=boundary)
    assert document_of(tmp_path, message.encode()).text == 'Rhubarb crowns arrived.'


@pytest.mark.parametrize(
    ('header', 'text'),
    [
        ('text/plain charset=utf-8', 'Rhubarb <b>crowns</b>'),
        ('text/markdown; charset=utf-8', 'Rhubarb <b>crowns</b>'),
        ('text/enriched', 'Rhubarb crowns'),
        ('text/x-unheard-of', 'Rhubarb <b>crowns</b>'),
        ('multipart/mixed', 'Rhubarb <b>crowns</b>'),
        ('multipart/mixed; boundary=x', 'Rhubarb <b>crowns</b>'),
        ('text/plain\nContent-Disposition: attachment; filename=a.txt', 'Rhubarb <b>crowns</b>'),
        ('text/html\nContent-Disposition: attachment; filename=a.html', 'Rhubarb crowns'),
    ],
)
def test_the_only_text_of_a_message(tmp_path, header, text):
    raw = f'Subject: S\nMIME-Version: 1.0\nContent-Type: {header}\n\nRhubarb <b>crowns</b>\n'
    assert document_of(tmp_path, raw.encode()).text == text


@pytest.mark.parametrize('header', ['application/pdf', 'image/png', 'application/octet-stream'])
def test_a_message_without_text_is_not_read(tmp_path, header):
    """It went in with its subject alone, and nobody was told."""
    raw = f'Subject: Invoice\nContent-Type: {header}\n\nx'.encode()
    with pytest.raises(UnreadableFile, match='a message without text'):
        document_of(tmp_path, raw)


def test_a_message_that_is_its_subject(tmp_path):
    document = document_of(tmp_path, b'Subject: Home by six\n\n\n')
    assert (document.title, document.text) == ('Home by six', '')


STUB = 'Your mail program does not show HTML. View it in your browser.'
SALE = 'Dahlia tubers at half price until Friday, and delivery is free of charge.'


@pytest.mark.parametrize(
    ('plain', 'html', 'text'),
    [
        (
            STUB,
            f'<p>{SALE}</p><p>View it online or here.</p>',
            f'{SALE}\n\nView it online or here.',
        ),
        (SALE, f'<p>{SALE}</p><p>{"View it. " * 9}</p>', SALE),
        (STUB, '<p>Hi.</p>', STUB),
    ],
)
def test_a_plain_text_that_is_a_stub(tmp_path, plain, html, text):
    message = ALTERNATIVES.format(plain=plain).replace('<p>As HTML.</p>', html)
    assert document_of(tmp_path, message.encode()).text == text


def test_a_message_within_a_message(tmp_path):
    """Its subject and its sender were nowhere. Forwarded as an attachment, it was not read."""
    inner = 'From: Grace <g@example.org>\nSubject: Crowns for sale\n\nTwo euros each.'
    for disposition in ('inline', 'attachment'):
        parts = PARTS.format(first='text/plain', body='See below.').replace(
            'Content-Type: image/png\nContent-Disposition: inline\n\nx',
            f'Content-Type: message/rfc822\nContent-Disposition: {disposition}\n\n{inner}',
        )
        assert document_of(tmp_path, parts.encode()).text == (
            'See below.\n\nFrom: Grace <g@example.org>\nSubject: Crowns for sale\n\n'
            'Two euros each.\n\nThe footer of a list.'
        )


FLOWED = (
    'A sentence that \nflows.\n> Quoted \n> words.\nNot joined\n-- \nAda \nLovelace\n From here'
)


@pytest.mark.parametrize(
    ('parameters', 'text'),
    [
        ('', FLOWED),
        (
            '; format=flowed',
            'A sentence that flows.\n> Quoted words.\nNot joined\n-- \nAda Lovelace\nFrom here',
        ),
        (
            '; format=Flowed; DelSp=Yes',
            'A sentence thatflows.\n> Quotedwords.\nNot joined\n-- \nAdaLovelace\nFrom here',
        ),
    ],
)
def test_flowed_lines_are_one(tmp_path, parameters, text):
    """RFC 3676: a line that ends in a space goes on; with DelSp, the space is not part of it."""
    raw = f'Subject: S\nContent-Type: text/plain{parameters}\n\n{FLOWED}'.encode()
    assert document_of(tmp_path, raw).text == text


@pytest.mark.parametrize(
    ('subject', 'title'),
    [
        ('=?iso-8859-1?Q?It=92s_=93here=94?=', 'It’s “here”'),
        ('=?us-ascii?Q?It=92s?=', 'It’s'),
        ('=?gb2312?B?1uzpRrv5?=', '朱镕基'),
        ('=?utf-8?B?R3LDvMM=?= =?utf-8?B?n2U=?=', 'Grüße'),
        ('=?x-nothing?Q?Gr=C3=BC=C3=9Fe?=', 'Grüße'),
        ('=?punycode?Q?abc-?=', 'abc-'),
        ('=?ISO-8859-15*de?Q?5_=A4?=', '5 €'),
    ],
)
def test_encoded_words_of_headers(tmp_path, subject, title):
    assert document_of(tmp_path, f'Subject: {subject}\n\nx'.encode()).title == title


def test_an_escaped_line_of_a_mailbox(tmp_path):
    path = tmp_path / 'a.mbox'
    path.write_text('From a\nSubject: One\n\n>From here on it rains.\n>>From quoted\n> From\n')
    (document,) = mailbox_documents(FileToRead(path, 'd'))
    assert document.text == 'From here on it rains.\n>From quoted\n> From'


@pytest.mark.parametrize('charset', ['punycode', 'idna', 'unicode_escape', 'rot13', 'zlib'])
def test_codecs_that_are_no_encodings_of_texts(tmp_path, charset):
    """Two of them take minutes for a megabyte."""
    words = r'Grüße \u0041'
    raw = f'Subject: S\nContent-Type: text/plain; charset={charset}\n\n{words}'.encode()
    assert document_of(tmp_path, raw).text == words
    assert not codec_of_mail(charset)


@pytest.mark.parametrize('part', ['--b\n\nx\n', '--b\nContent-Type: text/plain\n\nx\n'])
def test_messages_of_many_parts_are_refused(tmp_path, part):
    """Parts without a header of their own were not counted: 50,000 took seven seconds."""
    start = 'Subject: S\nContent-Type: multipart/mixed; boundary=b\n\n'
    assert document_of(tmp_path, f'{start}{part * 1_900}--b--'.encode()).text
    with pytest.raises(UnreadableFile, match='more than 2,000 parts'):
        document_of(tmp_path, f'{start}{part * 50_000}--b--'.encode())


@pytest.mark.parametrize(
    ('header', 'people'),
    [
        ('From: Ada <a@b>', 'Ada <a@b>'),
        ('From: a@b (=?utf-8?q?Gr=C3=A4ce?= Li)', 'Gräce Li <a@b>'),
        ('From: ada at b.org (Ada King)', 'Ada King <ada@b.org>'),
        ("From: 'Ada' <a@b>", 'Ada <a@b>'),
        ('From: "\'a@b\'" <a@b>', 'a@b'),
        ('From: "King, Ada" <a@b>', 'King, Ada <a@b>'),
        ('From: Ada King', 'Ada King'),
        ('From: Ada <a@b>; Bob <b@b>;', ['Ada <a@b>', 'Bob <b@b>']),
        ('From: friends: a@b, Bob <b@b>;', ['a@b', 'Bob <b@b>']),
        ('From: a@b, a@b', 'a@b'),
        ('From: undisclosed:;', None),
        ('From: <>', None),
    ],
)
def test_people_of_a_message(tmp_path, header, people):
    document = document_of(tmp_path, f'{header}\nSubject: S\n\nText.\n'.encode())
    assert document.fields.get('from') == people


def test_a_title_begins_with_who_wrote(tmp_path):
    """A question what somebody wrote found nothing of the name."""
    recipients = 'To: Bob <b@b>, c@b'
    raw = f'From: Ada King <a@b>, Bo <b@b>\n{recipients}\nSubject: S\n\nText.\n'
    document = document_of(tmp_path, raw.encode())
    assert (document.title, document.text) == ('Ada King, Bo: S', 'Text.')
    assert document.fields == {
        'from': ['Ada King <a@b>', 'Bo <b@b>'],
        'to': ['Bob <b@b>', 'c@b'],
    }


def test_a_message_without_a_word_has_no_title(tmp_path):
    path = tmp_path / 'a.mbox'
    contents = ['From: a@b\n', 'From: a@b\nSubject: S\n', 'From: a@b\n\nText.', 'Subject: S\n']
    path.write_text('\n\n'.join(f'From a\n{content}' for content in contents))
    documents = mailbox_documents(FileToRead(path, 'd'))
    assert [document.title for document in documents] == ['', 'a@b: S', 'a@b', 'S']
