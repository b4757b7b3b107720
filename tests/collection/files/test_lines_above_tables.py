"""Lines above the row that names the columns of a CSV file, as banks write them."""

import pytest

from pyserini_repbert.collection.files.table_headers import rows_above_header
from pyserini_repbert.names.corpora import open_corpus

BOOKINGS = """Buchungstag;Empfänger;Zweck;Betrag
03.05.2025;Stadtwerke;Abschlag Strom;-84,20
04.05.2025;Bäckerei Öz;Kartenzahlung;-5,60
"""


@pytest.mark.parametrize(
    ('above', 'n_lines'),
    [
        ('', 0),
        ('Konto;DE12 3456;;\nZeitraum:;01.05.2025 - 31.05.2025\n\n', 3),
        ('Umsätze, Stand: 31.05.2025\n', 1),
        ('\nKonto;DE12 3456\n', 2),
    ],
)
def test_bookings_of_a_bank(tmp_path, above, n_lines):
    """The account and its number were the names of the columns."""
    (tmp_path / 'bank.csv').write_text(above + BOOKINGS, 'utf-8')
    (tmp_path / 'a.md').write_text('x')
    documents = {document.docid: document for document in open_corpus(tmp_path).documents()}
    first = documents['bank.csv#1']
    assert (first.title, first.text) == (
        'Stadtwerke',
        'Buchungstag: 03.05.2025\nZweck: Abschlag Strom\nBetrag: -84,20',
    )
    assert first.origin.record == n_lines + 2
    if above:
        whole = documents['bank.csv']
        assert (whole.title, whole.text) == ('bank', above.strip())
    assert len(documents) == 3 + bool(above)


NUMBERS = [['cat', '1', '2'], ['dog', '3', '4']]


@pytest.mark.parametrize(
    ('rows', 'n_above'),
    [
        ([['word', 'n', 'x'], *NUMBERS], 0),
        ([['Words'], ['word', 'n', 'x'], *NUMBERS], 1),
        ([['Words'], [], ['word', 'n', 'x', ''], *NUMBERS], 2),
        # A column without a name.
        ([['n', 'x'], *NUMBERS], 0),
        ([['n', 'x'], ['cat', 'a', 'b'], ['dog', 'c', 'd']], 0),
        # Lists of words in the cells of a single column.
        ([['synonyms'], ['big', 'large', 'huge'], ['old', 'aged', 'ancient']], 0),
        ([['Words'], ['word', 'word', 'x'], *NUMBERS], 0),
        ([['Words'], ['word', 'n', 'x']], 0),
    ],
)
def test_which_row_names_the_columns(rows, n_above):
    assert rows_above_header(rows) == n_above


def test_the_line_that_names_the_separator_is_not_read(tmp_path):
    path = tmp_path / 'a.csv'
    path.write_text('sep=;\nid;text\n1;x\n')
    assert [document.text for document in open_corpus(path).documents()] == ['x']
