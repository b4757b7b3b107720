"""/v1/{index}/search, /doc, /batch and /compare: the shape of Pyserini's server, and what is
added.
"""

from pathlib import Path

import pytest

from pyserini_repbert.errors import MissingResourceError
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank import MonoBertReranker
from pyserini_repbert.search import DenseSearcher
from pyserini_repbert.serve import indexes
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.requests import SearchRequest

QUERY = 'cat sat on the mat'
JUDGED_QID = 'q1'  # the topic whose text the query is


def _search(client, **parameters):
    answer = client.get('/v1/tiny/search', params={'query': QUERY, **parameters})
    assert answer.status_code == 200, answer.text
    return answer.json()


def _compare(client, a, b, hits):
    answer = client.post('/v1/tiny/compare', json={'query': QUERY, 'hits': hits, 'a': a, 'b': b})
    assert answer.status_code == 200, answer.text
    return answer.json()


def _document(client, **parameters):
    return client.get('/v1/tiny/doc/d3', params=parameters).json()


def _docids(answer):
    return [hit['docid'] for hit in answer['candidates']]


def _provenance(answer, docid):
    """What an answer says of a hit's ranks: {name of a ranking: {'rank': …}}."""
    (hit,) = [hit for hit in answer['candidates'] if hit['docid'] == docid]
    return {place['ranking']: place for place in hit['provenance']}


def test_a_search_has_pyserinis_shape(client):
    answer = _search(client, hits=3)
    assert answer['api'] == 'v1'
    assert answer['index'] == 'tiny'
    assert answer['query'] == {'text': QUERY}
    assert [hit['rank'] for hit in answer['candidates']] == [1, 2, 3]
    for hit in answer['candidates']:
        assert set(hit) == {'docid', 'score', 'rank', 'doc'}
        assert isinstance(hit['doc'], str) and hit['doc']


def test_hits_are_those_of_the_searcher(client, bundle):
    answer = _search(client, hits=3)
    expected = DenseSearcher(bundle).search(QUERY, 3)
    assert _docids(answer) == [hit.docid for hit in expected]
    scores = [hit['score'] for hit in answer['candidates']]
    assert scores == pytest.approx([hit.score for hit in expected], abs=1e-5)


def test_a_document_is_its_text(client, bundle):
    document = _document(client)
    (text,) = DenseSearcher(bundle).texts(['d3'])
    assert document == {'api': 'v1', 'index': 'tiny', 'docid': 'd3', 'doc': text}


def test_a_document_that_is_not_parsed_is_as_lucene_stores_it(client):
    text = _document(client)['doc']
    assert _document(client, parse='false')['doc'] == f'{{"id": "d3", "contents": "{text}"}}'


def test_a_document_is_cut_to_a_length(client):
    text = _document(client)['doc']
    assert _document(client, max_doc_length=4)['doc'] == text[:4]


def test_only_a_parsed_document_can_be_cut(client):
    refused = _document(client, max_doc_length=4, parse='false')
    assert 'parse=true' in refused['error']


def test_a_document_is_displayed_with_words_of_the_query_marked(client):
    text = _document(client)['doc']
    word = text.split()[0]
    parts = _document(client, display='true', query=word)['display']
    assert ''.join(part['text'] for part in parts) == text
    assert parts[0] == {'text': word, 'match': True}


STAGES = {'hits': 5, 'rerank': ['monobert@4', 'duobert@2:binary'], 'provenance': 'true'}


def test_each_stage_is_a_ranking_and_a_step(client):
    answer = _search(client, **STAGES)
    names = ['dense', 'monobert@4', 'duobert@2:method=binary']
    assert answer['rankings'] == names
    assert [step['step'] for step in answer['steps']] == names
    assert [step['inferences'] for step in answer['steps']] == [1, 4, 2]


def test_provenance_has_the_ranks_of_the_first_stage(client, bundle):
    answer = _search(client, **STAGES)
    dense = DenseSearcher(bundle).search(QUERY, 5)
    for rank, hit in enumerate(dense, 1):
        assert _provenance(answer, hit.docid)['dense']['rank'] == rank


def test_provenance_has_ranks_and_scores_of_a_reranker(client, bundle, rerankers):
    answer = _search(client, **STAGES)
    searcher = DenseSearcher(bundle)
    docids = [hit.docid for hit in searcher.search(QUERY, 4)]
    texts = searcher.texts(docids)
    candidates = [Candidate(docid, text=text) for docid, text in zip(docids, texts, strict=True)]
    reranked = MonoBertReranker(rerankers[0]).rerank(QUERY, candidates)
    for rank, hit in enumerate(reranked, 1):
        place = _provenance(answer, hit.docid)['monobert@4']
        assert place['rank'] == rank
        assert place['score'] == pytest.approx(hit.score, abs=1e-5)


