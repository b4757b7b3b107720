"""What `index check` recomputes of a collection, and what a search compares without it.

Each kind of damage is done to a collection that was whole, by a few bytes of SQLite or of a file.
"""

import shutil
import sqlite3

import numpy as np
import pytest

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import JUDGMENTS
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.copying import copy_collection
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.judgments import Judgment, JudgmentStore
from pyserini_repbert.commands import command
from pyserini_repbert.commands.index import main as index
from pyserini_repbert.errors import DamagedFileError

DOCUMENTS = [
    {'id': 'a', 'title': 'Cats', 'text': 'the cat sat on the mat. ' * 4, 'year': 2020, 'kind': 'X'},
    {'id': 'b', 'title': 'red blue ' * 40, 'text': 'a dog ate the fish, big and small.'},
    {'id': 'c', 'text': 'birds in the tree.', 'year': 2021, 'made': '2020-01-02 10:00'},
    {'id': 'd', 'title': 'only a title', 'text': ''},
    {'id': 'e', 'text': ''},
]
OF_SOURCES = 'the sources, their prefixes, paths, formats and links differ from the manifest'
OF_OWNERS = 'the docids or the sources of documents differ from the manifest'


@pytest.fixture(scope='module')
def shared(tmp_path_factory):
    """A folder of all tests here."""
    return tmp_path_factory.mktemp('shared')


@pytest.fixture
def folder(shared, tiny_checkpoint, tmp_path):
    """A collection with fields, a long title, documents without text, dead rows, a judgment: a copy
    of one that is made once.
    """
    template = shared / 'mine'
    if not template.exists():
        tiny_checkpoint().rename(shared / 'encoder')
        settings = {'passage_tokens': 10, 'overlap': 3, 'sparse': 'none'}
        with Collection.open(template, encoder=str(shared / 'encoder'), **settings) as collection:
            collection.sync(DOCUMENTS)
            changed = {'id': 'c', 'text': 'a bird sat in the big tree.', 'year': 2022}
            collection.sync([changed if item['id'] == 'c' else item for item in DOCUMENTS])
        JudgmentStore(template / JUDGMENTS).add([Judgment('which cat', 'a', 2, 'ann')])
    shutil.copytree(template, tmp_path / 'mine')
    return tmp_path / 'mine'


def damage(folder, statement, file='collection.sqlite'):
    """Change a file of SQLite."""
    with sqlite3.connect(folder / file) as connection:
        connection.executescript(statement)
    connection.close()


def flip(path, byte=-1):
    """Flip a bit of a file."""
    raw = bytearray(path.read_bytes())
    raw[byte] ^= 1
    path.write_bytes(raw)


def differences(folder):
    """The lines that a check gives, once it is known that the error repeats the first."""
    lines = []
    with pytest.raises(DamagedFileError) as caught:
        check_collection(folder, on_difference=lines.append)
    assert lines[0] in str(caught.value) and '\n' not in str(caught.value)
    return lines


def test_a_collection_that_is_whole_is_said_to_be(folder):
    assert check_collection(folder).startswith(f'{folder}: intact, generation 2: 5 documents')


