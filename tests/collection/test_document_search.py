"""Documents by their passages: equal to scoring every passage, whatever is searched."""

import itertools
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pyserini_repbert.collection import dense_search
from pyserini_repbert.collection.dense_search import DenseDocumentSearcher
from pyserini_repbert.collection.excerpts import only_excerpts
from pyserini_repbert.collection.rankings import rankings_of
from pyserini_repbert.errors import InputError
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.search.aggregation import PassageAggregation
from pyserini_repbert.search.documents_of_passages import documents_of_run
from pyserini_repbert.search.exact import ExactIndex
from pyserini_repbert.systems.encoders import query_encoder

NUMBERS = itertools.count()
WORDS = 'cat dog ran the mat red moon sea zebra sky'.split()


@pytest.fixture
def encoder(checkpoint):
    return query_encoder(checkpoint)


def words(random, count):
    return ' '.join(random.choice(WORDS, count))


def lived_collection(make, random, n_documents, longest):
    """A collection of documents, one of many passages, some changed and deleted since."""
    collection = make(f'c{next(NUMBERS)}')
    documents = [
        {'id': f'd{number}', 'text': words(random, random.integers(0, 30))}
        for number in range(n_documents)
    ]
    documents.append({'id': 'long', 'text': words(random, longest)})
    collection.add(documents)
    collection.add([('d0', words(random, 25)), ('new#1', words(random, 5))])
    if n_documents > 2:
        collection.delete(['d1'])
    return collection


def expected_scores(all_scores, aggregation):
    """{docid: score} from {(docid, number): score}."""
    by_docid = {}
    for (docid, number), score in sorted(all_scores.items()):
        by_docid.setdefault(docid, {})[number] = score
    totals = {}
    for docid, scores in by_docid.items():
        values = sorted(scores.values(), reverse=True)
        totals[docid] = {
            'max': values[0],
            'first': scores[0],
            'mean': sum(values) / len(values),
            'top3': sum(values[:3]) / len(values[:3]),
        }[aggregation]
    return totals


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.sampled_from([0, 20, 400]),
    st.integers(1, 15),
    st.sampled_from(list(PassageAggregation)),
    st.sampled_from([1, 256]),
)
def test_equals_scoring_every_passage(
    open_collection, encoder, all_scores, seed, n_documents, longest, k, aggregation, least_depth
):
    random = np.random.default_rng(seed)
    least = mock.patch.object(dense_search, '_LEAST_DEPTH', least_depth)
    with least, lived_collection(open_collection, random, n_documents, longest) as collection:
        searcher = DenseDocumentSearcher(collection.generation, encoder, aggregation=aggregation)
        queries = [words(random, 2) for _ in range(3)]
        run = searcher.batch_search(queries, ['1', '2', '3'], k)
        for query, hits in zip(queries, run.values(), strict=True):
            totals = expected_scores(
                all_scores(collection, encoder.encode(query)), str(aggregation)
            )
            best = sorted(totals.values(), reverse=True)[:k]
            assert [hit.score for hit in hits] == pytest.approx(best, abs=1e-4)
            for hit in hits:
                assert hit.score == pytest.approx(totals[hit.docid], abs=1e-4)


def test_a_long_document_costs_one_more_search(open_collection, encoder, monkeypatch):
    monkeypatch.setattr(dense_search, '_LEAST_DEPTH', 1)
    searches = []
    search = ExactIndex.search

    def counted(self, *arguments):
        searches.append(arguments)
        return search(self, *arguments)

    with open_collection() as collection:
        others = [(f'd{number}', 'sea') for number in range(20)]
        collection.sync([('long', 'cat ran. ' * 400), *others])
        searcher = DenseDocumentSearcher(collection.generation, encoder)
        expected = searcher.search('cat ran', len(searcher))[:3]
        monkeypatch.setattr(ExactIndex, 'search', counted)
        # Fewer rows than the long document has.
        monkeypatch.setattr(type(searcher), '__len__', lambda self: len(searcher.vectors))
        assert searcher.search('cat ran', 3) == expected
        assert expected[0].docid == 'long'
    assert len(searches) == 2


@pytest.fixture
def garden(open_collection):
    """Four documents: of three passages, of one, without text, and deleted."""
    collection = open_collection('garden', passage_tokens=10, overlap=2)
    text = 'the cat ran. ' * 4 + 'red moon sea. ' * 4 + 'zebra sky dog. ' * 4
    collection.sync(
        [
            {'id': 'long', 'text': text, 'title': 'mat'},
            {'id': 'short', 'text': 'the dog ran'},
            {'id': 'empty', 'text': ''},
            {'id': 'gone', 'text': 'the cat'},
        ]
    )
    collection.delete('gone')
    yield collection
    collection.close()


