"""/v1/{index}/search, /doc, /batch and /compare: the shape of Pyserini's server, and what is
added.
"""

from pathlib import Path

import pytest

from pyserini_repbert.errors import MissingResourceError
from pyserini_repbert.fusion import provenance
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.rerank import MonoBertReranker
from pyserini_repbert.search import RepBertSearcher
from pyserini_repbert.serve import indexes
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.requests import SearchRequest

QUERY = 'cat sat on the mat'


def test_a_search_has_pyserinis_shape(client, bundle):
    answer = client.get('/v1/tiny/search', params={'query': QUERY, 'hits': 3})
    assert answer.status_code == 200 and answer.headers['content-type'] == 'application/json'
    found = answer.json()
    assert (found['api'], found['index'], found['query']) == ('v1', 'tiny', {'text': QUERY})
    expected = RepBertSearcher(bundle).search(QUERY, 3)
    assert [hit['docid'] for hit in found['candidates']] == [hit.docid for hit in expected]
    assert [hit['rank'] for hit in found['candidates']] == [1, 2, 3]
    for hit, own in zip(found['candidates'], expected, strict=True):
        assert hit['score'] == pytest.approx(own.score, abs=1e-5)
        assert set(hit) == {'docid', 'score', 'rank', 'doc'}
        assert isinstance(hit['doc'], str) and hit['doc']


def test_documents(client, corpus_file):
    whole = client.get('/v1/tiny/doc/d3').json()
    assert whole['docid'] == 'd3' and whole['api'] == 'v1' and whole['index'] == 'tiny'
    raw = client.get('/v1/tiny/doc/d3', params={'parse': 'false'}).json()['doc']
    assert raw == f'{{"id": "d3", "contents": "{whole["doc"]}"}}'
    assert (
        client.get('/v1/tiny/doc/d3', params={'max_doc_length': 4}).json()['doc']
        == whole['doc'][:4]
    )
    asked = {'display': 'true', 'query': whole['doc'].split()[0]}
    shown = client.get('/v1/tiny/doc/d3', params=asked).json()['display']
    assert ''.join(part['text'] for part in shown) == whole['doc'] and any(
        part['match'] for part in shown
    )
    refused = client.get('/v1/tiny/doc/d3', params={'max_doc_length': 4, 'parse': 'false'})
    assert refused.status_code == 400 and 'parse=true' in refused.json()['error']


def test_stages_and_provenance(client, bundle, rerankers):
    asked = {
        'query': QUERY,
        'hits': 5,
        'rerank': ['monobert@4', 'duobert@2:binary'],
        'provenance': 'true',
    }
    found = client.get('/v1/tiny/search', params=asked).json()
    assert found['rankings'] == ['dense', 'monobert@4', 'duobert@2:method=binary']
    assert [(step['step'], step['inferences']) for step in found['steps']] == [
        ('dense', 1),
        ('monobert@4', 4),
        ('duobert@2:method=binary', 2),
    ]
    searcher = RepBertSearcher(bundle)
    dense = searcher.search(QUERY, 5)
    texts = searcher.texts([hit.docid for hit in dense])
    with_text = [
        type(hit)(hit.docid, hit.score, text) for hit, text in zip(dense, texts, strict=True)
    ]
    mono = MonoBertReranker(rerankers[0]).rerank(QUERY, with_text[:4])
    got = {
        hit['docid']: {own['ranking']: own for own in hit['provenance']}
        for hit in found['candidates']
    }
    for docids, name in (
        ([hit.docid for hit in dense], 'dense'),
        ([hit.docid for hit in mono], 'monobert@4'),
    ):
        assert [(got[docid][name]['rank'],) for docid in docids] == provenance([docids], docids)
    assert got[mono[0].docid]['monobert@4']['score'] == pytest.approx(mono[0].score, abs=1e-5)
    outside = next(docid for docid in got if docid not in {hit.docid for hit in mono[:2]})
    assert got[outside]['duobert@2:method=binary'] == {
        'ranking': 'duobert@2:method=binary',
        'rank': None,
        'score': None,
        'below': None,
    }
    assert found['judged']['qid'] == 'q1' and found['judged']['relevant'] == {'d1': 1}
    assert {hit['docid']: hit['grade'] for hit in found['candidates']}.items() <= {
        **dict.fromkeys((f'd{number}' for number in range(12)), None),
        'd1': 1,
        'd2': 0,
    }.items()