OF_ROWS = {
    'a letter of a text': (
        "UPDATE texts SET text = replace(text, 'fish', 'fisk')",
        ["the title or the text of document 'b' is not the one that was stored"],
    ),
    'a title': (
        "UPDATE texts SET title = 'Dogs' WHERE docno = 0",
        ["the title or the text of document 'a' is not the one that was stored"],
    ),
    'a text of another type': (
        "UPDATE texts SET text = x'ff' WHERE docno = 0",
        ["the title or the text of document 'a' is not the one that was stored"],
    ),
    'the digest of a text': (
        "UPDATE fields SET text_digest = x'00' WHERE docno = 2",
        ["the title or the text of document 'c' is not the one that was stored"],
    ),
    'a field': (
        "UPDATE fields SET fields = replace(fields, '2020', '2019')",
        ["the fields of document 'a' are not those that were stored"],
    ),
    'the end of a passage': (
        'UPDATE passages SET end = end - 1 WHERE docno = 1 AND number = 0',
        ["passage 0 of document 'b' is not what was encoded"],
    ),
    'the start of a passage': (
        'UPDATE passages SET start = start + 1 WHERE docno = 0 AND number = 1',
        ["passage 1 of document 'a' is not what was encoded"],
    ),
    'passages outside of a text': (
        'UPDATE passages SET end = 9999 WHERE docno = 1; '
        'UPDATE passages SET start = -1 WHERE docno = 2',
        [
            "passage 0 of document 'b' is outside of its text",
            "passage 0 of document 'c' is outside of its text",
        ],
    ),
    'a value that filters compare': (
        "UPDATE field_values SET value = 2019.0 WHERE field = 'year' AND docno = 0",
        [
            "the values of fields of document 'a' lack year:2020.0 (number), 1 in all",
            "the values of fields of document 'a' have also year:2019.0 (number), 1 in all",
        ],
    ),
    'a value that is gone': (
        "DELETE FROM field_values WHERE field = 'kind'",
        ["the values of fields of document 'a' lack kind:x (text), 1 in all"],
    ),
    'a value of nobody': (
        "INSERT INTO field_values VALUES ('year', 'number', 1.0, 77, 1, 4611686018427387904)",
        ['document number 77 has 0 versions, and rows in field_values'],
    ),
    'a text that is gone': (
        'DELETE FROM texts WHERE docno = 4',
        ['5 documents, but 4 texts', "document 'e' has 0 texts"],
    ),
    'a document that ends': (
        'UPDATE fields SET until = 9 WHERE docno = 0',
        ['1 rows of the table fields end with a generation that does not exist'],
    ),
    'a docid that is gone': (
        'DELETE FROM documents WHERE docno = 4',
        [OF_OWNERS, 'document number 4 has no docid'],
    ),
    'another docid': ("UPDATE documents SET docid = 'z' WHERE docno = 4", [OF_OWNERS]),
    'docids that are swapped': (
        "UPDATE documents SET docid = 'z' WHERE docno = 3; "
        "UPDATE documents SET docid = 'd' WHERE docno = 4; "
        "UPDATE documents SET docid = 'e' WHERE docno = 3",
        [OF_OWNERS],
    ),
    'the source of a document': (
        "INSERT INTO sources VALUES (9, 'else'); UPDATE fields SET source = 9 WHERE docno = 0",
        [OF_OWNERS, OF_SOURCES],
    ),
    'a source that is gone': (
        'DELETE FROM sources',
        ['5 documents have a source that is not in the table of sources', OF_SOURCES],
    ),
    'a source that is new': ("INSERT INTO sources VALUES (9, 'else')", [OF_SOURCES]),
    'the name of a source': ("UPDATE sources SET name = 'else'", [OF_SOURCES]),
    'the prefix of a source': (
        "INSERT INTO source_prefixes SELECT source, 'zz/' FROM sources",
        [OF_SOURCES, '5 documents have docids without the prefix of their source'],
    ),
    'the format of a source': ("INSERT INTO source_formats VALUES (9, 'html')", [OF_SOURCES]),
    'a path of a source': ("INSERT INTO source_paths VALUES ('/else', 1)", [OF_SOURCES]),
    'a second identity': (
        "INSERT INTO identity VALUES ('x')",
        ['the collection has several identities'],
    ),
    'dead rows': (
        'DELETE FROM dead_rows',
        ['the dead rows of shard NAME differ from the manifest'],
    ),
    'dead rows of no shard': (
        'INSERT INTO dead_rows VALUES (77, 0, 2)',
        ['1 dead rows are of a shard that is not in the table of shards'],
    ),
    'dead rows to come': (
        'INSERT INTO dead_rows VALUES (2, 0, 9)',
        ['1 rows of the table dead_rows begin with a generation that does not exist'],
    ),
    'a shard to come': (
        "INSERT INTO shards VALUES (9, 'x', 1, 9, 4611686018427387904)",
        ['1 rows of the table shards begin with a generation that does not exist'],
    ),
    'a staged document without its note': (
        "INSERT INTO texts VALUES (0, 3, 4611686018427387904, '', 'a dog')",
        ['1 staged rows of the table texts are of no document that is staged'],
    ),
    'the rows of a shard': (
        'UPDATE shards SET rows = rows + 1 WHERE shard = 1',
        ['the table of shards does not have the shards of the manifest'],
    ),
}


@pytest.mark.parametrize('kind', OF_ROWS)
def test_rows_are_recomputed(kind, folder):
    statement, expected = OF_ROWS[kind]
    names = [path.name for path in (folder / 'shards').iterdir()]
    damage(folder, statement)
    lines = differences(folder)
    for name in names:
        lines = [line.replace(name, 'NAME') for line in lines]
    assert lines == expected


