"""Approximate search of token vectors: the hits of exact search, whatever became of the shards."""

import contextlib
import shutil
import string

import numpy as np
import pytest
from drawn_documents import COMPLETE, assert_same_within_filters, draw_documents, hits_of
from killed_steps import after_each_kill
from sentence_folders import write_multi_vector

from pyserini_repbert.collection import Collection, compacting
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.copying import copy_collection
from pyserini_repbert.commands import command
from pyserini_repbert.commands.index import main as index_command
from pyserini_repbert.commands.search import main as search_command
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.extensions.approximate import AnnSettings, build_ann
from pyserini_repbert.extensions.approximate.form import INDEX
from pyserini_repbert.extensions.approximate.kinds import AnnKind, Effort, token_efforts
from pyserini_repbert.search.aggregation import PassageAggregation

pytest.importorskip('sentence_transformers')

WORDS = 'the cat dog sat on red sea old dogs sitting'.split()
COUNT = 150
QUERIES = ('red cat', 'the old sea', 'dogs sitting on', '.')


def documents(count, seed=0, first=0):
    # The last is of tokens that are not scored.
    last = {'id': f'e{first}', 'text': '. , ?', 'year': 0}
    return [*draw_documents(WORDS, count, seed, first), last]


@pytest.fixture
def template(shared, tiny_checkpoint):
    """A collection with an approximate index of its token vectors that misses nothing, made once.

    The multi-vector model scores neither punctuation nor special tokens of passages.
    """
    folder = shared / 'mine'
    if not folder.exists():
        skipped = [*string.punctuation, '[CLS]', '[SEP]']
        model = write_multi_vector(shared / 'late', dense=[(16, 8, False)], skiplist=skipped)
        tiny_checkpoint().rename(shared / 'encoder')
        settings = {'passage_tokens': 10, 'overlap': 3, 'sparse': 'none'}
        opened = Collection.open(
            folder, encoder=str(shared / 'encoder'), multi_vector=str(model), **settings
        )
        with opened as collection:
            collection.add(documents(COUNT))
            build_ann(collection.folder, COMPLETE, ranking='multi')
    return folder


@pytest.fixture
def collection(template, tmp_path, monkeypatch):
    """A copy of the template, for tests that change it; its shards stay as they are."""
    monkeypatch.setattr(compacting, 'SMALL_ROWS', 5)
    copy_collection(template, tmp_path / 'mine')
    with Collection.open(tmp_path / 'mine') as opened:
        yield opened


def searcher_of(collection, ann, **settings):
    """The search of token vectors of the newest generation; close it."""
    return contextlib.closing(collection.searcher(rankings=('multi',), ann=ann, **settings))


def hits(searcher, k=20):
    return hits_of(searcher, QUERIES, k)


def assert_hits_equal(collection, **settings):
    """Compare with exact search, also within filters; returns which passages the index has."""
    with (
        searcher_of(collection, ann=False, **settings) as exact,
        searcher_of(collection, ann=True, **settings) as found,
    ):
        for k in (1, 20, 1000):
            assert hits(found, k) == hits(exact, k)
        assert_same_within_filters(found, exact, QUERIES)
        (part,) = found.parts
        return part.scan.is_covered


def mix(collection):
    """Add, change and delete documents of the first shard, and make a new one."""
    collection.add(documents(30, seed=1, first=140))
    collection.delete([f'd{number}' for number in range(15)])


@pytest.mark.parametrize('aggregate', list(PassageAggregation))
def test_hits_are_those_of_exact_search_while_the_collection_changes(collection, aggregate):
    assert assert_hits_equal(collection, aggregate=aggregate).sum() > COUNT
    mix(collection)
    is_covered = assert_hits_equal(collection, aggregate=aggregate)
    assert 0 < np.count_nonzero(is_covered) < len(is_covered)


def test_a_reader_keeps_its_generation(collection):
    """New documents are found, dead ones are not; an earlier generation has its own still."""
    with searcher_of(collection, ann=True) as before:
        expected = hits(before, 1000)
        collection.add([{'id': 'new', 'text': 'red cat', 'year': 1}])
        collection.delete([expected[0][0][0]])
        with searcher_of(collection, ann=True) as after:
            found = [docid for docid, _ in hits(after, 1000)[0]]
            assert 'new' in found
            assert expected[0][0][0] not in found
            assert after.parts[0].scan.index is before.parts[0].scan.index
        assert hits(before, 1000) == expected


def test_the_index_is_what_finds_passages(collection, monkeypatch):
    """A document whose vectors it does not find is missed, unless all passages are scored."""
    with searcher_of(collection, ann=True) as found:
        (part,) = found.parts
        scan = part.scan
        first = found.search('red cat', 1)[0].docid
        (docno,) = part.generation.docnos([first])
        find = scan.index.rows

        def without_first(queries, k):
            candidates = find(queries, k)
            rows = scan._rows.rows_of(candidates)
            return np.where(part._vectors.documents[rows] == docno, -1, candidates)

        monkeypatch.setattr(scan.index, 'rows', without_first)
        assert first not in [hit.docid for hit in found.search('red cat', 20)]
        monkeypatch.setattr(scan.index, 'rows', lambda queries, k: np.full((len(queries), 5), -1))
        # Each search is deeper than the one before, until all passages are candidates.
        assert found.search('red cat', 1)[0].docid == first


def test_scores_are_exact_where_documents_are_missed(collection):
    rough = AnnSettings(recall=0.1, hits=5, kind='hnsw')
    build_ann(collection.folder, rough, ranking='multi', overwrite=True)
    with (
        searcher_of(collection, ann=False) as exact,
        searcher_of(collection, ann=True) as found,
    ):
        for ranked, all_hits in zip(hits(found), hits(exact, 1000), strict=True):
            scores = dict(all_hits)
            assert [score for _, score in ranked] == [scores[docid] for docid, _ in ranked]


