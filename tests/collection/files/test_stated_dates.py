"""A document's date is the day that its file states: in its name, in PDF and in Office files."""

import io
import zipfile

import pytest
from folders import write_files

from pyserini_repbert.collection.files.stated_dates import (
    date_of_path,
    day_of_name,
    day_of_office,
    day_of_pdf,
    title_with_year,
)
from pyserini_repbert.names.corpora import open_corpus


@pytest.mark.parametrize(
    ('name', 'day'),
    [
        ('2024-05-03.md', '2024-05-03'),
        ('2024-05-03 Meeting.pdf', '2024-05-03'),
        ('2024-05-031.md', ''),
        ('2024-13-03.md', ''),
        ('0001-01-01.md', ''),
        ('a 2024-05-03.md', ''),
        ('2024-05.md', ''),
    ],
)
def test_the_day_of_a_name(name, day):
    assert day_of_name(name) == day


@pytest.mark.parametrize(
    ('stated', 'day'),
    [
        ("D:20240503101500+02'00'", '2024-05-03'),
        ('20240503', '2024-05-03'),
        ('D:19700101000000Z', ''),
        ('D:20241399', ''),
        ('', ''),
    ],
)
def test_the_day_of_a_pdf(stated, day):
    assert day_of_pdf(stated) == day


def office(modified):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, 'w') as archive:
        archive.writestr('docProps/core.xml', f'<cp:x>{modified}</cp:x>')
    stream.seek(0)
    return stream


@pytest.mark.parametrize(
    ('modified', 'day'),
    [
        (
            '<dcterms:modified xsi:type="d:W3CDTF">2024-05-03T10:15:00Z</dcterms:modified>',
            '2024-05-03',
        ),
        ('<dcterms:modified>2024-05-03</dcterms:modified>', '2024-05-03'),
        # As python-docx's template has it.
        ('<dcterms:modified>2013-12-23T23:15:00Z</dcterms:modified>', ''),
        ('<dcterms:created>2024-05-03T10:15:00Z</dcterms:created>', ''),
        ('', ''),
    ],
)
def test_the_day_of_an_office_file(modified, day):
    stream = office(modified)
    assert day_of_office(stream) == day
    assert stream.tell() == 0


def test_no_office_file_has_no_day():
    assert day_of_office(io.BytesIO(b'no zip')) == ''


def test_a_date_of_its_own_comes_before_that_of_a_name(tmp_path):
    """Notes of a diary were filed under the year of their file's last change."""
    files = {
        '2024-05-03.md': '# Rain\n\nIt rained.',
        '2024-05-04.md': '---\ndate: 2023-01-02\n---\nSun.',
        '2024-05-05.csv': 'name,n\nhoe,1\nfork,2\n',
        '2024-05-06.txt': 'Wind.',
        'bank-2024-07.csv': 'Date,n\n2024-07-03,1\n',
        '2023/tax.csv': 'name,n\ngift,1\n',
    }
    write_files(tmp_path, files)
    dates = {item.docid: item.fields.get('date') for item in open_corpus(tmp_path).documents()}
    assert dates == {
        '2024-05-03.md': '2024-05-03',
        '2024-05-04.md': '2023-01-02',
        '2024-05-05.csv#1': '2024-05-05',
        '2024-05-05.csv#2': '2024-05-05',
        '2024-05-06.txt': '2024-05-06',
        # Its column is called `Date`.
        'bank-2024-07.csv#1': '2024-07-03',
        '2023/tax.csv#1': '2023',
    }


