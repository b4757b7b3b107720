"""A collection that is synced, added to and deleted from: counts, documents, vectors."""

import json
import shutil
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
from folders import all_documents, write_files

from pyserini_repbert.collection import Collection, Document, compacting, generation_manifest, store
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.compacting import move_passages
from pyserini_repbert.collection.field_counts import FieldCounter
from pyserini_repbert.collection.shards import ShardRows
from pyserini_repbert.errors import (
    BusyError,
    DamagedFileError,
    InputError,
    LostCollectionError,
    MismatchError,
)
from pyserini_repbert.indexes.kind import SearchOptions, kind_of
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.sqlite_files import make_tables

LONG = ' '.join(f'{word} ran on the red mat.' for word in ('cat', 'dog', 'fish', 'bird') * 3)
DOCUMENTS = [
    {'id': 'a', 'text': 'cat sat on the mat', 'title': 'cat', 'year': 2020},
    {'id': 'b', 'text': LONG},
    {'id': 'c#1/ü', 'text': 'cat sat on the mat', 'title': 'cat', 'tags': ['x', 'Y']},
    {'id': 'empty', 'text': '', 'lang': 'de'},
]


def test_a_second_sync_changes_nothing(open_collection):
    with open_collection() as collection:
        first = collection.sync(DOCUMENTS)
        assert str(first) == (
            '4 added, 0 changed, 0 deleted, 0 unchanged; '
            'encoded 6 passages into generation 1 of the index'
        )
        again = collection.sync(DOCUMENTS)
        assert str(again) == (
            '0 added, 0 changed, 0 deleted, 4 unchanged; '
            'encoded 0 passages into generation 1 of the index'
        )


def test_the_documents_are_read_back(open_collection):
    with open_collection() as collection:
        collection.sync(DOCUMENTS)
        generation = collection.generation
        assert generation.documents(['a', 'none', 'empty']) == [
            Document('a', 'cat sat on the mat', 'cat', {'year': 2020}),
            None,
            Document('empty', '', '', {'lang': 'de'}),
        ]
        assert generation.texts(['a', 'none']) == ['cat cat sat on the mat', None]
        assert generation.fields(['c#1/ü']) == [{'tags': ['x', 'Y']}]
        docnos = generation.docnos(['b', 'none'])
        assert docnos[1] == -1
        assert generation.docids(docnos[:1]) == ['b']
        spans = generation.passages(docnos[:1])[int(docnos[0])]
        assert [span.number for span in spans] == list(range(len(spans)))
        assert LONG[spans[0].start : spans[0].end].startswith('cat ran on the red mat.')
        assert [document.docid for document in all_documents(generation)] == [
            document['id'] for document in DOCUMENTS
        ]


def test_only_what_changes_is_encoded(open_collection):
    with open_collection() as collection:
        collection.sync(DOCUMENTS)
        renamed = [{**DOCUMENTS[0], 'id': 'z'}, *DOCUMENTS[1:]]
        assert str(collection.sync(renamed)) == (
            '0 added, 0 changed, 0 deleted, 1 renamed, 3 unchanged; '
            'encoded 0 passages into generation 2 of the index'
        )
        fields = [*renamed[:3], {'id': 'empty', 'text': '', 'lang': 'en'}]
        assert str(collection.sync(fields)) == (
            '0 added, 1 changed, 0 deleted, 3 unchanged; '
            'encoded 0 passages into generation 3 of the index'
        )
        assert collection.generation.fields(['empty']) == [{'lang': 'en'}]
        changed = [fields[0], {'id': 'b', 'text': f'{LONG} moon.'}, *fields[2:]]
        counts = collection.sync(changed)
        assert (counts.changed, counts.encoded) == (1, 1)


def test_a_source_deletes_only_what_is_its_own(open_collection, corpus_file):
    with open_collection() as collection:
        collection.sync(corpus_file(4), source='one')
        collection.add([('added', 'the moon')])
        collection.sync([('other', 'the sun')], source='two')
        assert collection.sync(corpus_file(3), source='one').deleted == 1
        kept = {document.docid for document in all_documents(collection.generation)}
        assert kept == {'d0', 'd1', 'd2', 'added', 'other'}


