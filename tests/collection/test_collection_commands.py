"""`index sync`, `add`, `delete`, `compact`, `copy`, `check`: what they print, one-line errors."""

import json
import shutil
import sqlite3

import pytest

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.copying import copy_collection
from pyserini_repbert.commands import command, search
from pyserini_repbert.commands.index import main
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.record import checksum, read_record


@pytest.fixture
def index(tmp_path, tiny_checkpoint, capsys, monkeypatch):
    """run(action, *arguments) -> (status, what was printed), in the folder of the test."""
    monkeypatch.chdir(tmp_path)
    tiny_checkpoint()

    def run(action, *arguments):
        if action in ('sync', 'add') and not (tmp_path / 'mine').exists():
            arguments = (*arguments, '--encoder', 'tiny', '--passage-tokens', '10')
            arguments = (*arguments, '--overlap', '2', '--sparse', 'none')
        words = [action, '--index', 'mine', '--quiet', *map(str, arguments)]
        status = command.run(main, words)
        found = capsys.readouterr()
        return status, found.out + found.err

    return run


def test_the_actions(index, corpus_file, tmp_path):
    corpus = corpus_file(6)
    assert index('sync', '--corpus', corpus) == (
        0,
        'mine: 6 added, 0 changed, 0 deleted, 0 unchanged; '
        'encoded 6 passages into generation 1 of the index\n',
    )
    corpus_file(5)
    assert index('sync', '--corpus', corpus.name) == (
        0,
        'mine: 0 added, 0 changed, 1 deleted, 5 unchanged; '
        'encoded 0 passages into generation 2 of the index\n',
    )
    more = tmp_path / 'more.tsv'
    more.write_text('x\tthe moon\nd1\tthe sun\n', encoding='utf-8')
    assert index('add', '--corpus', more) == (
        2,
        f"error: document 'd1' belongs to source '{corpus}', and source 'add' would replace it: "
        'give another docid, or change the document in its source; nothing was written\n',
    )
    more.write_text('x\tthe moon\ny\tthe sun\n', encoding='utf-8')
    assert index('add', '--corpus', more) == (
        0,
        'mine: 2 added, 0 changed, 0 deleted, 0 unchanged; '
        'encoded 2 passages into generation 3 of the index\n',
    )
    ids = tmp_path / 'ids.txt'
    ids.write_text('x\n\nd2\n', encoding='utf-8')
    assert index('delete', '--ids-file', ids)[1].startswith('mine: 0 added, 0 changed, 2 deleted')
    assert index('compact') == (0, 'mine: 5 documents, 5 passages in 1 shard, generation 4\n')
    assert index('compact') == (0, 'mine: 5 documents, 5 passages in 1 shard, generation 4\n')
    assert index('copy', '--output', 'other') == (
        0,
        'other: 5 documents, 5 passages, generation 4\n',
    )
    assert index('check') == (
        0,
        "mine: intact, generation 4: 5 documents, 5 passages in 1 shard, encoder 'tiny', "
        "language 'en'; no Lucene index\n",
    )


def test_a_generation_has_the_record_of_its_command(index, corpus_file, tmp_path):
    corpus = corpus_file(4)
    index('sync', '--corpus', corpus.name)
    folder = tmp_path / 'mine/generations'
    record = read_record(folder / '000001.json')
    assert record.name == 'index sync'
    assert [(read.role, read.name) for read in record.inputs] == [('corpus', corpus.name)]
    assert record.inputs[0].sha256 == checksum(corpus)
    assert [model.name for model in record.models] == ['tiny']
    # a command that publishes nothing made no generation
    before = (folder / '000001.json.record.json').read_bytes()
    index('sync', '--corpus', corpus.name)
    index('delete', '--ids', 'd3')
    index('compact')
    index('delete', '--ids', 'd1')
    index('delete', '--ids', 'd1', '--merge')
    assert read_record(folder / '000003.json').command[-2:] == ('--ids', 'd1')
    assert read_record(folder / '000003.json').models == ()
    assert sorted(path.name for path in folder.iterdir()) == [
        '000003.json',
        '000003.json.record.json',
    ]
    index('copy', '--output', 'other')
    copied = tmp_path / 'other/generations/000003.json.record.json'
    assert copied.read_bytes() == (folder / '000003.json.record.json').read_bytes() != before


