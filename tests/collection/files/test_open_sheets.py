"""LibreOffice's spreadsheets (.ods): rows of tables are documents, as of Excel."""

import pytest

from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.office_documents import OfficeReader
from pyserini_repbert.collection.files.open_sheets import read_open_sheets
from pyserini_repbert.data.unread_files import UnreadableFile
from pyserini_repbert.names.corpora import open_corpus
from tests.collection.files.open_sheet_files import cell, empty, row, write_open_sheets

pytest.importorskip('markitdown')


def number(shown, value, kind='float'):
    return cell(shown, kind, value=value)


BOOKINGS = [
    row('Belegung 2025'),
    row(empty(), repeated=2),
    row('Gast', 'Anreise', 'Preis'),
    row('Ada', cell('03.05.25', 'date', date_value='2025-05-03'), number('1.204,50 €', 1204.5)),
    row('Jo', cell('09.05.25', 'date', date_value='2025-05-09T00:00:00'), number('98 €', 98)),
]


def read(folder):
    corpus = open_corpus(folder)
    return {document.docid: document for document in corpus.documents()}


def test_rows_of_a_table_are_documents(tmp_path):
    """A folder's .ods files were not read."""
    write_open_sheets(tmp_path / 'rooms.ods', {'Mai': BOOKINGS, 'Leer': [row(empty())]})
    documents = read(tmp_path)
    assert list(documents) == ['rooms.ods', 'rooms.ods#Mai#1', 'rooms.ods#Mai#2']
    assert documents['rooms.ods'].text == 'Belegung 2025'
    first = documents['rooms.ods#Mai#1']
    assert (first.title, first.text) == ('Ada', 'Anreise: 2025-05-03\nPreis: 1204.50')
    assert first.fields['Preis'] == 1204.5
    assert (first.origin.row, documents['rooms.ods#Mai#2'].text) == (
        5,
        'Anreise: 2025-05-09\nPreis: 98',
    )


@pytest.mark.parametrize(
    ('written', 'shown'),
    [
        (number('7,5 %', 0.075, 'percentage'), '7.5%'),
        (number('1 234 567,80', 1234567.8), '1234567.80'),
        (number('1.234', 1234), '1234'),
        (number('-3,33', -3.3333), '-3.33'),
        (number('1.2E+10', 12e9), '12000000000'),
        (number('02134', 2134), '02134'),
        (cell('WAHR', 'boolean', boolean_value='true'), 'TRUE'),
        (cell('30:15', 'time', time_value='PT30H15M00S'), '30:15'),
        (cell('3.5.25 12:30', 'date', date_value='2025-05-03T12:30:00'), '2025-05-03 12:30:00'),
        (cell('Tom & Jo'), 'Tom & Jo'),
        (
            '<table:table-cell office:value-type="string"><office:annotation><text:p>no</text:p>'
            '</office:annotation><text:p>a<text:s text:c="2"/><text:span>b</text:span></text:p>'
            '<text:p>c</text:p></table:table-cell>',
            'a b c',
        ),
    ],
)
def test_cells_are_as_the_sheet_shows_them(tmp_path, written, shown):
    path = write_open_sheets(tmp_path / 'one.ods', {'S': [row('x', written)]})
    with path.open('rb') as stream:
        (sheet,) = read_open_sheets(stream)
        assert list(sheet.rows) == [(1, ['x', shown])]


def test_equal_neighbours_are_written_once(tmp_path):
    rows = [
        row(empty(), repeated=1_048_000),
        row(cell('a', repeated=2), empty(3), 'b', repeated=2),
        row('c', cell('d', repeated=10**9)),
    ]
    path = write_open_sheets(tmp_path / 'one.ods', {'S': rows})
    with path.open('rb') as stream:
        (sheet,) = read_open_sheets(stream)
        first, second, third = sheet.rows
    assert first == (1_048_001, ['a', 'a', '', '', '', 'b'])
    assert second == (1_048_002, first[1])
    assert (third[0], len(third[1])) == (1_048_003, 16_384)


def test_files_that_cannot_be_read_say_why(tmp_path):
    manifest = '<manifest><encryption-data/></manifest>'
    write_open_sheets(tmp_path / 'locked.ods', {'S': BOOKINGS}, manifest)
    (tmp_path / 'broken.ods').write_bytes(b'PK\x03\x04 no')
    reasons = {}
    with OfficeReader() as reader:
        for name in ('locked.ods', 'broken.ods'):
            with pytest.raises(UnreadableFile) as caught:
                list(reader.documents(FileToRead(tmp_path / name, name)))
            reasons[name] = str(caught.value)
    assert reasons['locked.ods'] == 'it needs a password'
    assert reasons['broken.ods'].startswith('it is damaged, or of another format')
