"""Collections whose second ranking is a learned sparse model, in place of BM25."""

import json
import re
import shutil

import numpy as np
import pytest
from stored_models import (
    AGGREGATIONS,
    check_a_killed_writer_leaves_what_it_encoded,
    check_nothing_is_encoded_twice,
    command_runner,
    passage_inputs,
)

from pyserini_repbert.collection import Collection, compacting, staging
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.copying import copy_collection
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.shards import PassageShard
from pyserini_repbert.commands.explain import main as explain
from pyserini_repbert.commands.index import main as index
from pyserini_repbert.commands.search import main as search
from pyserini_repbert.encode import representations
from pyserini_repbert.errors import (
    DamagedFileError,
    InputError,
    MismatchError,
    UnknownNameError,
)
from pyserini_repbert.extensions.learned_sparse import EXTENSION, term_rows
from pyserini_repbert.extensions.learned_sparse.term_rows import TermRows
from pyserini_repbert.fusion.methods import FusionMethod
from pyserini_repbert.models.term_vectors import TermVector, TermVectors
from pyserini_repbert.ranking import Query
from pyserini_repbert.record import record_path
from pyserini_repbert.systems.encoders import document_encoder, term_weights_encoder

(TERMS,) = EXTENSION.representations
LONG = 'the cat sat on the mat . a big red dog ran in the old blue sea . new moon ' * 2
DOCUMENTS = [
    {'id': 'a', 'text': LONG, 'year': 1},
    {'id': 'b', 'text': 'red cat', 'title': 'dog', 'year': 2},
    {'id': 'c', 'text': 'the moon . the sun . the tree . leaf root seed', 'year': 2},
    {'id': 'd', 'text': '', 'year': 1},
    {'id': 'e', 'text': 'red cat', 'title': 'dog', 'year': 1},
    {'id': 'f', 'text': 'a small fish ate the bird', 'year': 3},
]
QUERIES = ['red cat', 'the old sea', 'moon', 'fish run eat']


@pytest.fixture
def dense(tiny_checkpoint):
    return document_encoder(str(tiny_checkpoint()))


@pytest.fixture
def learned(tiny_epic):
    return term_weights_encoder(str(tiny_epic()))


@pytest.fixture
def make(tmp_path, dense, learned):
    """make(name='mine', **settings) -> a collection with tiny random models."""

    def make(name='mine', **settings):
        given = {'encoder': dense, 'passage_tokens': 8, 'overlap': 2, 'sparse': learned} | settings
        return Collection.open(tmp_path / name, **given)

    return make


def passage_scores(collection, learned, query):
    """{docid: the scores of its passages}, from texts that are cut and encoded once more."""
    vector = learned.encode_query(query)
    scores = {}
    for docid, inputs in passage_inputs(collection.generation).items():
        vectors = learned.encode_pruned(inputs, 1000)
        scores[docid] = [vector.dot(weights) for weights in vectors]
    return scores


@pytest.mark.parametrize('aggregate', AGGREGATIONS)
def test_scores_are_those_of_the_encoder(make, learned, aggregate):
    with make() as collection:
        collection.sync(DOCUMENTS)
        searcher = collection.searcher(rankings=('sparse',), aggregate=aggregate)
        for query in QUERIES:
            expected = {}
            for docid, scores in passage_scores(collection, learned, query).items():
                if any(scores):
                    expected[docid] = AGGREGATIONS[aggregate](scores)
            hits = searcher.search(query, 10)
            assert {hit.docid: hit.score for hit in hits} == pytest.approx(expected, abs=1e-5)
            order = [(-hit.score, hit.docid) for hit in hits]
            assert order == sorted(order)
            assert [hit.docid for hit in searcher.search(query, 2)] == [
                hit.docid for hit in hits[:2]
            ]
        searcher.close()


def test_the_learned_ranking_stands_in_bm25s_place(make):
    with make() as collection:
        collection.sync(DOCUMENTS)
        searcher = collection.searcher()
        assert searcher.part_names == ['tiny', 'sparse']
        assert searcher.parts[1].identity() == {'ranker': 'TermSearcher', 'name': 'sparse'}
        assert searcher.settings.method == FusionMethod.INTERPOLATION
        assert searcher.settings.weights == (0.6, 0.4)
        assert collection.generation.lucene_folder is None
        hits = collection.search('red cat', 3)
        assert hits[0].excerpts
        with pytest.raises(InputError, match='its rankings are dense and sparse'):
            collection.searcher(rankings=('bm25',))