def test_two_sources_with_one_docid(index, tmp_path):
    for name in ('one_a', 'b'):
        (tmp_path / name).mkdir()
        (tmp_path / name / 'README.md').write_text(f'cat {name}', encoding='utf-8')
    index('sync', '--corpus', 'one_a')
    first = tmp_path / 'one_a'
    assert index('sync', '--corpus', 'b') == (
        2,
        f"error: document 'README.md' belongs to source '{first}', and source '{tmp_path / 'b'}' "
        'has this docid, too: give the docids of one source a prefix, or name the '
        f'first source if both are the same; nothing was written (--prefix NAME/, --source {first})'
        '\n',
    )
    for _ in range(2):
        status, text = index('sync', '--corpus', 'b', '--prefix', 'b/')
        assert (status, text.endswith("generation 2 of the index; docids begin with 'b/'\n")) == (
            0,
            True,
        )
    assert index('sync', '--corpus', 'b')[1].endswith(
        "generation 2 of the index; docids begin with 'b/'\n"
    )
    status, text = index('sync', '--corpus', 'b', '--prefix', 'c/')
    assert (status, text.endswith('other docids (--rebuild)\n')) == (2, True)


def test_a_source_is_deleted(index, corpus_file, tmp_path):
    corpus = corpus_file(2)
    index('sync', '--corpus', corpus.name)
    index('sync', '--corpus', corpus.name, '--source', 'two', '--prefix', '2/')
    expected = (
        f"error: the collection has no source 'one': name one of its sources ('{corpus}', 'two'); "
        'nothing was deleted\n'
    )
    assert index('delete', '--source', 'one') == (2, expected)
    assert index('delete', '--source', 'two', '--ids', 'd1')[0] == 2
    assert index('delete', '--source', 'two') == (
        0,
        'mine: 0 added, 0 changed, 2 deleted, 2 unchanged; '
        'encoded 0 passages into generation 3 of the index; '
        "source 'two' is deleted\n",
    )
    record = read_record(tmp_path / 'mine/generations/000003.json')
    assert record.command[-2:] == ('--source', 'two')
    assert index('delete', '--source', corpus.name)[1].endswith(
        f"generation 4 of the index; source '{corpus.name}' is deleted\n"
    )


def test_errors_are_one_line(index, corpus_file, tmp_path):
    corpus = corpus_file(4)
    index('sync', '--corpus', corpus)
    corpus_file(1)
    assert index('sync', '--corpus', corpus) == (
        2,
        f"error: source {corpus} has lost 3 of 4 documents (most of them like 'd1'): check the "
        'source, whose disk may not be mounted, or allow the deletion of more than half; nothing '
        'was changed (--delete-most)\n',
    )
    status, text = index('sync', '--corpus', corpus, '--overlap', '1')
    assert (status, text.count('\n'), '(--rebuild)' in text) == (2, 1, True)
    assert index('delete')[1] == 'error: give one of --ids, --ids-file and --source (see --help)\n'
    assert index('sync', '--corpus', tmp_path / 'none')[0] == 2
    assert index('sync', '--corpus', corpus, '--delete-most')[0] == 0


