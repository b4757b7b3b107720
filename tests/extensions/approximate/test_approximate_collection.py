"""Approximate search of collections: the hits of exact search, whatever became of the shards."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from drawn_documents import COMPLETE, assert_same_within_filters, draw_documents, hits_of
from killed_steps import after_each_kill

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.copying import copy_collection
from pyserini_repbert.collection.dense_search import DenseDocumentSearcher
from pyserini_repbert.commands import command
from pyserini_repbert.commands.index import main as index_command
from pyserini_repbert.commands.search import main as search_command
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.extensions.approximate import AnnSettings, build_ann, covered
from pyserini_repbert.extensions.approximate.form import INDEX
from pyserini_repbert.extensions.approximate.ranking_vectors import DenseVectors
from pyserini_repbert.search.aggregation import PassageAggregation
from pyserini_repbert.systems.encoders import query_encoder

WORDS = 'cat dog ran the mat red moon sea zebra sky'.split()
COUNT = 700


def documents(count, seed=0, first=0):
    return draw_documents(WORDS, count, seed, first)


@pytest.fixture
def template(shared, tiny_checkpoint):
    """A collection of some 1,000 passages with an approximate index that misses nothing, and its
    checkpoint; made once.
    """
    folder = shared / 'mine'
    checkpoint = shared / 'encoder'
    if not folder.exists():
        tiny_checkpoint().rename(checkpoint)
        settings = {'passage_tokens': 10, 'overlap': 3, 'sparse': 'none'}
        with Collection.open(folder, encoder=str(checkpoint), **settings) as collection:
            collection.add(documents(COUNT))
            build_ann(collection.folder, COMPLETE)
    return folder, str(checkpoint)


@pytest.fixture
def collection(template, tmp_path):
    """A copy of the template, for tests that change it."""
    folder, checkpoint = template
    copy_collection(folder, tmp_path / 'mine')
    with Collection.open(tmp_path / 'mine', encoder=checkpoint) as opened:
        yield opened


@pytest.fixture
def encoder(template):
    return query_encoder(template[1])


QUERIES = ('cat sea', 'the red zebra', 'moon')


def hits(searcher, k=20):
    return hits_of(searcher, QUERIES, k)


def assert_hits_equal(collection, encoder, **settings):
    exact = DenseDocumentSearcher(collection.generation, encoder, **settings)
    found = DenseDocumentSearcher(collection.generation, encoder, scan='ann', **settings)
    assert hits(found) == hits(exact)
    assert_same_within_filters(found, exact, QUERIES)
    return found


def mix(collection):
    """Adds, changes and deletes documents: half of the first shard, and a new one."""
    collection.add(documents(80, seed=1, first=650))
    collection.delete([f'd{number}' for number in range(0, 60)])


@pytest.mark.parametrize('aggregation', list(PassageAggregation))
def test_hits_are_those_of_exact_search_while_the_collection_changes(
    collection, encoder, aggregation
):
    found = assert_hits_equal(collection, encoder, aggregation=aggregation)
    all_passages = found.scan.n_covered
    assert all_passages == len(found.vectors)
    mix(collection)
    found = assert_hits_equal(collection, encoder, aggregation=aggregation)
    assert 0 < found.scan.n_covered < all_passages
    assert found.scan.n_covered < np.count_nonzero(found.vectors.live)


def test_the_index_is_what_finds_passages(collection, encoder, monkeypatch):
    """Without the rows that it finds, exact search has to; with none of the first hits, they are
    missed.
    """
    found = DenseDocumentSearcher(collection.generation, encoder, scan='ann')
    first = found.search('cat sea', 1)[0].docid
    rows, _ = found.vectors.rows_of(collection.generation.docnos([first]))
    candidate_rows = found.scan.index.rows

    def without_first(queries, k):
        candidates = candidate_rows(queries, k)
        return np.where(np.isin(candidates, rows), -1, candidates)

    monkeypatch.setattr(found.scan.index, 'rows', without_first)
    missed = [hit.docid for hit in found.search('cat sea', 20)]
    assert first not in missed
    assert missed == [hit.docid for hit in found.search('cat sea', 21)][:20]
    monkeypatch.setattr(found.scan.index, 'rows', lambda queries, k: np.full((len(queries), 5), -1))
    assert found.search('cat sea', 1)[0].docid == first


def test_a_score_is_of_a_documents_best_passage_even_if_that_is_not_found(
    collection, encoder, monkeypatch
):
    long = {'id': 'long', 'text': ' '.join(WORDS * 5)}
    collection.add([long])
    build_ann(collection.folder, COMPLETE, overwrite=True)
    found = DenseDocumentSearcher(collection.generation, encoder, scan='ann')
    vector = found.encode(['cat sea'])[0]
    rows, _ = found.vectors.rows_of(collection.generation.docnos(['long']))
    scores = found.vectors.scores(vector, rows)
    worst = rows[np.argmin(scores)]
    monkeypatch.setattr(found.scan._rows, 'rows_of', lambda found: np.full_like(found, worst))
    (hit,) = [hit for hit in found.search('cat sea', 1) if hit.docid == 'long']
    assert hit.score == scores.max()


def test_deeper_searches_and_then_exact_search(collection, encoder, monkeypatch):
    found = DenseDocumentSearcher(collection.generation, encoder, scan='ann')
    exact = DenseDocumentSearcher(collection.generation, encoder)
    depths = []

    def few(queries, k):
        depths.append(k)
        return np.zeros((len(queries), 1), np.int64)

    monkeypatch.setattr(found.scan.index, 'rows', few)
    allowed = found.vectors.live.copy()
    allowed[::2] = False
    vectors = found.encode(list(QUERIES))
    tops = found.scan.search(vectors, 10, allowed)
    expected = exact._exact.search(vectors, 10, allowed)
    for top, other in zip(tops, expected, strict=True):
        assert sorted(top.rows) == sorted(other.rows)
    # Twice as deep as wanted, as half of the rows count.
    assert depths[0] in (20, 21)
    assert depths[1:] == [4 * depths[0], 16 * depths[0]]


def test_compaction_leaves_what_is_left(collection, encoder, monkeypatch):
    mix(collection)
    record = check_collection(collection.folder).splitlines()[1]
    assert f'{collection.folder / "ann"}: intact, has ' in record
    monkeypatch.setattr('pyserini_repbert.collection.compacting.SMALL_ROWS', 10)
    collection.add(documents(40, seed=2, first=2000))
    build_ann(collection.folder, COMPLETE, overwrite=True)
    collection.delete(['d2001'])
    # The shard of the new documents is rewritten; the others stay.
    monkeypatch.setattr('pyserini_repbert.collection.compacting.MOST_DEAD', 0.01)
    collection.delete(['d2002'])
    found = assert_hits_equal(collection, encoder)
    assert found.scan.n_covered < np.count_nonzero(found.vectors.live)
    monkeypatch.undo()
    # Its generation would keep the shards.
    collection.close()
    collection.compact()
    assert not (collection.folder / 'ann').exists()
    with pytest.raises(InputError, match='build it with `index ann`'):
        DenseDocumentSearcher(collection.generation, encoder, scan='ann')
    build_ann(collection.folder, COMPLETE)
    assert_hits_equal(collection, encoder)


def test_generations_share_the_index(collection, encoder):
    before = DenseDocumentSearcher(collection.generation, encoder, scan='ann')
    collection.add(documents(3, seed=3, first=5000))
    after = DenseDocumentSearcher(collection.generation, encoder, scan='ann')
    assert after.scan.index is before.scan.index
    assert len(after.vectors) > len(before.vectors)


def test_feedback_and_threads(collection, encoder):
    from pyserini_repbert.search.feedback import VectorFeedback

    exact = DenseDocumentSearcher(collection.generation, encoder)
    found = DenseDocumentSearcher(collection.generation, encoder, scan='ann')
    settings = {'feedback': VectorFeedback(), 'threads': 2}
    assert hits(found.with_settings(**settings)) == hits(exact.with_settings(**settings))


def test_recall_is_measured_on_live_passages(collection):
    mix(collection)
    rough = AnnSettings(kind='ivf', recall=0.5, hits=10)
    record = build_ann(collection.folder, rough, overwrite=True)
    assert 0.5 <= record.recall <= 1
    assert record.count == sum(len(live.shard) for live in collection.generation.shards)
    n_live = sum(live.n_live for live in collection.generation.shards)
    assert build_ann(collection.folder, COMPLETE, overwrite=True).hits == n_live
    with pytest.raises(InputError, match='has an approximate index: replace it'):
        build_ann(collection.folder, COMPLETE)
    collection.delete([f'd{number}' for number in range(60, 650)])
    with pytest.raises(InputError, match='vectors, an approximate index needs at least 624'):
        build_ann(collection.folder, COMPLETE, overwrite=True)


@pytest.mark.parametrize(
    ('name', 'change', 'message'),
    [
        (INDEX, lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]), 'index.faiss is damaged'),
        (INDEX, None, 'index.faiss is missing'),
        ('ann.json', lambda raw: raw.replace(b'"count"', b'"bount"'), 'does not fit'),
        ('ann.json', None, 'ann.json is missing'),
    ],
)
def test_damage_is_one_line(collection, encoder, capsys, name, change, message):
    path = collection.folder / 'ann' / name
    if change:
        path.write_bytes(change(path.read_bytes()))
    else:
        path.unlink()
    with pytest.raises(DamagedFileError, match=message) as raised:
        DenseDocumentSearcher(collection.generation, encoder, scan='ann')
    assert 'with `index ann`' in str(raised.value)
    assert command.run(index_command, ['check', '--index', str(collection.folder)]) == 2
    assert capsys.readouterr().err.count('\n') == 1
    DenseDocumentSearcher(collection.generation, encoder).search('cat')


def test_an_index_of_other_vectors_is_refused(collection, encoder):
    vectors = DenseDocumentSearcher(collection.generation, encoder).vectors
    index = covered.open_collection_ann(collection.folder)
    shards = tuple(replace(shard, rows=shard.rows - 1) for shard in index.record.shards)
    other = replace(index.record, shards=shards, count=index.record.count - 1)
    with pytest.raises(DamagedFileError, match='of the vectors of shard'):
        covered.CoveredRows(collection.folder, other, DenseVectors(vectors).shards)


def test_a_killed_build_leaves_the_index_before(collection, encoder):
    """SIGKILL at every rename and removal of a build that replaces the index."""
    folder = collection.folder

    def build():
        build_ann(folder, COMPLETE, overwrite=True)

    for _ in after_each_kill(build):
        check_collection(folder)
        if (folder / 'ann').exists():
            assert_hits_equal(collection, encoder)
    check_collection(folder)
    assert_hits_equal(collection, encoder)
    assert sorted(path.name for path in folder.glob('.ann*')) == []


def test_commands(template, tmp_path, capsys):
    folder, _ = template
    copy_collection(folder, tmp_path / 'mine')
    index = str(tmp_path / 'mine')
    topics = tmp_path / 'topics.tsv'
    topics.write_text('1\tcat sea\n2\tmoon\n')
    build = ['ann', '--index', index, '--hits', '50', '--recall', '1', '--quiet']
    assert command.run(index_command, build) == 2
    assert 'has an approximate index: replace it (--overwrite)' in capsys.readouterr().err
    build += ['--topics', str(topics), '--overwrite']
    assert command.run(index_command, build) == 0
    assert f'recall@50 1.0000 of exact search on 2 queries ({topics})' in capsys.readouterr().out
    search = ['--index', index, '--topics', str(topics), '--hits', '20', '--tag', 'x', '--output']
    for name, flags in (('exact', []), ('ann', ['--ann'])):
        assert command.run(search_command, [*search, str(tmp_path / name), *flags]) == 0
    assert (tmp_path / 'ann').read_text() == (tmp_path / 'exact').read_text()
    shutil.rmtree(tmp_path / 'mine' / 'ann')
    capsys.readouterr()
    assert command.run(search_command, [*search, str(tmp_path / 'none'), '--ann']) == 2
    assert capsys.readouterr().err == (
        f'error: index {index} has no approximate index: build it with `index ann`\n'
    )
