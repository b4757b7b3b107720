"""Rows of a table have a title: the column that names them."""

import itertools

import pytest
from folders import all_documents, write_files

from pyserini_repbert.collection.files import table_documents
from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.row_titles import title_column
from pyserini_repbert.commands import command
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.data.file_selection import FileSelection
from pyserini_repbert.data.readings import Reading
from pyserini_repbert.errors import InputError
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
        # 'shrinking' was the title of two of four rows.
        (
            ['state', 'lake'],
            [['shrinking', 'Aral'], ['stable', 'Como'], ['shrinking', 'Chad'], ['new', 'Mead']],
            'lake',
        ),
        # The first of two columns that repeat equally much.
        (['town', 'tree'], [['Ulm', 'Oak'], ['Ulm', 'Ash'], ['Bonn', 'Oak']], 'town'),
        # A column that few rows fill names few of them.
        (['nick', 'who'], [['Jo', 'Johanna'], ['', 'Bert'], ['', 'Ada']], 'who'),
        # One repetition among many does no harm.
        (
            ['plant', 'note'],
            [[name, f'is {name}'] for name in ('Pear', 'Fig', 'Ash', 'Oak', 'Elm', 'Elm')],
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


def test_a_table_that_describes_things_is_found_by_all_columns(tmp_path):
    """The part number 'KMC-X11' of a stock list was in no text."""
    [row] = read_table(tmp_path, 'article;description;count\nKMC-X11;chain 11 speed;310\n')
    assert (row.title, row.text) == ('chain 11 speed', 'article: KMC-X11\ncount: 310')
    [row] = read_table(tmp_path, 'title,description,count\nKMC-X11,chain 11 speed,310\n')
    assert (row.title, row.text) == ('KMC-X11', 'chain 11 speed')


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


def test_a_column_that_a_user_chooses_is_the_title(tmp_path):
    """Its case does not matter, and a row without a value in it has its usual title."""
    path = tmp_path / 'table.csv'
    path.write_text('id,title,Maker,text\n1,Hoe,Ada,Cuts weeds.\n2,Fork,,Lifts roots.\n')
    selection = FileSelection(title_column='maker')
    first, second = open_corpus(path, selection=selection).documents()
    assert (first.docid, first.title, first.text) == ('1', 'Ada', 'Cuts weeds.')
    assert first.fields == {'title': 'Hoe', 'Maker': 'Ada'}
    assert (second.title, second.text) == ('Fork', 'Lifts roots.')


def test_the_columns_of_a_table_alone_are_named(tmp_path):
    path = tmp_path / 'table.csv'
    path.write_text('name,n\nHoe,1\n')
    with pytest.raises(InputError, match="it has no column 'maker', but name, n"):
        list(open_corpus(path, selection=FileSelection(title_column='maker')).documents())


def test_a_chosen_title_is_stored_with_its_source(tmp_path, open_collection, capsys):
    folder = write_files(
        tmp_path / 'desk', {'a.csv': 'name,maker\nHoe,Ada\n', 'b.csv': 'tool,n\nFork,1\n'}
    )

    def titles(**selection):
        corpus = open_corpus(folder, keep_empty=True, selection=FileSelection(**selection))
        with open_collection() as collection:
            changes = collection.sync(corpus)
            documents = all_documents(collection.generation)
            return changes.changed, sorted(document.title for document in documents)

    assert titles() == (0, ['Fork', 'Hoe'])
    assert titles(title_column='maker') == (1, ['Ada', 'Fork'])
    assert titles() == (0, ['Ada', 'Fork'])
    command.run(main, ['index', 'status', '--index', str(tmp_path / 'mine')])
    assert "titles of rows: column 'maker'" in capsys.readouterr().out
    assert titles(title_column='') == (1, ['Fork', 'Hoe'])


def test_lines_without_columns_have_no_column_for_titles(tmp_path):
    path = tmp_path / 'a.jsonl'
    path.write_text('{"id": "1", "text": "cat"}\n')
    with pytest.raises(InputError, match="read as 'jsonl', which has no named columns"):
        open_corpus(path, selection=FileSelection(title_column='maker'))


@pytest.mark.parametrize('title', ['', 'maker', 'a:b;c%', 'été'])
def test_how_files_are_read_is_stored_and_read_again(title):
    reading = Reading('files', 'tsv', main_content=True, title_column=title)
    assert Reading.parsed(reading.rendered()) == reading
    assert ';' not in reading.rendered()