def test_the_overlap_follows_the_length_of_passages(index, corpus_file):
    corpus = corpus_file(2)
    # The fixture's passages of 10 wordpieces have an overlap of 2, a fifth.
    index('sync', '--corpus', corpus)
    assert index('sync', '--corpus', corpus, '--rebuild', '--passage-tokens', '20')[0] == 0
    assert read_settings('mine') == (20, 4)
    # An overlap that was named stays.
    index('sync', '--corpus', corpus, '--rebuild', '--overlap', '7')
    index('sync', '--corpus', corpus, '--rebuild', '--passage-tokens', '30')
    assert read_settings('mine') == (30, 7)
    assert index('sync', '--corpus', corpus, '--rebuild', '--passage-tokens', '9') == (
        2,
        'error: passages of 9 wordpieces with an overlap of 7: expected an overlap of at most half '
        'of a passage, 4 (--passage-tokens, --overlap)\n',
    )


def read_settings(folder):
    """The lengths of a collection's passages and of what they repeat."""
    with Collection.open(folder) as collection:
        settings = collection.generation.settings
        return settings.passage_tokens, settings.overlap


def test_a_new_collection_of_short_passages_needs_no_overlap(open_collection):
    with open_collection(passage_tokens=64, overlap=None) as collection:
        collection.sync([('d1', 'the moon')])
        assert collection.generation.settings.overlap == 12


def test_a_collection_in_its_corpus_is_refused(tmp_path, capsys):
    folder = tmp_path / 'docs'
    folder.mkdir()
    words = ['sync', '--corpus', str(folder), '--index', str(folder / 'mine')]
    assert command.run(main, words) == 2
    assert 'is inside the corpus folder' in capsys.readouterr().err


@pytest.fixture
def collection(open_collection):
    with open_collection() as opened:
        opened.add(
            [{'id': f'd{number}', 'text': f'cat sat {"on " * number}'} for number in range(5)]
        )
        opened.add([('d1', 'the moon ate.')])
        yield opened


def test_a_copy_answers_and_goes_on_alone(collection, all_scores, query, tmp_path):
    copy_collection(collection.folder, tmp_path / 'copy')
    with Collection.open(tmp_path / 'copy') as copy:
        assert all_scores(copy, query) == all_scores(collection, query)
        assert copy.generation.sha256 == collection.generation.sha256
        copy.delete('d1')
        assert len(collection) == len(copy) + 1
    with pytest.raises(InputError, match='exists'):
        copy_collection(collection.folder, tmp_path / 'copy')


def damage_vector(folder):
    path = next((folder / 'shards').glob('*/vectors.npy'))
    raw = bytearray(path.read_bytes())
    raw[-3] ^= 1
    path.write_bytes(raw)


def change(statement):
    def damage(folder):
        with sqlite3.connect(folder / 'collection.sqlite') as connection:
            connection.execute(statement)
        connection.close()

    return damage


@pytest.mark.parametrize(
    ('damage', 'expected'),
    [
        (damage_vector, 'vectors.npy is damaged'),
        (lambda folder: shutil.rmtree(next((folder / 'shards').iterdir())), 'is missing'),
        (change('DELETE FROM passages WHERE docno = 2'), 'are not its live rows'),
        (change('UPDATE passages SET input = x\'00\' WHERE docno = 2'), 'is another passage'),
        (change('UPDATE passages SET end = 9999 WHERE docno = 2'), "document 'd2' is outside"),
        (change('DELETE FROM fields WHERE docno = 2'), '4 documents, its manifest says 5'),
        (lambda folder: (folder / 'generations/000002.json').write_text('{}'), 'is damaged'),
    ],
)  # fmt: skip
def test_a_check_finds_damage(collection, damage, expected):
    folder = collection.folder
    collection.close()
    assert check_collection(folder).startswith(f'{folder}: intact, generation 2: 5 documents')
    damage(folder)
    with pytest.raises(DamagedFileError, match=expected):
        check_collection(folder)