def test_another_aggregation_takes_no_inference(client):
    asked = {'query': QUERY, 'rerank': 'duobert@4'}
    assert client.get('/v1/tiny/search', params=asked).json()['steps'][-1]['inferences'] == 12
    for method in ('binary', 'min', 'max', 'sample=2'):
        again = client.get(
            '/v1/tiny/search', params=asked | {'rerank': f'duobert@4:{method}'}
        ).json()
        assert again['steps'][-1]['inferences'] == 0, method


def test_a_sampled_matrix_is_no_whole_one(client):
    asked = {'query': QUERY, 'rerank': 'duobert@4:sample=1'}
    assert client.get('/v1/tiny/search', params=asked).json()['steps'][-1]['inferences'] == 4
    whole = client.get('/v1/tiny/search', params=asked | {'rerank': 'duobert@4'}).json()
    assert whole['steps'][-1]['inferences'] == 12


def test_a_batch_answers_as_single_searches_do(client):
    queries = [{'text': QUERY, 'qid': 'a'}, {'text': 'red fish'}, {'text': 'old dog'}]
    found = client.post('/v1/tiny/batch', json={'queries': queries, 'hits': 4}).json()
    assert [result['qid'] for result in found['results']] == ['a', '1', '2']
    for query, result in zip(queries, found['results'], strict=True):
        alone = client.get('/v1/tiny/search', params={'query': query['text'], 'hits': 4}).json()
        assert [hit['docid'] for hit in result['candidates']] == [
            hit['docid'] for hit in alone['candidates']
        ]
        for one, other in zip(result['candidates'], alone['candidates'], strict=True):
            assert one['score'] == pytest.approx(other['score'], abs=1e-5)


def test_a_comparison(client):
    sides = {'a': {'system': ['dense']}, 'b': {'system': ['dense'], 'rerank': ['monobert@6']}}
    found = client.post('/v1/tiny/compare', json={'query': QUERY, 'hits': 6, **sides}).json()
    docids = {side: [hit['docid'] for hit in found[side]['candidates']] for side in 'ab'}
    assert set(docids['a']) == set(docids['b']) and docids['a'] != docids['b']
    assert found['overlap'] == 1.0 and 0 < found['rbo'] < 1
    assert [(move['docid'], move['a'], move['b']) for move in found['moves']] == [
        (docid, place, docids['b'].index(docid) + 1) for place, docid in enumerate(docids['a'], 1)
    ]
    assert found['judged']['qid'] == 'q1'
    measures = found['judged']['measures']
    assert measures['b']['MRR@10'] == pytest.approx(
        1 / (docids['b'].index('d1') + 1) if 'd1' in docids['b'] else 0
    )
    assert set(measures['a']) == {'nDCG@10', 'MRR@10', 'R@100'}


def test_what_an_index_offers(client):
    (own,) = client.get('/v1/indexes').json()['indexes']
    assert own['name'] == 'tiny' and own['passages'] == 12 and own['systems'] == ['dense']
    assert {one['name']: one['system'] for one in own['rerankers']} == {
        name: name for name in ('monobert', 'duobert', 'epic', 'cedr')
    }
    assert (own['topics'], own['judged_topics']) == (2, 2)
    about = client.get('/v1/tiny').json()
    assert about == {'api': 'v1', **own}
    assert client.get('/v1/tiny/topics', params={'like': 'FISH'}).json()['topics'] == [
        {'qid': 'q2', 'text': 'red fish in the sea', 'judged': True}
    ]
    assert client.get('/v1/tiny/qrels/q1').json()['grades'] == {'d1': 1, 'd2': 0}


DEPTH_QRELS = ''.join(f'q1 0 d{number} 1\n' for number in range(12))


def test_measures_of_a_judged_topic_do_not_depend_on_the_hits_shown(index_settings, serving):
    Path(index_settings.qrels).write_text(DEPTH_QRELS, encoding='utf-8')
    client = serving()
    for hits in (1, 12):
        found = client.get(
            '/v1/tiny/search', params={'query': QUERY, 'hits': hits, 'provenance': 'true'}
        ).json()
        assert len(found['candidates']) == hits
        assert found['judged']['measures'] == {'nDCG@10': 1.0, 'MRR@10': 1.0, 'R@100': 1.0}
    both = client.post('/v1/tiny/compare', json={'query': QUERY, 'hits': 1}).json()
    assert (
        both['judged']['measures']['a']
        == both['judged']['measures']['b']
        == found['judged']['measures']
    )


