"""Rows of a table have a title: the column that names them."""

import itertools

import pytest

from pyserini_repbert.collection.files import table_documents
from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.row_titles import title_column
from pyserini_repbert.names.corpora import open_corpus


@pytest.mark.parametrize(
    ('names', 'rows', 'expected'),
    [
        (['code', 'country'], [['LI', 'Liechtenstein'], ['FR', 'France']], 'country'),
        (['country', 'Name'], [['here', 'x1']], 'Name'),
        (['plant', 'label'], [['Pear', '1'], ['Fig', '0'], ['Ash', '1'], ['Oak', '0']], 'plant'),
        (['name', 'tree'], [['here', 'Ash'], ['here', 'Oak']], 'tree'),
        (['name', 'n'], [['', 1], [None, 2]], ''),
        (['day', 'n'], [['2024-01-01', '3']], ''),
        (
            ['kind', 'plant'],
            [['a fruit', 'Pear'], ['a fruit', 'Fig'], ['a fruit', 'Plum']],
            'plant',
        ),
        (['mail', 'who'], [['ada@example.org', 'Ada']], 'who'),
        (['国', 'n'], [['日本', '1'], ['中国', '2']], '国'),
        (['note'], [['x ' * 60]], ''),
        (['a', 'b'], [[None, 'Old oak'], ['', 'Ash']], 'b'),
        (['short', 'b'], [[]], ''),
        ([], [], ''),
    ],
)
def test_the_column_that_names_rows(names, rows, expected):
    assert title_column(names, rows) == expected


def read_table(folder, text):
    path = folder / 'table.csv'
    path.write_text(text, encoding='utf-8')
    return list(open_corpus(path).documents())


def test_a_row_has_its_title_once(tmp_path):
    """A question for a country found a row without a title, '23.csv#142'."""
    first, second = read_table(tmp_path, 'code,name,Dial\nLI,Liechtenstein,423\nXX,,1\n')
    assert (first.title, first.text) == ('Liechtenstein', 'code: LI\nDial: 423')
    assert first.fields == {'code': 'LI', 'name': 'Liechtenstein', 'Dial': 423}
    assert (second.title, second.text) == ('', 'code: XX\nDial: 1')


@pytest.mark.parametrize(
    ('text', 'title', 'content'),
    [
        ('title,name\nHoe,Tool\n', 'Hoe', 'name: Tool'),
        ('tool,text\nhoe,Cuts weeds.\n', '', 'Cuts weeds.'),
        ('fruit\npear\nfig\n', 'pear', 'fruit: pear'),
    ],
)
def test_a_title_that_a_table_says_stays(tmp_path, text, title, content):
    document = read_table(tmp_path, text)[0]
    assert (document.title, document.text) == (title, content)


def test_rows_before_one_that_cannot_be_read_stay(tmp_path):
    """Where parts of files are read, the rows above a stray quotation mark were lost."""
    (tmp_path / 'a.csv').write_text('id,plant\n1,Pear\n2,Fig\n3,"Plum\n4,Ash\n')
    corpus = open_corpus(tmp_path)
    assert [(document.docid, document.title) for document in corpus.documents()] == [
        ('a.csv#1', 'Pear'),
        ('a.csv#2', 'Fig'),
    ]
    assert corpus.unread


def test_few_rows_are_held_for_the_title_where_they_are_long(tmp_path, monkeypatch):
    monkeypatch.setattr(table_documents, '_CHARACTERS_OF_TITLES', 10)
    path = tmp_path / 'a.csv'
    path.write_text('plant\n' + 'A pear tree\n' * 5)
    lines = iter(path.read_text().splitlines(keepends=True))
    monkeypatch.setattr(table_documents, '_text_lines', lambda _: lines)
    documents = table_documents.table_documents(FileToRead(path, 'a.csv'))
    assert [document.title for document in itertools.islice(documents, 1)] == ['A pear tree']
    assert len(list(lines)) == 4
