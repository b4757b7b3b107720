"""The graph of neighbours beside an index: made by a command, checked, and of one state alone."""

import numpy as np
import pytest
from graphs import documents_of, neighbours

from pyserini_repbert.collection import Collection
from pyserini_repbert.commands import command
from pyserini_repbert.commands.index import main as index_command
from pyserini_repbert.commands.search import main as search
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.extensions.neighbours.building import build_neighbours
from pyserini_repbert.extensions.neighbours.form import EDGES, LOCK, NEIGHBOURS, RECORD
from pyserini_repbert.indexes.kind import SearchOptions, kind_of
from pyserini_repbert.indexes.machine import Machine

DOCUMENTS = [
    ('cats', 'red cat sat on the mat', 'a'),
    ('cat', 'the cat sat', 'a'),
    ('dogs', 'big dog ran', 'b'),
    ('dog', 'the dog ran', 'a'),
    ('fish', 'blue fish in the sea', 'b'),
]


@pytest.fixture
def folder(open_collection, tmp_path):
    """A collection of five documents without Lucene, of the types a and b."""
    from pyserini_repbert.data.documents import Document

    with open_collection() as collection:
        collection.sync(
            [Document(docid, text, fields={'type': kind}) for docid, text, kind in DOCUMENTS]
        )
    return tmp_path / 'mine'


@pytest.fixture
def graph(folder):
    """Makes the graph of the collection as it is."""

    def make(n=3, overwrite=False):
        index = kind_of(str(folder)).open(str(folder), SearchOptions())
        try:
            return build_neighbours(index, Machine(), 'dense', n, overwrite)
        finally:
            index.close()

    return make


@pytest.fixture
def documents(folder):
    """documents(filter=None) -> those of the collection as it is."""
    opened = []

    def make(wanted=None):
        index = kind_of(str(folder)).open(str(folder), SearchOptions(filter=wanted))
        opened.append(index)
        return documents_of(index)

    yield make
    for index in opened:
        index.close()


def run(main, *arguments):
    return command.run(main, [str(argument) for argument in arguments])


def test_the_command_makes_it_once(folder, capsys):
    assert run(index_command, 'neighbours', '--index', folder, '--neighbours', 2, '--quiet') == 0
    expected = f'{folder}: 2 neighbours of each document by dense, 5 documents\n'
    assert capsys.readouterr().out == expected
    edges = np.load(folder / NEIGHBOURS / EDGES)
    assert (edges.shape, edges.dtype) == ((5, 2), np.int32)
    assert not (folder / LOCK).exists()
    first = (folder / NEIGHBOURS / RECORD).read_bytes()
    assert run(index_command, 'neighbours', '--index', folder, '--quiet') == 2
    assert '--overwrite' in capsys.readouterr().err
    assert (folder / NEIGHBOURS / RECORD).read_bytes() == first
    arguments = ('--neighbours', 2, '--overwrite', '--quiet')
    assert run(index_command, 'neighbours', '--index', folder, *arguments) == 0
    assert (folder / NEIGHBOURS / RECORD).read_bytes() == first
    # The collection is whole with it, and is written.
    assert run(index_command, 'check', '--index', folder) == 0
    said = f'{folder / NEIGHBOURS}: intact, 2 neighbours of each document by dense'
    assert said in capsys.readouterr().out.splitlines()


def test_neighbours_are_those_of_more_like_this(folder, graph, documents):
    graph()
    with Collection.open(folder) as collection:
        for docid, _, _ in DOCUMENTS:
            like = tuple(hit.docid for hit in collection.more_like(docid, 3))
            assert neighbours(documents(), [docid], 3) == [like]


def test_a_filter_leaves_out_neighbours_that_do_not_match(graph, documents):
    graph(n=4)
    (all_of_them,) = neighbours(documents(), ['cats'], 4)
    (of_a,) = neighbours(documents('type:a'), ['cats'], 4)
    assert sorted(all_of_them) == ['cat', 'dog', 'dogs', 'fish']
    assert of_a == tuple(docid for docid in all_of_them if docid in ('cat', 'dog'))


def test_a_new_generation_needs_a_new_graph(folder, graph, documents):
    graph()
    with Collection.open(folder) as collection:
        collection.add([('hat', 'old hat')])
    said = 'before it changed: make it again with `index neighbours`'
    with pytest.raises(MismatchError, match=said):
        neighbours(documents(), ['cats'], 3)
    said = f'{folder / NEIGHBOURS}: has the neighbours of what the index was before it changed'
    assert said in kind_of(str(folder)).verify(folder, print).splitlines()
    graph(overwrite=True)
    assert len(neighbours(documents(), ['hat'], 3)[0]) == 3
    with Collection.open(folder) as collection:
        collection.delete(['cat'])
    graph(n=4, overwrite=True)
    assert neighbours(documents(), ['cat'], 3) == [()]
    assert 'cat' not in neighbours(documents(), ['cats'], 4)[0]


