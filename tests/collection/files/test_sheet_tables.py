"""The rows of a workbook's tables are documents, and its other sheets are one text."""

import pytest

from pyserini_repbert.collection.files.sheet_tables import page_of_sheets, read_workbook
from pyserini_repbert.commands import command
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.data.file_selection import FileSelection
from pyserini_repbert.errors import InputError
from pyserini_repbert.names.corpora import open_corpus

openpyxl = pytest.importorskip('openpyxl')
pytest.importorskip('markitdown')

PRICES = [
    ['article', 'description', 'price'],
    ['KMC-X11', 'Chain, 11 speed', 24.5],
    ['HG-71', 'Chain, 8 speed', 12],
    ['CS-50', 'Cassette', 39],
]


def write_workbook(path, sheets):
    """Write a workbook of sheets, by name, that are lists of rows."""
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for name, rows in sheets.items():
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(row)
    workbook.save(path)
    return path


def read(tmp_path, sheets, **selection):
    """The documents of a folder with a workbook, by docid."""
    write_workbook(tmp_path / 'stock.xlsx', sheets)
    corpus = open_corpus(tmp_path, selection=FileSelection(**selection))
    return {document.docid: document for document in corpus.documents()}


def test_rows_of_a_price_list_are_documents(tmp_path):
    """A question for an article found the whole workbook."""
    documents = read(tmp_path, {'Parts 2024': PRICES})
    assert list(documents) == [f'stock.xlsx#Parts%202024#{number}' for number in (1, 2, 3)]
    row = documents['stock.xlsx#Parts%202024#1']
    assert (row.title, row.text) == ('Chain, 11 speed', 'article: KMC-X11\nprice: 24.5')
    assert row.fields == {'article': 'KMC-X11', 'description': 'Chain, 11 speed', 'price': 24.5}
    assert (row.origin.file, row.origin.row) == ('stock.xlsx', 2)
    assert [heading.title for heading in row.origin.headings_at(0)] == ['Parts 2024']


def test_sheets_that_are_no_tables_stay_text(tmp_path):
    """They are one document beside the rows, whose text says from which sheet they are."""
    notes = [['Orders are due on Friday.'], ['Ask Ada first.']]
    bikes = [['id', 'bike'], ['B7', 'Gravel bike 7'], ['B#8', 'City bike with lights']]
    documents = read(tmp_path, {'Notes': notes, 'Parts': PRICES, 'Bikes': bikes, 'Empty': []})
    assert list(documents) == [
        'stock.xlsx',
        *(f'stock.xlsx#Parts#{number}' for number in (1, 2, 3)),
        'stock.xlsx#Bikes#B7',
        'stock.xlsx#Bikes#B#8',
    ]
    whole = documents['stock.xlsx']
    assert (whole.title, whole.text) == ('Notes', 'Orders are due on Friday.\nAsk Ada first.')
    assert documents['stock.xlsx#Bikes#B7'].text == 'sheet: Bikes'
    assert documents['stock.xlsx#Bikes#B7'].fields == {'sheet': 'Bikes', 'bike': 'Gravel bike 7'}


def test_lines_above_a_table_are_text(tmp_path):
    above = [['Price list, valid from May'], [], [None, *PRICES[0]]]
    documents = read(tmp_path, {'Parts': [*above, *([None, *row] for row in PRICES[1:])]})
    assert documents['stock.xlsx'].text == 'Price list, valid from May'
    row = documents['stock.xlsx#Parts#3']
    assert (row.text, row.origin.row) == ('article: CS-50\nprice: 39', 6)


MONTHS = [['Month', 'Hours'], ['May', 31], ['June', 12]]


def tables_of(*rows):
    """The names of columns and the number of rows of each table of a sheet."""
    lines = ['Sheet']
    for number, row in enumerate(rows, 1):
        cells = ['' if cell is None else str(cell) for cell in row]
        if any(cells):
            lines.append('\t'.join([str(number), *cells]))
    found = []
    for table in read_workbook('\n'.join(lines), ()).tables:
        header, *others = table.rows
        found.append((' '.join(header.values), len(others)))
    return found


def test_a_second_table_of_a_sheet_has_its_own_columns(tmp_path):
    """Its rows had the names of the first table's columns, and its header was a row."""
    documents = read(tmp_path, {'Parts': [*PRICES, [], ['Hours of work'], *MONTHS]})
    assert documents['stock.xlsx'].text == 'Hours of work'
    second = documents['stock.xlsx#Parts:2#1']
    assert (second.title, second.text, second.origin.row) == ('May', 'Hours: 31', 8)
    assert len(documents) == 6


def test_which_rows_below_an_empty_one_are_another_table():
    parts = ('article description price', 3)
    assert tables_of(*PRICES, [], *MONTHS) == [parts, ('Month Hours', 2)]
    # The same names again.
    assert tables_of(*PRICES, [], *PRICES) == [parts, parts]
    # More rows, with and without a line that names the group.
    assert tables_of(*PRICES, [], *PRICES[1:]) == [('article description price', 6)]
    words = [['tree', 'place', 'owner'], ['Oak', 'yard', 'Ada'], ['Ash', 'lane', 'Jo']]
    south = [['Elm', 'brook', 'Ada'], ['Fir', 'hill', 'Jo'], ['Yew', 'church', 'Ada']]
    assert tables_of(*words, [], ['South'], *south) == [('tree place owner', 6)]
    wider = [['name', 'street', 'town', 'phone'], *([['Ada', 'Lane', 'Hove', 'none']] * 2)]
    assert tables_of(*PRICES, [], *wider) == [parts, ('name street town phone', 2)]
    # A header with an empty row below it.
    assert tables_of(PRICES[0], [], *PRICES[1:]) == [parts]
    assert tables_of(words[0], [], *(south * 5)) == [('tree place owner', 15)]