@pytest.mark.parametrize('statement', ['DELETE FROM', "UPDATE {0} SET prefix = 'z'; --"])
def test_the_rows_of_prefixes_are_those_that_were_written(statement, folder):
    with Collection.open(folder) as collection:
        collection.sync([{'id': 'a', 'text': 'a cat'}], source='notes', prefix='notes/')
    assert check_collection(folder).startswith(f'{folder}: intact, generation 3: 6 documents')
    damage(folder, f'{statement.format("source_prefixes")} source_prefixes')
    assert differences(folder)[0] == OF_SOURCES


@pytest.mark.parametrize(
    'statement',
    ['DELETE FROM identity', f"UPDATE identity SET id = '{0:032x}'", 'DROP TABLE identity'],
)
def test_an_identity_that_is_not_that_of_the_manifest_is_refused(statement, folder):
    damage(folder, statement)
    with pytest.raises(DamagedFileError, match='restore '):
        check_collection(folder)


def test_lines_are_capped(open_collection):
    with open_collection() as collection:
        collection.sync([{'id': f'd{number}', 'text': 'a cat'} for number in range(30)])
    damage(collection.folder, "UPDATE texts SET text = 'a dog'")
    lines = []
    with pytest.raises(DamagedFileError, match='in 20 or more places'):
        check_collection(collection.folder, on_difference=lines.append)
    assert len(lines) == 20


OF_SCHEMA = {
    'ALTER TABLE texts RENAME TO kept; CREATE VIEW texts AS SELECT * FROM kept': (
        "it has a view 'texts' that does not belong there"
    ),
    'CREATE TRIGGER t AFTER INSERT ON fields BEGIN DELETE FROM texts; END': (
        "it has a trigger 't' that does not belong there"
    ),
    'CREATE VIRTUAL TABLE v USING fts5(text)': "it has a table 'v' that does not belong there",
    'DROP INDEX passages_by_input': "index 'passages_by_input' is missing",
    'DROP TABLE source_prefixes': "table 'source_prefixes' is missing",
    'CREATE TABLE more (a)': "table 'more' does not belong there",
    'DROP TABLE staged; CREATE TABLE staged (docno INTEGER PRIMARY KEY)': (
        "table 'staged' has another definition"
    ),
    'ALTER TABLE texts ADD COLUMN more': "table 'texts' has another definition",
}


@pytest.mark.parametrize(
    ('statement', 'problem'),
    [
        (
            'DROP TABLE staged; CREATE TABLE staged (docno INTEGER PRIMARY KEY, '
            'is_text AS (length(hex(zeroblob(docno)))))',
            "table 'staged' has another definition",
        ),
        (
            'CREATE INDEX costly ON texts (length(hex(text)))',
            "it has an index 'costly' that does not belong there",
        ),
        (
            'CREATE INDEX costly ON texts (docno) WHERE length(hex(text)) > 1',
            "it has an index 'costly' that does not belong there",
        ),
    ],
)
def test_a_file_that_computes_is_opened_by_nobody(statement, problem, folder, open_collection):
    damage(folder, statement)
    with open_collection() as collection, pytest.raises(DamagedFileError, match=problem):
        collection.search('cat')
    with open_collection() as collection, pytest.raises(DamagedFileError, match=problem):
        collection.add([('new', 'a cat')])
    with pytest.raises(DamagedFileError, match=problem):
        copy_collection(folder, folder.with_name('copied'))


@pytest.mark.parametrize('statement', OF_SCHEMA)
def test_tables_and_indexes_are_those_of_the_format(statement, folder):
    damage(folder, statement)
    with pytest.raises(DamagedFileError, match=OF_SCHEMA[statement]):
        check_collection(folder)


@pytest.mark.parametrize('file', ['collection.sqlite', 'judgments.sqlite'])
def test_code_in_a_file_of_sqlite_is_refused_when_it_is_opened(file, folder):
    table = 'texts' if file == 'collection.sqlite' else 'judgments'
    damage(folder, f'CREATE TRIGGER t AFTER DELETE ON {table} BEGIN SELECT 1; END', file)
    with Collection.open(folder) as collection:
        with pytest.raises(DamagedFileError, match=f"{file} is damaged, it has a trigger 't'"):
            collection.search('cat')
        with pytest.raises(DamagedFileError, match="a trigger 't'"):
            collection.add([('f', 'a dog')]) if table == 'texts' else collection.searcher()