def test_most_documents_are_deleted_only_when_asked_for(open_collection, corpus_file):
    with open_collection() as collection:
        collection.sync(corpus_file(4), source='one')
        with pytest.raises(InputError, match='has lost 3 of 4 documents') as error:
            collection.sync(corpus_file(1), source='one')
        assert error.value.parameters == ('delete_most',)
        assert (len(collection), collection.generation.number) == (4, 1)
        assert collection.sync(corpus_file(1), source='one', delete_most=True).deleted == 3


def test_a_bad_line_leaves_the_generation_as_it_was(open_collection, corpus_file):
    with open_collection() as collection:
        corpus = corpus_file(3)
        collection.sync(corpus)
        with open(corpus, 'a', encoding='utf-8') as stream:
            stream.write('{"id": "d9", "contents": "moon tree"}\nno json\n')
        with pytest.raises(InputError, match=r'corpus\.jsonl:5: not JSON'):
            collection.sync(corpus)
        assert (len(collection), collection.generation.number) == (3, 1)
        # the next command does not publish what the refused one staged
        collection.add([('x', 'the sun')])
        assert collection.generation.docnos(['d9'])[0] == -1


def test_a_docid_that_no_run_file_can_hold_is_refused(open_collection):
    with open_collection() as collection:
        collection.sync(DOCUMENTS)
        with pytest.raises(InputError, match="docid 'a b' contains white space"):
            collection.sync([{'id': 'a b', 'text': 'cat'}])
        assert len(collection) == 4


def test_deleting(open_collection):
    with open_collection() as collection:
        collection.sync(DOCUMENTS)
        with pytest.raises(InputError, match="never had a document 'none'"):
            collection.delete(['a', 'none'])
        with pytest.raises(InputError, match='docid 1 is not text: put it in quotes'):
            collection.delete([1])
        assert str(collection.delete(['a', 'empty'])).startswith('0 added, 0 changed, 2 deleted')
        assert collection.delete('a').deleted == 0
        assert collection.generation.docnos(['a', 'b', 'empty']).tolist() == [-1, 1, -1]
        assert collection.generation.passages([0])[0] == []
        # a docid has its number for ever
        collection.add([('a', 'the moon')])
        assert collection.generation.docnos(['a'])[0] == 0


def test_a_folder_that_is_no_collection(open_collection, tmp_path):
    missing = Collection.open(tmp_path / 'missing')
    for call in (lambda: missing.delete('a'), missing.compact, lambda: missing.generation):
        with pytest.raises(InputError, match='holds no collection'):
            call()
    assert not (tmp_path / 'missing').exists()
    write_files(tmp_path / 'other', {'notes.txt': 'mine'})
    with pytest.raises(InputError, match='is not empty'):
        open_collection('other').sync(DOCUMENTS)


def test_other_settings_are_refused_and_rebuilt(
    open_collection, tiny_checkpoint, all_scores, query
):
    open_collection().sync(DOCUMENTS)
    with pytest.raises(MismatchError, match="has passage_tokens '10', '8' was given"):
        open_collection(passage_tokens=8).sync(DOCUMENTS)
    other = str(tiny_checkpoint('other', seed=1))
    with pytest.raises(MismatchError, match='differs in weights'):
        Collection.open(open_collection().folder, encoder=other).sync(DOCUMENTS)
    with Collection.open(open_collection().folder, encoder=other, passage_tokens=8) as rebuilt:
        assert rebuilt.sync(DOCUMENTS, rebuild=True).generation == 2
        scores = all_scores(rebuilt, query)
    with Collection.open(
        open_collection().folder.parent / 'new', other, passage_tokens=8, overlap=3, sparse='none'
    ) as anew:
        anew.sync(DOCUMENTS)
        assert all_scores(anew, query) == pytest.approx(scores, abs=1e-5)


def test_one_writer(open_collection):
    collection = open_collection()
    collection.sync(DOCUMENTS)

    def documents():
        yield ('x', 'cat')
        with pytest.raises(BusyError, match='is being written by process'):
            open_collection().add([('y', 'dog')])
        yield ('z', 'dog')

    assert collection.sync(documents(), source='other').added == 2


