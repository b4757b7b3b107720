"""Outlook's messages: read as mail is."""

import pytest

from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.office_documents import OfficeReader
from pyserini_repbert.data.unread_files import UnreadableFile
from tests.collection.files.outlook_files import (
    BODY,
    HEADERS,
    HTML,
    RTF,
    SENDER,
    SENDER_ADDRESS,
    SENT,
    SUBJECT,
    TO,
    outlook,
)

pytest.importorskip('oxmsg')


@pytest.fixture(scope='module')
def reader():
    with OfficeReader() as office:
        yield office


@pytest.fixture
def document_of(tmp_path, reader):
    """Reads a message with some properties, and some messages within it."""

    def read(properties, inner=()):
        path = tmp_path / 'a.MSG'
        path.write_bytes(outlook(properties, inner))
        (document,) = reader.documents(FileToRead(path, 'a.MSG'))
        return document

    return read


def test_a_message_has_its_subject_its_text_and_its_fields(document_of):
    document = document_of(
        {
            SUBJECT: 'Crowns für dich',
            BODY: 'Two euros each,\r\n\r\nat the gate.',
            SENT: 133_497_468_000_000_000,
            SENDER: 'Ada',
            SENDER_ADDRESS: 'ada@example.org',
            TO: 'Bob',
        }
    )
    assert document.docid == 'a.MSG'
    assert document.title == 'Ada: Crowns für dich'
    assert document.text == 'Two euros each,\n\nat the gate.'
    assert document.fields == {
        'from': 'Ada <ada@example.org>',
        'to': 'Bob',
        'date': '2024-01-14T23:00:00+00:00',
    }


def test_names_as_outlook_shows_them(document_of):
    """Only the first recipient was a field."""
    document = document_of({SUBJECT: 'A', BODY: 'x', SENDER: 'Brandt, Klaus', TO: 'King, Ada; Bob'})
    assert document.fields == {'from': 'Brandt, Klaus', 'to': ['King, Ada', 'Bob']}


def test_a_time_that_no_calendar_has_is_left_out(document_of):
    """A message with such a time was not read."""
    document = document_of({SUBJECT: 'A', BODY: 'x', SENT: 2**64 - 1})
    assert (document.text, document.fields) == ('x', {})


def test_headers_as_they_came(document_of):
    headers = (
        'Received: x\r\nFrom: =?utf-8?q?Gr=C3=A4ce?=\r\n <g@example.org>\r\n'
        'Message-ID: <1@example.org>\r\nContent-Type: text/html\r\n'
    )
    document = document_of({SUBJECT: 'A', BODY: 'x', SENDER: 'Grace', HEADERS: headers})
    assert (document.title, document.text) == ('Gräce: A', 'x')
    assert document.fields == {'from': 'Gräce <g@example.org>', 'message_id': '1@example.org'}


@pytest.mark.parametrize(
    ('properties', 'text'),
    [
        ({HTML: '<p>Two €</p>'.encode()}, 'Two €'),
        ({BODY: 'Plain.', HTML: b'<p>Markup.</p>'}, 'Plain.'),
        ({SUBJECT: 'A'}, ''),
    ],
)
def test_one_of_its_texts_is_read(document_of, properties, text):
    assert document_of({SUBJECT: 'A', **properties}).text == text


def test_messages_within_a_message_are_read(document_of):
    inner = [{SUBJECT: 'Crowns for sale', BODY: 'Two euros.'}, {SUBJECT: 'Re', BODY: 'Three.'}]
    text = document_of({SUBJECT: 'Fwd', BODY: 'See below.'}, inner).text
    assert text == 'See below.\n\nSubject: Crowns for sale\n\nTwo euros.\n\nSubject: Re\n\nThree.'


def test_what_is_not_read_is_named(document_of, tmp_path, reader):
    with pytest.raises(UnreadableFile, match='its only text is RTF, which is not read: save'):
        document_of({SUBJECT: 'A', RTF: b'packed'})
    (tmp_path / 'b.msg').write_text('no message')
    with pytest.raises(UnreadableFile, match='it is damaged, or of another format'):
        list(reader.documents(FileToRead(tmp_path / 'b.msg', 'b.msg')))