def test_excerpts_are_the_best_passages_with_exact_offsets(garden, encoder, all_scores):
    searcher = DenseDocumentSearcher(garden.generation, encoder)
    query = 'red zebra'
    found = searcher.excerpts(query, ['long', 'short', 'empty', 'gone', 'never'], 2)
    assert found['empty'] == ()
    assert set(found) == {'long', 'short', 'empty'}
    assert len(found['short']) == 1
    scores = all_scores(garden, encoder.encode(query))
    numbers = sorted(
        (number for docid, number in scores if docid == 'long'),
        key=lambda number: -scores['long', number],
    )
    assert len(numbers) > 3
    assert [excerpt.number for excerpt in found['long']] == numbers[:2]
    (document,) = garden.generation.documents(['long'])
    for excerpt in found['long']:
        assert document.text[excerpt.start : excerpt.end] == excerpt.text
        assert excerpt.model_input == f'mat {excerpt.text}'


def test_an_only_passage_is_found_without_the_query(garden, encoder):
    searcher = DenseDocumentSearcher(garden.generation, encoder)
    docids = ['short', 'empty', 'gone', 'never']
    only = only_excerpts(garden.generation, '', docids)
    assert set(only) == {'short', 'empty'}
    assert only == searcher.excerpts('the dog', docids)
    assert only_excerpts(garden.generation, '', ['short', 'long']) is None


def test_hits_are_documents_with_their_best_passage(garden):
    hits = garden.search('red zebra', 5)
    assert sorted(hit.docid for hit in hits) == ['long', 'short']
    for hit in hits:
        assert hit.text == hit.excerpts[0].model_input


def test_a_searcher_keeps_its_generation(garden):
    with_two = garden.searcher()
    garden.add([('later', 'red zebra')])
    assert 'later' not in {hit.docid for hit in with_two.search('red zebra', 9)}
    assert 'later' in {hit.docid for hit in garden.search('red zebra', 9)}
    with_two.close()


def test_a_frame_of_queries(garden):
    pandas = pytest.importorskip('pandas')
    queries = pandas.DataFrame({'qid': [7, 8], 'query': ['red zebra', 'the dog']})
    found = garden.search(queries, 2)
    assert found['qid'].tolist() == ['7', '7', '8', '8']
    assert found['rank'].tolist() == [1, 2, 1, 2]
    for row in found.itertuples():
        (document,) = garden.generation.documents([row.docid])
        assert row.text.endswith(document.text[row.start : row.end])
    with pytest.raises(InputError, match='lacks the columns query'):
        garden.search(queries[['qid']])
    missing = pandas.DataFrame({'qid': ['1', '2'], 'query': ['snails', float('nan')]})
    with pytest.raises(InputError, match="qid '2' has no query"):
        garden.search(missing)


def test_a_collection_without_lucene_has_one_ranking(garden):
    settings_of_garden = garden.generation.settings
    assert [str(one) for one in rankings_of(settings_of_garden)] == ['dense']
    with pytest.raises(InputError, match='built without Lucene'):
        rankings_of(settings_of_garden, ['bm25'])
    with pytest.raises(InputError, match="ranking of a collection 'splade' is unknown"):
        rankings_of(settings_of_garden, ['splade'])
    with pytest.raises(InputError, match='name each once'):
        rankings_of(settings_of_garden, ['dense', 'dense'])


def test_an_empty_collection_has_no_hits(open_collection):
    with open_collection('none') as collection:
        collection.sync([])
        assert collection.search('cat') == []


def test_no_queries_have_no_rankings(garden):
    searcher = garden.searcher()
    assert searcher.batch_search([], []) == {}
    searcher.close()


def test_documents_of_a_run_of_passages():
    run = {'1': Ranking(['b#2', 'a#0', 'b#0', 'plain', 'a#1'], [9.0, 8.0, 4.0, 3.0, 1.0])}

    def found(aggregation):
        ranking = documents_of_run(run, PassageAggregation(aggregation))['1']
        return list(zip(ranking.docids, ranking.scores, strict=True))

    assert found('max') == [('b', 9.0), ('a', 8.0), ('plain', 3.0)]
    assert found('first') == [('a', 8.0), ('b', 4.0), ('plain', 3.0)]
    assert found('mean') == [('b', 6.5), ('a', 4.5), ('plain', 3.0)]