def test_a_filter_and_deleted_documents(make, learned):
    with make() as collection:
        collection.sync(DOCUMENTS)
        searcher = collection.searcher(rankings=('sparse',))
        hits = [(hit.docid, hit.score) for hit in searcher.search('the red moon', 10)]
        within = searcher.within(DocumentFilter('year:1'))
        left = [hit for hit in hits if hit[0] in ('a', 'd', 'e')]
        assert [(hit.docid, hit.score) for hit in within.search('the red moon', 10)] == left
        collection.delete(['a', 'b'])
        left = [hit for hit in hits if hit[0] not in ('a', 'b')]
        newest = collection.searcher(rankings=('sparse',))
        assert [(hit.docid, hit.score) for hit in newest.search('the red moon', 10)] == left
        # One generation is read until it is closed.
        assert [(hit.docid, hit.score) for hit in searcher.search('the red moon', 10)] == hits
        searcher.close()
        newest.close()


def test_more_like_a_document(make, learned):
    with make() as collection:
        collection.sync(DOCUMENTS)
        searcher = collection.searcher(rankings=('sparse',))
        hits = {hit.docid: hit.score for hit in searcher.more_like('b', 10)}
        texts = ['dog red cat', 'a small fish ate the bird']
        own, other = learned.encode_pruned(texts, 1000)
        assert 'b' not in hits
        assert hits['e'] == pytest.approx(own.dot(own), abs=1e-5)
        assert hits['f'] == pytest.approx(own.dot(other), abs=1e-5)
        assert searcher.more_like('d', 10) == []
        assert 'b' not in [hit.docid for hit in collection.more_like('b')]
        searcher.close()


def answers(collection):
    """All hits of both rankings, by query."""
    searcher = collection.searcher()
    topics = [Query(text, text) for text in QUERIES]
    found = []
    for part in searcher.parts:
        for ranking in part.rank(topics, None, None).values():
            found.append(dict(zip(ranking.docids, ranking.scores, strict=True)))
    searcher.close()
    return found


def test_it_equals_one_built_anew(make, learned, monkeypatch):
    monkeypatch.setattr(staging, '_PASSAGES_AT_ONCE', 3)
    monkeypatch.setattr(compacting, 'SMALL_ROWS', 4)
    monkeypatch.setattr(compacting, 'MOST_SMALL', 2)
    with make() as collection, make('anew') as anew:
        collection.sync(DOCUMENTS)
        changed = [document for document in DOCUMENTS if document['id'] != 'c']
        changed[0] = changed[0] | {'text': f'{LONG} fish ran .'}
        changed.append({'id': 'g', 'text': 'blue bird eats leaf'})
        changes = collection.sync(changed)
        assert 0 < changes.encoded < 7
        collection.add([{'id': 'h', 'text': 'sun'}])
        anew.sync([*changed, {'id': 'h', 'text': 'sun'}])
        for _ in ('before', 'after'):
            for mine, theirs in zip(answers(collection), answers(anew), strict=True):
                assert mine == pytest.approx(theirs, abs=1e-5)
            collection.compact()
        assert collection.generation.manifest.passages == anew.generation.manifest.passages
        copy = copy_collection(collection.folder, collection.folder.with_name('copy'))
        assert copy == collection.generation.manifest
    told = check_collection(collection.folder.with_name('copy'))
    assert told.endswith(f"sparse model '{learned.name}', no Lucene index")


def test_nothing_is_encoded_twice(make, monkeypatch):
    check_nothing_is_encoded_twice(make, DOCUMENTS, monkeypatch)


def test_a_killed_writer_leaves_what_it_encoded(make, monkeypatch):
    check_a_killed_writer_leaves_what_it_encoded(make, DOCUMENTS, monkeypatch)


