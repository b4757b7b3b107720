"""A database of a stranger has values of other types than are written: each command ends in one
line, or does its work.
"""

import contextlib
import shutil
import sqlite3

import pytest
from folders import all_documents

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.copying import copy_collection
from pyserini_repbert.collection.generation import open_generation
from pyserini_repbert.collection.judgments import Judgment
from pyserini_repbert.collection.status import source_states, stored_models
from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.extensions.trials import encode_trial, use_trial

SETTINGS = {'sparse': 'none', 'passage_tokens': 20, 'overlap': 4}
OTHER = SETTINGS | {'passage_tokens': 37}
DOCUMENTS = [
    {'id': f'd{number}', 'text': f'cat mat w{number}', 'year': number} for number in range(5)
]
# What a row has in place of a value, as SQL has it. SQLite refuses a NULL, unless the file says
# that a column may have one while it is written.
VALUES = ('NULL', "x'ff00'", "'abc'", '-1', '9223372036854775807', '1.5')


@pytest.fixture
def made(tmp_path, tiny_checkpoint):
    """A folder of a collection with a trial, staged rows of origins, and judgments."""
    encoder = str(tiny_checkpoint())
    folder = tmp_path / 'made'
    corpus = tmp_path / 'notes'
    corpus.mkdir()
    (corpus / 'note.md').write_text('# A mat\n\nthe cat sat')
    with Collection.open(folder, encoder=encoder, **SETTINGS) as collection:
        collection.sync(DOCUMENTS, 'given')
        collection.sync(str(corpus))
        collection.delete('d4')
    with Collection.open(folder, encoder=encoder, **OTHER) as collection:
        encode_trial(collection)
    with Collection.open(folder, encoder=encoder, **SETTINGS) as collection:
        collection.add([{'id': 'late', 'text': 'a cat later'}])
    judgments_of(folder).add([Judgment('cat', 'd1', 2, 'ann'), Judgment('mat', 'd2', 0, 'ann')])
    return folder


def columns_of(file):
    """The tables and columns of a database that can hold another type."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        columns = []
        for (table,) in tables.fetchall():
            for _, column, kind, _, _, key in connection.execute(f'PRAGMA table_info({table})'):
                # SQLite itself checks the number of a row.
                if not (kind == 'INTEGER' and key == 1 and table != 'origins'):
                    columns.append((table, column))
    return columns


def change(file, table, column, value):
    """Give the last row of a table another value; returns whether SQLite takes it."""
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
        statement = "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?"
        (made,) = connection.execute(statement, [table]).fetchone()
        if value == 'NULL':
            lenient = made.replace(f'{column} TEXT NOT NULL', f'{column} TEXT')
            for kind in ('INTEGER', 'BLOB'):
                lenient = lenient.replace(f'{column} {kind} NOT NULL', f'{column} {kind}')
            write_schema(connection, table, lenient)
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
        ((_, key, *_), *_) = connection.execute(f'PRAGMA table_info({table})').fetchall()
        try:
            changed = connection.execute(
                f'UPDATE {table} SET {column} = {value} WHERE {key} IN '
                f'(SELECT {key} FROM {table} ORDER BY {key} DESC LIMIT 1)'
            )
        except sqlite3.Error:
            return False
        if value == 'NULL':
            write_schema(connection, table, made)
        return changed.rowcount > 0


def write_schema(connection, table, statement):
    connection.execute('PRAGMA writable_schema = ON')
    connection.execute(
        "UPDATE sqlite_schema SET sql = ? WHERE type = 'table' AND name = ?", [statement, table]
    )
    connection.execute('PRAGMA writable_schema = RESET')


def search(folder, encoder):
    with Collection.open(folder, encoder=encoder, **SETTINGS) as collection:
        collection.search('cat', 5, filter='year:[1 TO 3] OR id:*')
        collection.more_like('d1', 3)
        list(all_documents(collection.generation))


def add(folder, encoder):
    with Collection.open(folder, encoder=encoder, **SETTINGS) as collection:
        collection.add([{'id': 'new', 'text': 'cat'}, {'id': 'late', 'text': 'another'}])


def sync(folder, encoder):
    with Collection.open(folder, encoder=encoder, **SETTINGS) as collection:
        renamed = [{**DOCUMENTS[0], 'id': 'renamed'}, *DOCUMENTS[1:4]]
        collection.sync(renamed, 'given')


def sync_folder(folder, encoder):
    corpus = folder.parent / 'notes'
    (corpus / 'note.md').rename(corpus / 'other.md')
    try:
        with Collection.open(folder, encoder=encoder, **SETTINGS) as collection:
            collection.sync(str(corpus), delete_most=True)
    finally:
        (corpus / 'other.md').rename(corpus / 'note.md')


def rebuild(folder, encoder):
    with Collection.open(
        folder, encoder=encoder, **SETTINGS | {'passage_tokens': 39}
    ) as collection:
        collection.sync(DOCUMENTS, 'given', rebuild=True)


def try_again(folder, encoder):
    with Collection.open(
        folder, encoder=encoder, **SETTINGS | {'passage_tokens': 41}
    ) as collection:
        encode_trial(collection)


def use(folder, encoder):
    with Collection.open(folder, encoder=encoder, **SETTINGS) as collection:
        use_trial(collection)


def compact(folder, encoder):
    with Collection.open(folder, encoder=encoder, **SETTINGS) as collection:
        collection.compact()


def delete(folder, encoder):
    with Collection.open(folder, encoder=encoder, **SETTINGS) as collection:
        collection.delete(['d1', 'late'])


def check(folder, encoder):
    check_collection(folder)


def copy(folder, encoder):
    copy_collection(folder, folder.with_name('copied'))


def status(folder, encoder):
    with contextlib.closing(open_generation(folder)) as generation:
        source_states(generation)
        stored_models(generation)


def read_judgments(folder, encoder):
    store = judgments_of(folder)
    store.judgments()
    store.topics()
    store.qrels()
    store.learnings()
    store.pool_sizes()
    store.add([Judgment('cat', 'd3', 1, 'ann')])


COMMANDS = (
    search,
    add,
    sync,
    sync_folder,
    rebuild,
    try_again,
    use,
    compact,
    delete,
    check,
    copy,
    status,
)


def failure_of(command, folder, encoder):
    """What a command ended in that is not one line; None for a good end."""
    try:
        command(folder, encoder)
    except PyseriniRepbertError as error:
        return f'{error!r} has several lines' if '\n' in str(error) else None
    except Exception as error:
        return f'{command.__name__}: {error!r}'
    return None


@pytest.mark.parametrize('file', ['collection.sqlite', 'judgments.sqlite'])
def test_each_command_ends_in_one_line(made, file, share_of):
    encoder = str(made.with_name('tiny'))
    commands = COMMANDS if file == 'collection.sqlite' else (read_judgments, check)
    cases = []
    for table, column in columns_of(made / file):
        for value in VALUES:
            cases += [(table, column, value, command) for command in commands]
    failures = []
    for table, column, value, command in share_of(cases, 97, 5):
        folder = made.with_name('changed')
        shutil.copytree(made, folder)
        if change(folder / file, table, column, value):
            failure = failure_of(command, folder, encoder)
            if failure is not None:
                failures.append(f'{table}.{column} = {value}: {failure}')
        shutil.rmtree(folder)
        shutil.rmtree(folder.with_name('copied'), ignore_errors=True)
    assert not failures, '\n'.join(failures)