def test_readers_keep_their_generation(open_collection, all_scores, query):
    writer = open_collection()
    writer.add(DOCUMENTS)
    with open_collection() as reader:
        before = all_scores(reader, query)
        texts = reader.generation.texts(['a', 'b'])
        writer.add([('a', 'the moon'), ('b', 'the sun')])
        writer.compact()
        writer.delete('b')
        writer.close()
        open_collection().add([('c', 'sea')])
        assert all_scores(reader, query) == before
        assert reader.generation.texts(['a', 'b']) == texts
        assert reader.refresh()
        assert reader.generation.texts(['a', 'b']) == ['the moon', None]
    last = open_collection()
    last.add([('d', 'sky')])
    last.close()
    assert len(list((last.folder / 'generations').glob('0*.json'))) <= 2


def test_dataframes_and_documents(open_collection):
    pandas = pytest.importorskip('pandas')
    frame = pandas.DataFrame(
        {'docno': ['a', 'b'], 'text': ['cat', 'dog'], 'year': [2020, None], 'n': [1, 2]}
    )
    with open_collection() as collection:
        collection.sync(frame)
        assert collection.generation.fields(['a', 'b']) == [{'year': 2020.0, 'n': 1}, {'n': 2}]
        collection.sync([Document('a', 'cat', 'red', {'year': 1})], delete_most=True)
        assert collection.generation.documents(['a'])[0].title == 'red'


def test_a_folder_of_markdown(open_collection, tmp_path):
    folder = tmp_path / 'docs'
    (folder / 'sub').mkdir(parents=True)
    header = '---\ntitle: The cat\nyear: 2020\nwhen: 2020-01-02\n---\n'
    write_files(
        folder,
        {
            'one.md': f'{header}# Red\nThe cat ran.\n',
            'sub/two.md': '# Blue mat\n\nThe dog sat.\n',
            'rule.md': '---\nThe sun.\n---\n',
        },
    )
    with open_collection() as collection:
        collection.sync(folder)
        documents = collection.generation.documents(['one.md', 'sub/two.md', 'rule.md'])
        assert documents == [
            Document(
                'one.md', 'Red\n\nThe cat ran.', 'The cat', {'year': 2020, 'when': '2020-01-02'}
            ),
            Document('sub/two.md', 'The dog sat.', 'Blue mat'),
            Document('rule.md', '', 'The sun.'),
        ]


def test_lines_of_json_have_fields(open_collection, tmp_path):
    records = [
        {'id': 'a', 'title': 'Red', 'text': 'cat', 'n': 1.5},
        {'id': 'b', 'contents': 'dog', 'more': {'x': [1, None]}},
    ]
    path = tmp_path / 'corpus.jsonl'
    path.write_text('\n'.join(map(json.dumps, records)) + '\n', encoding='utf-8')
    with open_collection() as collection:
        collection.sync(path)
        assert collection.generation.documents(['a', 'b']) == [
            Document('a', 'cat', 'Red', {'n': 1.5}),
            Document('b', 'dog', '', {'more': {'x': [1, None]}}),
        ]


@pytest.mark.parametrize(
    ('more', 'problem'),
    [
        ({'title': '\ud800'}, "passage 'a' has half of a surrogate pair"),
        ({'note': 'x\udfff'}, r"field 'note': the text 'x.udfff' has half of a surrogate pair"),
        ({'\ud800': 1}, r"field '.ud800' has half of a surrogate pair"),
        ({'tags': [{'\ud800': 1}]}, r"field '.ud800' has half of a surrogate pair"),
        ({'n': 10**400}, "field 'n' is a number of more than 308 digits"),
        ({'n': [float('inf')]}, "field 'n' is inf: a finite number was expected"),
        ({'n': json.loads('[' * 400 + ']' * 400)}, "field 'n' is nested more than 50 times"),
    ],
)
def test_what_cannot_be_stored_is_refused(open_collection, tmp_path, more, problem):
    record = {'id': 'a', 'text': 'cat', **more}
    path = tmp_path / 'corpus.jsonl'
    path.write_text(json.dumps(record) + '\n', encoding='utf-8')
    fields = {name: value for name, value in record.items() if name not in ('id', 'text', 'title')}
    document = Document('a', 'cat', record.get('title', ''), fields)
    with open_collection() as collection:
        for documents in (path, [record], [document]):
            with pytest.raises(InputError, match=problem):
                collection.sync(documents)