def test_a_model_is_added_and_taken_away(make, dense, learned, monkeypatch):
    with make(sparse='none') as collection:
        n_passages = collection.sync(DOCUMENTS).encoded
        # The digests of collections without a model are as before there were any.
        manifest = collection.folder / 'generations' / '000001.json'
        assert 'sparse_model' not in manifest.read_text()
        refusal = 'built without a sparse model: its ranking is dense'
        with pytest.raises(InputError, match=refusal):
            collection.searcher(rankings=('sparse',))
    with make() as collection:
        with pytest.raises(MismatchError, match="the collection has sparse 'none', '.*' was given"):
            collection.sync(DOCUMENTS)
        with monkeypatch.context() as patch:
            # Vectors stay as they are.
            patch.setattr(type(dense), 'embed', None)
            changes = collection.sync(DOCUMENTS, rebuild=True)
        assert changes.encoded == n_passages
        expected = answers(collection)
    check_collection(collection.folder)
    with make(sparse='none') as collection:
        assert collection.sync(DOCUMENTS, rebuild=True).encoded == 0
        assert len(answers(collection)) == len(QUERIES)
        collection.compact()
    with make() as collection:
        collection.sync(DOCUMENTS, rebuild=True)
        for mine, theirs in zip(answers(collection), expected, strict=True):
            assert mine == pytest.approx(theirs, abs=1e-5)


def test_another_model_is_refused(make, learned, tiny_epic):
    with make() as collection:
        collection.sync(DOCUMENTS)
    other = term_weights_encoder(str(tiny_epic('other', seed=1)))
    with make(sparse=other) as collection:
        with pytest.raises(MismatchError, match='differs in weights') as caught:
            collection.add([{'id': 'g', 'text': 'sun'}])
        assert '\n' not in str(caught.value)
        assert collection.sync(DOCUMENTS, rebuild=True).encoded > 0
    refusal = "has sparse '.*other', 'bm25' was given"
    with make(sparse='bm25') as collection, pytest.raises(MismatchError, match=refusal):
        collection.add([{'id': 'g', 'text': 'sun'}])
    with make(sparse=None) as collection:
        assert collection.add([{'id': 'g', 'text': 'sun'}]).encoded == 1


def test_a_model_whose_files_changed_is_refused(tmp_path, make, tiny_epic):
    folder = tiny_epic('moved')
    with make(sparse=folder) as collection:
        collection.sync(DOCUMENTS)
    shutil.rmtree(folder)
    tiny_epic('moved', seed=3)
    with make(sparse=None) as collection:
        with pytest.raises(MismatchError, match='differs in weights'):
            collection.add([{'id': 'g', 'text': 'sun'}])
        with pytest.raises(MismatchError, match='was built with other weights'):
            collection.searcher()


def test_a_shard_with_damaged_weights_is_told(make):
    with make() as collection:
        collection.sync(DOCUMENTS)
        folder = collection.generation.shards[0].shard.folder
    weights = np.load(folder / 'weights.npy')
    np.save(folder / 'weights.npy', weights + 1)
    with pytest.raises(DamagedFileError, match=r'weights\.npy'):
        check_collection(collection.folder)
    np.save(folder / 'weights.npy', weights[:-1])
    with pytest.raises(DamagedFileError, match='holds float32'):
        _ = PassageShard(folder).rows_of(TERMS)


def test_generations_share_postings(make):
    with make() as collection:
        collection.sync(DOCUMENTS)
        first = collection.generation.shards[0].shard.rows_of(TERMS).postings
        collection.add([{'id': 'g', 'text': 'sun'}])
        assert collection.generation.shards[0].shard.rows_of(TERMS).postings is first


def test_a_name_that_is_no_sparse_model(make, tmp_path):
    refusal = "sparse ranking 'bm26' is unknown: expected bm25, none, the folder of a SparseEncoder"
    with make(sparse='bm26') as collection, pytest.raises(UnknownNameError, match=refusal):
        collection.sync(DOCUMENTS)
    dense = str(tmp_path / 'tiny')
    with make(sparse=dense) as collection, pytest.raises(MismatchError, match="'repbert'") as told:
        collection.sync(DOCUMENTS)
    assert '\n' not in str(told.value)