def test_each_ranking_of_vectors_needs_its_index(collection):
    """The template has none of its dense vectors."""
    with pytest.raises(InputError, match='build it with `index ann`'):
        collection.searcher(rankings=('dense', 'multi'), ann=True)


def test_recall_is_measured_on_live_passages(collection):
    mix(collection)
    record = build_ann(
        collection.folder, AnnSettings(recall=0.5, hits=10), ranking='multi', overwrite=True
    )
    assert record.ann is AnnKind.IVF
    assert 0.5 <= record.recall <= 1
    assert record.sample == 'parts of passages with noise, seed 0'
    n_live = sum(live.n_live for live in collection.generation.shards)
    n_empty = 2
    complete = build_ann(collection.folder, COMPLETE, ranking='multi', overwrite=True)
    assert complete.hits == n_live - n_empty
    with pytest.raises(InputError, match='has an approximate index: replace it'):
        build_ann(collection.folder, COMPLETE, ranking='multi')


def test_settings_that_are_tried():
    assert list(token_efforts(AnnKind.PQ, 100, 10)) == [Effort(32), Effort(64), Effort(100)]
    assert list(token_efforts(AnnKind.HNSW, 100, 100)) == [Effort(50, 50), Effort(100, 100)]
    # 100 vectors are in 2 lists.
    assert list(token_efforts(AnnKind.IVF, 100, 150)) == [Effort(75, 1), Effort(100, 2)]


def test_compaction_and_copies(collection, tmp_path):
    mix(collection)
    line = check_collection(collection.folder).splitlines()[1]
    assert line.startswith(f'{collection.folder / "tokens" / "ann"}: intact, has ')
    copy_collection(collection.folder, tmp_path / 'copy')
    with Collection.open(tmp_path / 'copy') as copied:
        assert_hits_equal(copied)
    # Its generation would keep the shards.
    collection.close()
    collection.compact()
    assert not (collection.folder / 'tokens' / 'ann').exists()
    with pytest.raises(InputError, match='build it with `index ann`, for this ranking'):
        collection.searcher(rankings=('multi',), ann=True)
    build_ann(collection.folder, COMPLETE, ranking='multi')
    assert_hits_equal(collection)


@pytest.mark.parametrize(
    ('name', 'change', 'message'),
    [
        (INDEX, lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]), 'index.faiss is damaged'),
        (INDEX, None, 'index.faiss is missing'),
        ('ann.json', lambda raw: raw.replace(b'"count"', b'"bount"'), 'does not fit'),
        ('ann.json', None, 'ann.json is missing'),
    ],
)
def test_damage_is_one_line(collection, capsys, name, change, message):
    path = collection.folder / 'tokens' / 'ann' / name
    if change:
        path.write_bytes(change(path.read_bytes()))
    else:
        path.unlink()
    with pytest.raises(DamagedFileError, match=message):
        collection.searcher(rankings=('multi',), ann=True)
    assert command.run(index_command, ['check', '--index', str(collection.folder)]) == 2
    assert capsys.readouterr().err.count('\n') == 1


def test_what_is_not_ours_is_refused(collection):
    (collection.folder / 'tokens' / 'thesis.txt').write_text('mine')
    with pytest.raises(DamagedFileError, match='is not part of a collection'):
        check_collection(collection.folder)


def test_a_killed_build_leaves_the_index_before(collection):
    """SIGKILL at every rename and removal of a build that replaces the index."""
    folder = collection.folder

    def build():
        build_ann(folder, COMPLETE, ranking='multi', overwrite=True)

    for _ in after_each_kill(build):
        check_collection(folder)
        if (folder / 'tokens' / 'ann').exists():
            assert_hits_equal(collection)
    check_collection(folder)
    assert_hits_equal(collection)
    assert sorted(path.name for path in (folder / 'tokens').glob('.ann*')) == []


def test_commands(template, tmp_path, capsys):
    copy_collection(template, tmp_path / 'mine')
    index = str(tmp_path / 'mine')
    topics = tmp_path / 'topics.tsv'
    topics.write_text('1\tred cat\n2\tthe old sea\n')
    build = ['ann', '--index', index, '--hits', '50', '--recall', '1', '--quiet']
    build += ['--ranking', 'multi', '--topics', str(topics)]
    assert command.run(index_command, build) == 2
    assert 'has an approximate index: replace it (--overwrite)' in capsys.readouterr().err
    assert command.run(index_command, [*build, '--overwrite']) == 0
    printed = capsys.readouterr().out
    assert f'recall@50 1.0000 of exact search on 2 queries ({topics})' in printed
    assert printed.startswith(f'{index}: ivf (IVF')
    search = ['--index', index, '--topics', str(topics), '--hits', '20', '--tag', 'x', '--output']
    multi = ['--rankings', 'multi']
    for name, flags in (('exact', multi), ('ann', [*multi, '--ann'])):
        assert command.run(search_command, [*search, str(tmp_path / name), *flags]) == 0
    assert (tmp_path / 'ann').read_text() == (tmp_path / 'exact').read_text()
    shutil.rmtree(tmp_path / 'mine' / 'tokens')
    capsys.readouterr()
    assert command.run(search_command, [*search, str(tmp_path / 'none'), *multi, '--ann']) == 2
    assert capsys.readouterr().err == (
        f"error: collection {index} has no approximate index of the ranking 'multi': build it with "
        '`index ann`, for this ranking\n'
    )
    assert command.run(index_command, ['ann', '--index', index, '--ranking', 'bm25']) == 2
    assert capsys.readouterr().err == (
        "error: ranking 'bm25' has no approximate index: expected dense, multi (--ranking)\n"
    )