def test_a_long_table_below_other_text_is_a_table():
    """'As of: 3 May' stands above many lists. The lines of a short bill stay with its address."""
    as_of = ['As of', '2025-05-03']
    many = [MONTHS[0], *(MONTHS[1:] * 7)]
    assert tables_of(['Hours of work'], as_of, [], *many) == [('Month Hours', 14)]
    assert tables_of(['Bill', '17'], as_of, [], *MONTHS) == []


FORM = [['Name', 'Ada Lovelace'], ['City', 'London'], ['Phone', '030 1'], ['Country', 'UK']]


@pytest.mark.parametrize(
    ('rows', 'is_table'),
    [
        (PRICES, True),
        ([['word', 'n'], ['cat', 1], ['dog', 2]], True),
        ([['word', 'n'], ['cat', 1]], False),
        ([['word'], ['cat'], ['dog'], ['bird']], False),
        ([['Frage', 'Antwort'], ['Wann?', 'Am Montag um neun.'], ['Wo?', 'Im Hof.']], True),
        (FORM, False),
        ([['word', 'Word', 'n'], ['a', 'b', 1], ['c', 'd', 2]], False),
        ([['word', 2023, 2024], ['cat', 1, 2], ['dog', 3, 4]], False),
        ([['plant', None, 'n'], ['fig', 'x', 1], ['oak', 'y', 2]], False),
        ([['plant', 'place', 'n', 'x'], ['fig'], ['oak', None, 2], ['elm']], False),
        ([['a long ' * 20, 'n'], ['fig', 1], ['oak', 2]], False),
        ([['Nr.', '€', '#'], ['fig', 1, 3], ['oak', 2, 4]], True),
    ],
)
def test_which_sheets_are_tables(rows, is_table):
    lines = ['Sheet']
    for number, row in enumerate(rows, 1):
        cells = ['' if cell is None else str(cell) for cell in row]
        lines.append('\t'.join([str(number), *cells]))
    workbook = read_workbook('\n'.join(lines), ())
    assert bool(workbook.tables) == is_table
    assert bool(workbook.others) != is_table


def test_a_sheet_without_a_name_has_no_heading():
    """No program writes one, but a damaged file may have it."""
    workbook = read_workbook('\n1\tcat\n2\tdog', ())
    page = page_of_sheets(workbook.others)
    assert (page.lines, page.headings) == (['cat', 'dog'], [])


def test_columns_that_are_asked_for(tmp_path):
    """A sheet without a column of the text is text, and one without that of the title has its
    usual titles.
    """
    sheets = {'Parts': PRICES, 'Trees': [['tree', 'n'], ['Old oak', 1], ['Ash', 2]]}
    documents = read(tmp_path, sheets, title_column='article')
    assert documents['stock.xlsx#Parts#1'].title == 'KMC-X11'
    assert documents['stock.xlsx#Trees#1'].title == 'Old oak'
    path = tmp_path / 'stock.xlsx'
    texts = {
        item.docid: item.text for item in open_corpus(path, fields=['description']).documents()
    }
    assert texts['stock.xlsx#Parts#2'] == 'Chain, 8 speed'
    assert 'Old oak' in texts['stock.xlsx']
    selection = FileSelection(title_column='maker')
    with pytest.raises(InputError, match="it has no column 'maker', but article, description"):
        list(open_corpus(path, selection=selection).documents())


def test_cells_beside_a_table_keep_their_column(tmp_path):
    rows = [*PRICES, ['DT-1', 'Spoke', 1, None, 'sold out']]
    documents = read(tmp_path, {'Parts': rows, 'Notes': [['x']]})
    expected = 'sheet: Parts\narticle: DT-1\nprice: 1\ncolumn 5: sold out'
    assert documents['stock.xlsx#Parts#4'].text == expected


def test_rows_of_a_workbook_are_synced(tmp_path, monkeypatch, tiny_checkpoint, capsys):
    """Of a changed row, its passage alone is encoded; a file that is gone takes its rows."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / 'desk'
    folder.mkdir()
    write_workbook(folder / 'stock.xlsx', {'Parts': PRICES, 'Notes': [['Ask Ada first.']]})
    for name in 'abcde':
        (folder / f'{name}.md').write_text(f'{name} cat')
    flags = ['--index', 'mine', '--encoder', str(tiny_checkpoint()), '--sparse', 'none', '--quiet']

    def sync():
        assert command.run(main, ['index', 'sync', '--corpus', 'desk', *flags]) == 0
        return capsys.readouterr().out.partition(' into ')[0]

    assert sync().startswith('mine: 9 added, 0 changed, 0 deleted, 0 unchanged')
    command.run(main, ['index', 'status', '--index', 'mine'])
    assert 'desk: 9 documents (6 files, 3 rows), synced' in capsys.readouterr().out
    raised = [*PRICES[:2], ['HG-71', 'Chain, 8 speed', 13], PRICES[3]]
    write_workbook(folder / 'stock.xlsx', {'Parts': raised, 'Notes': [['Ask Ada first.']]})
    assert sync() == 'mine: 0 added, 1 changed, 0 deleted, 8 unchanged; encoded 1 passage'
    (folder / 'stock.xlsx').rename(folder / 'parts.xlsx')
    assert (
        sync() == 'mine: 0 added, 0 changed, 0 deleted, 4 renamed, 5 unchanged; encoded 0 passages'
    )
    (folder / 'parts.xlsx').unlink()
    assert sync() == 'mine: 0 added, 0 changed, 4 deleted, 5 unchanged; encoded 0 passages'