def test_a_check_knows_all_characters(open_collection):
    texts = ['\x00', 'cat sat \x00 on the mat. The dog ran on and on.', '\u2003', '\x0b', '𝄞' * 30]
    with open_collection() as collection:
        collection.sync((f'd{number}', text) for number, text in enumerate(texts))
        assert check_collection(collection.folder).startswith(f'{collection.folder}: intact')
        assert collection.generation.texts(['d1', 'd4']) == [texts[1], texts[4]]


@pytest.fixture
def statements(monkeypatch):
    """What SQLite is asked from now on; clear it to forget what was asked before."""
    texts = []
    connect = sqlite3.connect

    def traced(*arguments, **options):
        connection = connect(*arguments, **options)
        connection.set_trace_callback(texts.append)
        return connection

    monkeypatch.setattr(store.sqlite3, 'connect', traced)
    return texts


# Tables that grow with the collection.
LARGE = {'documents', 'fields', 'field_values', 'texts', 'passages', 'dead_rows'}


def scanned_tables(folder, statements):
    """The tables that these statements read from beginning to end."""
    asked = list(statements)
    connection = store.open_for_reading(folder)
    connection.execute('CREATE TEMP TABLE moved (docno INTEGER, number INTEGER, row INTEGER)')
    tables = set()
    for statement in asked:
        is_plain = statement.startswith(('SELECT', 'INSERT', 'UPDATE', 'DELETE', 'WITH'))
        if is_plain and 'spare' not in statement:
            for step in connection.execute(f'EXPLAIN QUERY PLAN {statement}'):
                if step[3].startswith('SCAN'):
                    tables.add(step[3].split()[1])
    connection.close()
    return tables


def test_a_small_change_scans_no_large_table(open_collection, statements, monkeypatch):
    """The time of a small change would otherwise grow with the collection."""
    with open_collection() as collection:
        collection.sync(DOCUMENTS)
        statements.clear()
        monkeypatch.setattr(compacting, 'MOST_SMALL', 1)
        collection.add([('new', 'cat sat')])
        collection.delete('new')
        scanned = scanned_tables(collection.folder, statements)
    assert 'moved' in scanned
    assert not scanned & LARGE


FILTERS = (
    'year:2020',
    'tags:x AND NOT lang:de',
    'lang:d*',
    'lang:*',
    'year:[2019 TO *]',
    'docid:a',
    'docid:c*',
    'docid:*',
)


def test_a_question_scans_no_large_table(open_collection, statements):
    with open_collection() as collection:
        collection.sync(DOCUMENTS)
        statements.clear()
        for text in FILTERS:
            collection.search('cat', filter=text)
        collection.more_like('a')
        generation = collection.generation
        generation.documents(['a'])
        generation.fields(['a'])
        generation.versions(['a'])
        assert not scanned_tables(collection.folder, statements) & LARGE
        # A `FieldCounter` reads all values, when it is asked for.
        assert FieldCounter(generation).counts()['year'].documents == 1
        assert 'field_values' in scanned_tables(collection.folder, statements)


def test_a_filter_of_files_scans_no_large_table(open_collection, statements, tmp_path):
    (tmp_path / 'desk').mkdir()
    (tmp_path / 'desk' / 'a.md').write_text('cat', encoding='utf-8')
    with open_collection() as collection:
        collection.sync(tmp_path / 'desk')
        collection.search('cat')
        statements.clear()
        for text in ('type:md', 'NOT folder:desk*', 'modified:[2020 TO *]'):
            collection.search('cat', filter=text)
        generation = collection.generation
        assert generation.file_fields.of_documents([0])[0]['type'] == 'markdown'
        stored = [text for text in statements if 'file_values' not in text]
        assert not scanned_tables(collection.folder, stored) & {*LARGE, 'origins'}


def test_a_new_generation_scans_no_large_table(open_collection, statements):
    with open_collection() as collection:
        collection.sync(DOCUMENTS)
        folder = collection.folder
    kind = kind_of(str(folder))
    machine = Machine()
    before = kind.open(str(folder), SearchOptions())
    before.prepare(machine)
    with open_collection() as collection:
        collection.add([('new', 'cat sat')])
    statements.clear()
    after = kind.open(str(folder), SearchOptions(), before)
    after.prepare(machine)
    assert not scanned_tables(folder, statements) & LARGE
    before.close()
    after.close()