def test_provenance_of_a_hit_that_a_reranker_did_not_read_is_null(client):
    answer = _search(client, **STAGES)
    name = 'duobert@2:method=binary'
    third = answer['candidates'][2]['docid']
    unread = {'ranking': name, 'rank': None, 'score': None, 'below': None}
    assert _provenance(answer, third)[name] == unread


def test_provenance_has_the_judgments_of_a_judged_topic(client):
    answer = _search(client, hits=12, provenance='true')
    assert answer['judged']['qid'] == JUDGED_QID
    assert answer['judged']['relevant'] == {'d1': 1}
    grades = {hit['docid']: hit['grade'] for hit in answer['candidates']}
    assert grades == dict.fromkeys(grades) | {'d1': 1, 'd2': 0}


@pytest.mark.parametrize('method', ['binary', 'min', 'max', 'sample=2'])
def test_another_aggregation_takes_no_inference(method, client):
    whole = _search(client, rerank='duobert@4')
    assert whole['steps'][-1]['inferences'] == 4 * 3
    again = _search(client, rerank=f'duobert@4:{method}')
    assert again['steps'][-1]['inferences'] == 0


def test_a_sampled_matrix_is_no_whole_one(client):
    sampled = _search(client, rerank='duobert@4:sample=1')
    assert sampled['steps'][-1]['inferences'] == 4
    whole = _search(client, rerank='duobert@4')
    assert whole['steps'][-1]['inferences'] == 4 * 3


def test_a_batch_answers_as_single_searches_do(client):
    queries = [{'text': QUERY, 'qid': 'a'}, {'text': 'red fish'}, {'text': 'old dog'}]
    batch = client.post('/v1/tiny/batch', json={'queries': queries, 'hits': 4}).json()
    assert [result['qid'] for result in batch['results']] == ['a', '1', '2']
    for query, result in zip(queries, batch['results'], strict=True):
        alone = _search(client, query=query['text'], hits=4)
        assert _docids(result) == _docids(alone)
        scores = [hit['score'] for hit in result['candidates']]
        expected = [hit['score'] for hit in alone['candidates']]
        assert scores == pytest.approx(expected, abs=1e-5)


@pytest.fixture
def comparison(client):
    """Six hits of a dense search, and the same reranked."""
    return _compare(client, a={'system': ['dense']}, b={'rerank': ['monobert@6']}, hits=6)


def test_a_comparison_has_both_answers(comparison, client):
    assert _docids(comparison['a']) == _docids(_search(client, hits=6))
    assert _docids(comparison['b']) == _docids(_search(client, hits=6, rerank='monobert@6'))


def test_a_comparison_says_how_alike_the_answers_are(comparison):
    assert comparison['overlap'] == 1.0
    assert 0 < comparison['rbo'] < 1


def test_a_comparison_says_where_each_hit_moves(comparison):
    left = _docids(comparison['a'])
    right = _docids(comparison['b'])
    for rank, (docid, move) in enumerate(zip(left, comparison['moves'], strict=True), 1):
        assert move == {'docid': docid, 'a': rank, 'b': right.index(docid) + 1}


def test_a_comparison_measures_both_sides_of_a_judged_topic(index_settings, serving):
    qrels = ''.join(f'q1 0 d{number} 1\n' for number in range(12))
    Path(index_settings.qrels).write_text(qrels, encoding='utf-8')
    perfect = {'nDCG@10': 1.0, 'MRR@10': 1.0, 'R@100': 1.0}
    comparison = _compare(serving(), a={}, b={'rerank': ['monobert@6']}, hits=1)
    assert comparison['judged']['qid'] == JUDGED_QID
    assert comparison['judged']['measures'] == {'a': perfect, 'b': perfect}


@pytest.mark.parametrize('hits', [1, 12])
def test_measures_of_a_judged_topic_do_not_depend_on_the_hits_shown(hits, index_settings, serving):
    qrels = ''.join(f'q1 0 d{number} 1\n' for number in range(12))
    Path(index_settings.qrels).write_text(qrels, encoding='utf-8')
    answer = _search(serving(), hits=hits, provenance='true')
    assert len(answer['candidates']) == hits
    assert answer['judged']['measures'] == {'nDCG@10': 1.0, 'MRR@10': 1.0, 'R@100': 1.0}


def test_an_index_says_what_it_offers(client):
    (index,) = client.get('/v1/indexes').json()['indexes']
    assert index['name'] == 'tiny'
    assert index['passages'] == 12
    assert index['systems'] == ['dense']
    assert index['topics'] == index['judged_topics'] == 2
    assert index['rerankers'] == [
        {'name': 'monobert', 'system': 'monobert'},
        {'name': 'duobert', 'system': 'duobert'},
        {'name': 'epic', 'system': 'epic'},
        {'name': 'cedr', 'system': 'cedr'},
    ]