def test_provenance_has_ranks_below_the_hits_shown(client):
    asked = {'query': QUERY, 'hits': 2, 'rerank': 'monobert@2', 'provenance': 'true'}
    shown = client.get('/v1/tiny/search', params=asked).json()
    deep = client.get('/v1/tiny/search', params={'query': QUERY, 'hits': 12}).json()
    ranks = {hit['docid']: hit['rank'] for hit in deep['candidates']}
    for hit in shown['candidates']:
        assert hit['provenance'][0]['rank'] == ranks[hit['docid']]
    sides = {'a': {}, 'b': {'rerank': ['monobert@12']}}
    moves = client.post('/v1/tiny/compare', json={'query': QUERY, 'hits': 2, **sides}).json()[
        'moves'
    ]
    assert {move['docid']: move['a'] for move in moves} == {
        move['docid']: ranks[move['docid']] for move in moves
    }


def test_a_rank_below_the_depth_is_told_apart_from_an_absent_hit(client, monkeypatch):
    monkeypatch.setattr('pyserini_repbert.serve.searching.PROVENANCE_DEPTH', 3)
    sides = {'a': {}, 'b': {'rerank': ['monobert@12']}}
    found = client.post('/v1/tiny/compare', json={'query': QUERY, 'hits': 3, **sides}).json()
    assert found['depths'] == {'a': 3, 'b': None}  # b has ranked all 12 passages
    assert any(move['a'] is None for move in found['moves']) and all(
        move['b'] for move in found['moves']
    )
    asked = {'query': QUERY, 'hits': 3, 'rerank': 'monobert@2', 'provenance': 'true'}
    (last,) = client.get('/v1/tiny/search', params=asked).json()['candidates'][2:]
    assert last['provenance'][1] == {
        'ranking': 'monobert@2',
        'rank': None,
        'score': None,
        'below': None,
    }  # not read


def test_interpolation_of_normalized_rankings(client, monkeypatch):
    """A client says how rankings are fused, in an address, a body, and with a weight for each of
    them.
    """
    opened = ServedIndex.ranker
    monkeypatch.setattr(
        ServedIndex, 'resolve_systems', lambda self, names: tuple(names) or ('dense',)
    )
    monkeypatch.setattr(
        ServedIndex,
        'ranker',
        lambda self, name, k1, b: opened(self, 'dense').with_settings(name=name),
    )
    side = {'system': ['one', 'two'], 'fusion': 'interpolation', 'normalize': 'minmax'}
    asked = side | {'query': QUERY, 'hits': 12}
    for settings in ({}, {'weights': [0.25, 0.75]}):
        found = client.get('/v1/tiny/search', params=asked | settings).json()['candidates']
        assert [hit['score'] for hit in (found[0], found[-1])] == [1.0, 0.0]
    both = client.post(
        '/v1/tiny/compare', json={'query': QUERY, 'hits': 12, 'a': side, 'b': {}}
    ).json()
    assert both['a']['candidates'][0]['score'] == 1.0
    for wrong in (
        {'weights': [1]},
        {'weights': [1, 2], 'alpha': 0.5},
        {'fusion': 'rrf'},
        {'weights': ['nan', 1]},
    ):
        assert client.get('/v1/tiny/search', params=asked | wrong).status_code == 400, wrong


def test_every_list_of_an_address_takes_commas():
    asked = SearchRequest(
        query='cat',
        system=['dense,bm25'],
        weights=['0.7, 0.3'],
        rerank=['monobert@9,duobert@3:sample=2,seed=1', 'epic@2'],
        explain=['epic,cedr'],
    )
    assert asked.system == ['dense', 'bm25'] and asked.weights == [0.7, 0.3]
    assert asked.rerank == ['monobert@9', 'duobert@3:sample=2,seed=1', 'epic@2']
    assert asked.explain == ['epic', 'cedr']


def test_an_address_with_stages_in_one_list(client):
    asked = {'query': QUERY, 'rerank': 'monobert@4,duobert@2'}
    assert client.get('/v1/tiny/search', params=asked).json()['rerank'] == [
        'monobert@4',
        'duobert@2',
    ]


def test_a_sparse_system_that_cannot_be_opened_is_left_out_with_a_warning(
    client, monkeypatch, caplog
):
    def fail(spec, machine):
        raise MissingResourceError('there is no Java')

    index = client.app.state.service.indexes['tiny']
    index.specs['bm25'] = PipelineSpec(sparse=('bm25',))
    monkeypatch.setattr(indexes, 'open_searcher', fail)
    assert index._opens('dense') and not index._opens('bm25')
    assert "index 'tiny' answers without 'bm25': there is no Java" in caplog.text