@pytest.fixture
def printed(tmp_path, tiny_checkpoint, tiny_epic, monkeypatch, capsys):
    """run(main, *arguments) -> what a command printed; 'tiny' and 'weighing' are tiny models."""
    tiny_checkpoint()
    tiny_epic('weighing')
    return command_runner(DOCUMENTS, tmp_path, monkeypatch, capsys)


def test_commands_take_it(printed, tmp_path):
    build = ['sync', '--corpus', 'corpus.jsonl', '--index', 'mine', '--quiet']
    models = ['--encoder', 'tiny', '--sparse', 'weighing']
    printed(index, *build, *models, '--passage-tokens', '8', '--overlap', '2')
    manifest = tmp_path / 'mine' / 'generations' / '000001.json'
    record = json.loads(record_path(manifest).read_text())
    assert [model['name'] for model in record['models']] == ['tiny', 'weighing']
    told = printed(index, 'check', '--index', 'mine')
    assert "sparse model 'weighing', no Lucene index" in told
    ask = ['--index', 'mine', '--query', 'red cat', '--hits', '6', '--quiet']
    explained = printed(search, *ask, '--explain')
    assert explained.count('ranks: tiny ') == explained.count('terms: ')
    alone = printed(search, *ask, '--rankings', 'sparse')
    score = re.search(r'b  \(([^)]*)\)', alone)[1]
    why = printed(
        explain, '--index', 'mine', '--query', 'red cat', '--docid', 'b', '--top', '2', '--quiet'
    )
    assert f'score {score}' in why
    (tmp_path / 'topics.tsv').write_text('q1\tred cat\n', encoding='utf-8')
    printed(search, '--index', 'mine', '--topics', 'topics.tsv', '--output', 'run.txt', '--quiet')
    assert (tmp_path / 'run.txt').read_text()
    assert 'terms: ' in printed(search, '--index', 'mine', '--like', 'b', '--explain', '--quiet')
    refused = printed(search, *ask, '--rankings', 'bm25', status=2)
    assert refused.count('\n') == 1
    refused = printed(index, *build, '--sparse', 'bm25', status=2)
    assert "has sparse 'weighing', 'bm25' was given" in refused
    assert '--rebuild' in refused


def drawn_rows(count, vocabulary=50):
    """Random weights of terms."""
    drawn = np.random.default_rng(count)
    vectors = []
    for _ in range(count):
        terms = np.sort(drawn.choice(vocabulary, drawn.integers(0, 9), replace=False))
        vectors.append(TermVector(terms, drawn.random(len(terms), np.float32)))
    together = TermVectors.of(vectors)
    return TermRows(
        'model', vocabulary, together.offsets, together.terms.astype(np.uint16), together.weights
    )


@pytest.mark.parametrize('cost', [0, 4, 10**6])
def test_some_rows_have_the_scores_of_all_to_the_bit(cost, monkeypatch):
    """However they are scored: by their own weights, or with all rows."""
    rows = drawn_rows(40)
    query = TermVector(np.array([1, 7, 20, 33]), np.array([0.3, 1.7, 0.9, 0.01], np.float32))
    expected = rows.scores(query)
    chosen = np.array([39, 0, 12, 12, 5])
    monkeypatch.setattr(term_rows, '_WEIGHT_COST', cost)
    for copied in (512, 2):
        monkeypatch.setattr(representations, '_COPIED_ROWS', copied)
        np.testing.assert_array_equal(rows.scores_of(query, chosen), expected[chosen])
    assert len(rows.scores_of(query, chosen[:0])) == 0


def test_a_few_rows_are_scored_without_the_others(monkeypatch):
    rows = drawn_rows(400)
    query = TermVector(np.arange(50), np.ones(50, np.float32))
    expected = rows.scores(query)
    monkeypatch.setattr(TermRows, 'scores', None)
    np.testing.assert_array_equal(rows.scores_of(query, np.array([3, 1])), expected[[3, 1]])


def test_rows_of_several_shards_are_copied_once():
    first, second = drawn_rows(5), drawn_rows(4)
    order = np.array([8, 0, 3, 5, 5])
    copied = first.select([second], order)
    parts = [*map(first.value, range(5)), *map(second.value, range(4))]
    assert [copied.value(row).as_dict() for row in range(5)] == [
        parts[number].as_dict() for number in order
    ]