def test_a_copy_has_the_graph(folder, graph, documents, capsys):
    graph()
    copy = folder.with_name('copy')
    assert run(index_command, 'copy', '--index', folder, '--output', copy) == 0
    assert 'left out' not in capsys.readouterr().out
    for name in (EDGES, RECORD):
        assert (copy / NEIGHBOURS / name).read_bytes() == (folder / NEIGHBOURS / name).read_bytes()
    assert run(index_command, 'check', '--index', copy) == 0
    assert f'{copy / NEIGHBOURS}: intact, 3 neighbours' in capsys.readouterr().out


def test_a_copy_has_no_graph_of_an_earlier_generation(folder, graph, capsys):
    graph()
    with Collection.open(folder) as collection:
        collection.add([('hat', 'old hat')])
    copy = folder.with_name('copy')
    assert run(index_command, 'copy', '--index', folder, '--output', copy) == 0
    _, line = capsys.readouterr().out.splitlines()
    assert line == (
        f'{folder / NEIGHBOURS} has the neighbours of what the index was before it changed, and '
        'was left out: make it again with `index neighbours`'
    )
    assert not (copy / NEIGHBOURS).exists()


@pytest.mark.jvm
def test_a_lucene_index_has_none(tmp_path, capsys):
    corpus = tmp_path / 'corpus.tsv'
    corpus.write_text('cats\tred cat sat\n', encoding='utf-8')
    lucene = tmp_path / 'lucene'
    arguments = ('--corpus', corpus, '--output', lucene, '--quiet')
    assert run(index_command, 'lucene', *arguments) == 0
    capsys.readouterr()
    assert run(index_command, 'neighbours', '--index', lucene, '--quiet') == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert 'is a Lucene index: a graph of neighbours is of a dense index or a collection' in line
    assert 'encode its passages, or make a collection of its documents' in line


def test_without_a_graph_and_with_a_damaged_one(folder, graph, documents):
    with pytest.raises(InputError, match='has no graph of neighbours'):
        neighbours(documents(), ['cats'], 3)
    graph()
    path = folder / NEIGHBOURS / EDGES
    path.write_bytes(path.read_bytes()[:-1] + b'\1')
    with pytest.raises(DamagedFileError, match='is damaged'):
        neighbours(documents(), ['cats'], 3)


@pytest.mark.parametrize(
    ('arguments', 'said'),
    [
        (['--neighbours', '2000'], 'expected 1 to 1024'),
        (['--ranking', 'bm25'], 'built without Lucene'),
        (['--ranking', 'nothing'], "'nothing' is unknown: expected one of dense, bm25"),
    ],
)
def test_what_the_command_refuses_is_one_line(folder, capsys, arguments, said):
    assert run(index_command, 'neighbours', '--index', folder, '--quiet', *arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert not (folder / NEIGHBOURS).exists()


@pytest.mark.parametrize(
    ('stage', 'said'),
    [
        ('ladr@3', 'has no graph of neighbours'),
        ('ladr@3:depth=4', "'depth' is for LADR's method 'adaptive'"),
        ('ladr@3:sideways', "method of LADR 'sideways'"),
        ('mmr@3:diversify=2', 'is not between 0 and 1'),
        ('mmr@3:neighbours=2', 'compares the candidates of a list'),
    ],
)
def test_what_a_search_refuses_is_one_line(folder, capsys, stage, said):
    arguments = ('--index', folder, '--query', 'cat', '--rerank', stage, '--quiet')
    assert run(search, *arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_a_search_within_a_filter(folder, graph, cross_encoder_folder, capsys):
    """The reranker reaches documents that match alone."""
    graph(n=4)
    mono = cross_encoder_folder('monobert')
    for stage in (f'{mono}@3:neighbours=4', 'ladr@1:neighbours=4', 'mmr@3'):
        arguments = ['--index', folder, '--query', 'cat', '--filter', 'type:a', '--hits', 9]
        assert run(search, *arguments, '--rerank', stage, '--quiet') == 0
        lines = capsys.readouterr().out.splitlines()
        docids = sorted(line.split()[1] for line in lines if line.strip()[:1].isdigit())
        assert docids == ['cat', 'cats', 'dog']


def test_a_collection_without_documents(open_collection, tmp_path, capsys):
    with open_collection() as collection:
        collection.add([('a', 'cat')])
        collection.delete(['a'])
    assert run(index_command, 'neighbours', '--index', tmp_path / 'mine', '--quiet') == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith('has no documents, and so no neighbours: add some')