@pytest.mark.jvm
def test_lucene_goes_along(open_collection, corpus_file, tmp_path):
    """After a merge, hits and scores are those of an index built anew; without, the same hits."""
    from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
    from pyserini_repbert.ranking import Query

    topics = [Query(word, word) for word in ('cat', 'red mat', 'sky moon', 'dog', 'zebra')]

    def run(collection):
        searcher = LuceneSparseSearcher(collection.generation.lucene_folder)
        ranked = searcher.rank(topics, None, 50)
        searcher.close()
        return ranked

    documents = [json.loads(line) for line in corpus_file(40).read_text().splitlines()]
    documents += [{'id': 'empty', 'text': '', 'year': 1}]
    with open_collection(sparse='bm25') as lived, open_collection('new', sparse='bm25') as anew:
        lived.sync(documents)
        first = lived.generation.lucene_folder
        before = run(lived)
        files = {path.name: path.read_bytes() for path in first.iterdir()}
        reader = open_collection()
        assert reader.generation.number == 1
        changed = [
            {**documents[3], 'contents': 'zebra cat'},
            *documents[5:],
            {'id': 'z', 'text': 'sky'},
        ]
        lived.sync(changed)
        anew.sync(changed)
        assert lived.generation.manifest.lucene_dead == 0  # more than a twentieth was dead
        assert run(lived) == run(anew)
        lived.delete('z')
        assert lived.generation.manifest.lucene_dead == 1
        assert run(lived)['zebra'].docids == ('d3',)
        assert 'and 1 deleted ones' in check_collection(lived.folder)
        assert lived.sync(changed[:-1], merge=True).generation == 4
        anew.sync(changed[:-1])
        anew.compact()
        assert run(lived) == run(anew)
        # changed fields keep Lucene's folder
        lucene = lived.generation.lucene_folder
        lived.sync([{**document, 'year': 5} for document in changed[:-1]])
        assert lived.generation.lucene_folder == lucene
        # the first generation, which a reader holds, is as it was
        assert {path.name: path.read_bytes() for path in first.iterdir()} == files
        assert run(reader) == before
        reader.close()
        assert 'Lucene: 36 documents' in check_collection(lived.folder)
    with open_collection(sparse='none') as without:
        assert without.sync(changed, rebuild=True).generation == 6
        assert without.generation.lucene_folder is None


@pytest.mark.jvm
def test_the_languages_are_anserinis(open_collection):
    from pyserini_repbert.lucene.jvm import java_class
    from pyserini_repbert.lucene.languages import LANGUAGES

    known = java_class('io.anserini.analysis.AnalyzerMap').analyzerMap.keySet().toArray()
    assert sorted([*map(str, known), 'en']) == list(LANGUAGES)
    with pytest.raises(InputError, match="language 'xx' has no analyzer"):
        open_collection(language='xx').sync([('a', 'cat')])


@pytest.mark.jvm
def test_lucene_gets_no_blank_documents(open_collection):
    """Anserini refuses some of them, and all of what is added with them would be lost."""
    texts = ['\x00', '\x01\x0b', '\u2003', '\u200b', '\x85', 'cat\x00dog', '', '.']
    with open_collection(sparse='bm25') as collection:
        collection.sync((f'd{number}', text) for number, text in enumerate(texts))
        assert 'Lucene: 3 documents' in check_collection(collection.folder)


def test_an_encoder_whose_path_leads_nowhere_is_the_collections(
    index, corpus_file, tmp_path, monkeypatch, capsys
):
    corpus = corpus_file(3)
    index('sync', '--corpus', corpus)
    monkeypatch.chdir(tmp_path / 'mine')

    searched = command.run(search.main, ['--index', '../mine', '--query', 'moon'])
    message = capsys.readouterr().err

    assert searched == 2
    assert "mine names an unavailable encoder: 'tiny' is neither" in message
    assert message.endswith('(--encoder)\n')
    more = tmp_path / 'more.tsv'
    more.write_text('x\tthe moon\n', encoding='utf-8')
    status = command.run(main, ['add', '--index', '../mine', '--corpus', str(more)])
    message = capsys.readouterr().err
    assert status == 2
    assert "the collection names an unavailable encoder: 'tiny' is neither" in message
    named = ['add', '--index', '../mine', '--corpus', str(more), '--encoder', '../tiny', '--quiet']
    assert command.run(main, named) == 0