@pytest.mark.parametrize('n_passages', [200, 800])
def test_moving_the_passages_of_a_document_is_linear(n_passages):
    """Reading all passages of a document for each of them would take a million steps here."""
    connection = sqlite3.connect(':memory:', isolation_level=None)
    make_tables(connection, store.SCHEMA)
    for number in range(n_passages):
        passage = [1, number, 1, store.FOREVER, 0, 1, b'input', 1, number]
        connection.execute('INSERT INTO passages VALUES (?,?,?,?,?,?,?,?,?)', passage)
    numbers = np.arange(n_passages)
    rows = ShardRows(
        vectors=np.zeros((n_passages, 1), np.float32),
        documents=np.ones(n_passages, np.int32),
        numbers=numbers.astype(np.int32),
        inputs=np.zeros((n_passages, 16), np.uint8),
    )
    steps = []
    connection.set_progress_handler(lambda: steps.append(1), 100)
    move_passages(connection, rows, generation=2, shard=2)
    assert len(steps) < 3 * n_passages
    moved = connection.execute(f'SELECT number, row FROM passages WHERE until = {store.FOREVER}')
    assert moved.fetchall() == [(number, number) for number in numbers.tolist()]
    connection.close()


def test_the_rows_of_many_dead_passages_are_bits_of_a_manifest(open_collection, monkeypatch):
    monkeypatch.setattr(generation_manifest, '_MOST_RANGES', 1)
    with open_collection() as collection:
        collection.sync([(f'd{number}', 'cat') for number in range(20)])
        collection.delete(['d1', 'd4', 'd5', 'd19'])
        (shard,) = collection.generation.manifest.shards
        assert shard.dead == ()
        assert shard.dead_bits == 'TAAQ'  # 0100 1100, 0000 0000, 0001 and zeros
        assert shard.n_dead == 4
        assert len(collection.search('cat', 100)) == 16
        assert check_collection(collection.folder).startswith(f'{collection.folder}: intact')
        broken = replace(shard, dead_bits='TAA=')
        with pytest.raises(DamagedFileError, match='does not say which rows'):
            broken.live_mask()


def test_a_collection_searches_after_a_write_with_the_shards_that_are_open(open_collection):
    with open_collection() as collection:
        collection.sync(DOCUMENTS)
        collection.search('cat')
        collection.add([('new', 'cat sat')])
        collection.search('cat')
        opened = collection.generation.opened_shards
        searched = collection.searcher()
        for shard in searched.dense.vectors.shards:
            assert shard is opened[shard.name]
        searched.close()


@pytest.mark.parametrize('writes_first', [True, False])
def test_questions_and_passages_are_encoded_by_one_network(open_collection, writes_first):
    with open_collection() as collection:
        collection.sync(DOCUMENTS)
    with open_collection() as collection:
        if writes_first:
            collection.add([('new', 'cat sat')])
        collection.search('cat')
        collection.add([('newer', 'dog sat')])
        assert collection.source.query_encoder.model is collection.source.opened.model
        found = collection.search('dog sat', k=9)
        assert {'new' if writes_first else 'a', 'newer'} <= {hit.docid for hit in found}


def test_a_folder_that_is_built_anew_is_another_collection(open_collection):
    """Its generations have the numbers of those before."""
    with open_collection() as reader:
        reader.sync([{'id': 'old', 'text': 'cat'}])
        shutil.rmtree(reader.folder)
        with open_collection() as writer:
            writer.sync([{'id': 'new', 'text': 'cat'}])
            assert writer.generation.number == reader.generation.number
        with pytest.raises(LostCollectionError, match='no longer holds the collection'):
            reader.refresh()
    with open_collection() as again:
        assert [hit.docid for hit in again.search('cat')] == ['new']


def test_hits_is_another_name_of_k(open_collection):
    with open_collection() as collection:
        collection.sync([('a', 'cat'), ('b', 'cat sat'), ('c', 'cat mat')])
        assert collection.search('cat', hits=2) == collection.search('cat', k=2)
        assert len(collection.search('cat', hits=2)) == 2
        assert collection.more_like('a', hits=1) == collection.more_like('a', k=1)