def test_one_index_is_described_as_all_are(client):
    (index,) = client.get('/v1/indexes').json()['indexes']
    assert client.get('/v1/tiny').json() == {'api': 'v1', **index}


def test_topics_are_found_by_a_part_of_their_text(client):
    topics = client.get('/v1/tiny/topics', params={'like': 'FISH'}).json()['topics']
    assert topics == [{'qid': 'q2', 'text': 'red fish in the sea', 'judged': True}]


def test_judgments_of_a_topic(client):
    assert client.get('/v1/tiny/qrels/q1').json()['grades'] == {'d1': 1, 'd2': 0}


def test_provenance_has_ranks_below_the_hits_shown(client):
    shown = _search(client, hits=2, rerank='monobert@2', provenance='true')
    deep = _docids(_search(client, hits=12))
    for docid in _docids(shown):
        assert _provenance(shown, docid)['dense']['rank'] == deep.index(docid) + 1


def test_a_comparison_has_ranks_below_the_hits_shown(client):
    comparison = _compare(client, a={}, b={'rerank': ['monobert@12']}, hits=2)
    deep = _docids(_search(client, hits=12))
    for move in comparison['moves']:
        assert move['a'] == deep.index(move['docid']) + 1


def test_a_rank_below_the_depth_is_told_apart_from_an_absent_hit(client, monkeypatch):
    monkeypatch.setattr('pyserini_repbert.serve.searching.PROVENANCE_DEPTH', 3)
    comparison = _compare(client, a={}, b={'rerank': ['monobert@12']}, hits=3)
    assert comparison['depths'] == {'a': 3, 'b': None}  # b has ranked all 12 passages
    assert None in [move['a'] for move in comparison['moves']]
    assert None not in [move['b'] for move in comparison['moves']]


@pytest.fixture
def two_systems(client, monkeypatch):
    """A client whose index has the dense system under the names 'one' and 'two', too."""
    ranker = ServedIndex.ranker

    def dense_by_name(self, name, spec):
        return ranker(self, 'dense', spec).with_settings(name=name)

    def resolve_systems(self, names):
        return tuple(names) or ('dense',)

    monkeypatch.setattr(ServedIndex, 'resolve_systems', resolve_systems)
    monkeypatch.setattr(ServedIndex, 'ranker', dense_by_name)
    return client


FUSED = {'system': ['one', 'two'], 'fusion': 'interpolation', 'normalize': 'minmax'}


@pytest.mark.parametrize('settings', [{}, {'weights': [0.25, 0.75]}])
def test_an_address_says_how_rankings_are_fused(settings, two_systems):
    hits = _search(two_systems, hits=12, **FUSED, **settings)['candidates']
    assert hits[0]['score'] == 1.0
    assert hits[-1]['score'] == 0.0


def test_a_body_says_how_rankings_are_fused(two_systems):
    comparison = _compare(two_systems, a=FUSED, b={}, hits=12)
    assert comparison['a']['candidates'][0]['score'] == 1.0


@pytest.mark.parametrize(
    'wrong',
    [
        {'weights': [1]},
        {'weights': [1, 2], 'alpha': 0.5},
        {'fusion': 'rrf'},
        {'weights': ['nan', 1]},
    ],
)
def test_settings_that_do_not_go_together_are_refused(wrong, two_systems):
    parameters = {'query': QUERY, **FUSED, **wrong}
    assert two_systems.get('/v1/tiny/search', params=parameters).status_code == 400


def test_every_list_of_an_address_takes_commas():
    request = SearchRequest(
        query='cat',
        system=['dense,bm25'],
        weights=['0.7, 0.3'],
        rerank=['monobert@9,duobert@3:sample=2,seed=1', 'epic@2'],
        explain=['epic,cedr'],
    )
    assert request.system == ['dense', 'bm25']
    assert request.weights == [0.7, 0.3]
    assert request.rerank == ['monobert@9', 'duobert@3:sample=2,seed=1', 'epic@2']
    assert request.explain == ['epic', 'cedr']


def test_an_address_with_stages_in_one_list(client):
    answer = _search(client, rerank='monobert@4,duobert@2')
    assert answer['rerank'] == ['monobert@4', 'duobert@2']


def test_a_sparse_system_that_cannot_be_opened_is_left_out_with_a_warning(
    client, monkeypatch, caplog
):
    def fail(spec, machine):
        raise MissingResourceError('there is no Java')

    index = client.app.state.service.served['tiny']
    index.beside['bm25'] = PipelineSpec(sparse=('bm25',))
    monkeypatch.setattr(indexes, 'open_searcher', fail)
    assert index.opens('dense')
    assert not index.opens('bm25')
    assert "index 'tiny' answers without 'bm25': there is no Java" in caplog.text