@pytest.mark.parametrize(
    ('statement', 'expected'),
    [
        ("UPDATE judgments SET grade = 'x'", "judgment 1 has the grade 'x'"),
        ('UPDATE judgments SET grade = 200', 'judgment 1: grade 200 was given for document'),
        ("UPDATE judgments SET docid = 'a b'", "judgment 1: docid 'a b' contains white space"),
        ('DELETE FROM questions', 'judgment 1 is of a question that does not exist'),
        ("INSERT INTO progress VALUES (1, '[')", 'row 1 of progress has invalid JSON in state'),
        ('DROP TABLE pools', "table 'pools' is missing"),
    ],
)
def test_judgments_are_checked(statement, expected, folder):
    damage(folder, statement, JUDGMENTS)
    assert any(expected in line for line in differences(folder))


def test_a_command_prints_a_line_for_each_difference(folder, capsys):
    damage(folder, "UPDATE texts SET text = 'x' WHERE docno < 2")
    assert command.run(index, ['check', '--index', str(folder)]) == 2
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        "the title or the text of document 'a' is not the one that was stored",
        "the title or the text of document 'b' is not the one that was stored",
    ]
    assert printed.err.startswith(f'error: collection {folder} is damaged in 2 places, the first: ')
    assert printed.err.count('\n') == 1


# Without a check


@pytest.mark.parametrize('name', ['documents', 'numbers'])
def test_a_search_compares_the_small_files_of_shards(name, folder):
    path = next(
        path for path in sorted((folder / 'shards').glob(f'*/{name}.npy')) if len(np.load(path)) > 1
    )
    flip(path)
    with (
        Collection.open(folder) as collection,
        pytest.raises(DamagedFileError, match=rf'{name}.npy is damaged: its sha256 is'),
    ):
        collection.search('cat', filter='kind:x')


def test_a_writer_does_not_copy_a_damaged_shard(folder):
    flip(next((folder / 'shards').glob('*/vectors.npy')))
    with Collection.open(folder) as collection, pytest.raises(DamagedFileError, match='vectors'):
        collection.compact()


OF_SHOWN = {
    "UPDATE texts SET text = 'a dog' WHERE docno = 0": "the title or the text of document 'a'",
    "UPDATE texts SET text = CAST(x'ff' AS TEXT) WHERE docno = 0": 'collection.sqlite is damaged',
    "UPDATE fields SET fields = '[' WHERE docno = 0": "the fields of document 'a' are not",
    'DELETE FROM documents WHERE docno = 0': 'document number 0 has no docid',
    'UPDATE documents SET docno = 1000000000000 WHERE docno = 4': 'a document has the number 1000',
    'DELETE FROM passages WHERE docno = 0': "document 'a' has no passage",
    "UPDATE field_values SET docno = 'x' WHERE docno = 0": 'document is not a number',
    'UPDATE field_values SET docno = 99 WHERE docno = 0': 'a document has the number 99',
    "UPDATE shards SET name = 'x' || name": 'has no row',
    'DROP TABLE texts': 'collection.sqlite is damaged (no such table: texts)',
}


@pytest.mark.parametrize('statement', OF_SHOWN)
def test_what_is_shown_is_compared(statement, folder):
    damage(folder, statement)
    with Collection.open(folder) as collection, pytest.raises(DamagedFileError) as caught:
        collection.search('cat', filter='docid:* AND NOT kind:none')
        collection.search('cat', filter='kind:*')
        collection.generation.documents(['a'])
    assert OF_SHOWN[statement] in str(caught.value)


def test_a_copy_of_a_damaged_collection_is_damaged(folder, tmp_path):
    damage(folder, "UPDATE texts SET text = 'x' WHERE docno = 0")
    shutil.copytree(folder, tmp_path / 'copy')
    with Collection.open(tmp_path / 'copy') as collection:
        mask = DocumentFilter('year:2020').mask(collection.generation)
        assert mask.tolist() == [True, False, False, False, False]
        with pytest.raises(DamagedFileError, match='`index check` names all that differs'):
            collection.generation.documents(['a'])