@pytest.mark.parametrize(
    ('path', 'stated'),
    [
        ('diary/2025-07.md', '2025-07'),
        ('walk 2025-07-14.md', '2025-07-14'),
        ('2025_07_14 walk.md', '2025-07-14'),
        ('IMG_20250714_123456.md', '2025-07-14'),
        ('bank-2025_10.csv.gz', '2025-10'),
        ('tax 2023/gifts.txt', '2023'),
        ('2023/bills 2024/boiler.md', '2024'),
        ('2024/2025-07.md', '2025-07'),
        ('2024-05-03 plans of 2023.md', '2024-05-03'),
        # Several years, and numbers that are no dates.
        ('2023-2024/plan.md', ''),
        ('invoice 20251399.md', ''),
        ('no 202507.md', ''),
        ('room 1750.md', ''),
        ('12025.md', ''),
        # The calendar has the year alone.
        ('2024-13-03.md', '2024'),
        ('season 2024-25.md', '2024'),
        ('plan.txt', ''),
    ],
)
def test_the_date_of_a_path(path, stated):
    """A file named by its month was filed under the year of its last change."""
    assert date_of_path(path) == stated


@pytest.mark.parametrize(
    ('title', 'path', 'with_year'),
    [
        ('Minutes', 'club/2025-11.md', 'Minutes (2025-11)'),
        ('Minutes of 2025', 'club/2025-11.md', 'Minutes of 2025'),
        ('', 'tax return 2023.txt', 'tax return 2023'),
        ('', 'tax 2023/gifts.txt', 'gifts (tax 2023)'),
        ('hoe', 'old/prices_2026.csv.gz', 'hoe (prices_2026)'),
        ('Boiler', '2023/bills 2024/boiler.md', 'Boiler (bills 2024)'),
        ('Photo', 'IMG_20240503.md', 'Photo'),
        ('Plan', 'room 1750.md', 'Plan'),
        ('', 'plan.txt', ''),
    ],
)
def test_a_title_has_the_year_of_the_path(title, path, with_year):
    assert title_with_year(title, path) == with_year


def test_the_column_of_dates_in_any_letters(tmp_path):
    """`date:2025` did not find rows of a table with a column `Date`."""
    files = {
        'bank.csv': 'Date,Payee,n\n2025-06-01,Baker,7\n,Miller,8\n',
        'both.csv': 'DATE,date,n\n2024,2025,1\n',
        'note.md': '---\nDate: 2025-02-03\n---\nRain.',
    }
    write_files(tmp_path, files)
    documents = {item.docid: item for item in open_corpus(tmp_path).documents()}
    assert documents['bank.csv#1'].fields == {'date': '2025-06-01', 'Payee': 'Baker', 'n': 7}
    assert documents['bank.csv#1'].text == 'Date: 2025-06-01\nn: 7'
    assert documents['bank.csv#2'].fields == {'Payee': 'Miller', 'n': 8}
    assert documents['both.csv#1'].fields == {'DATE': 2024, 'date': 2025, 'n': 1}
    assert documents['note.md'].fields == {'date': '2025-02-03'}
    (first, _) = open_corpus(tmp_path / 'bank.csv').documents()
    assert first.fields['date'] == '2025-06-01'


def test_files_and_rows_of_tables_have_the_year_in_their_title(tmp_path):
    """'price list 2026' found that of 2023: nothing that was searched had the year."""
    files = {
        'prices-2023.csv': 'name,price\nbasil,1.80\n',
        'prices-2026.csv': 'name,price\nbasil,2.30\n',
        'minutes/2025-11.md': '# Minutes\n\nThe hedge was cut.',
        'records-2024.jsonl': '{"id": "r1", "title": "Slugs", "text": "They hide."}\n',
    }
    write_files(tmp_path, files)
    titles = {item.docid: item.title for item in open_corpus(tmp_path).documents()}
    assert titles == {
        'prices-2023.csv#1': 'basil (prices-2023)',
        'prices-2026.csv#1': 'basil (prices-2026)',
        'minutes/2025-11.md': 'Minutes (2025-11)',
        'r1': 'Slugs',
    }


def test_rows_of_a_table_alone_have_the_titles_of_the_table(tmp_path):
    write_files(tmp_path, {'prices-2026.csv': 'name,price\nbasil,2.30\n'})
    (row,) = open_corpus(tmp_path / 'prices-2026.csv').documents()
    assert row.title == 'basil'
