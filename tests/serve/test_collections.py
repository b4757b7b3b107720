"""A collection in the service: documents, their passages, hybrid search, over HTTP and MCP."""

import asyncio
import json
import logging

import pytest
from folders import wait_until
from sentence_folders import write_multi_vector

from pyserini_repbert.collection import Collection
from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.pipeline.opening import open_pipeline
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank import MonoBertReranker
from pyserini_repbert.serve.document_forms import SNIPPET_CHARACTERS, snippet_parts
from pyserini_repbert.serve.service import Service
from pyserini_repbert.serve.settings import IndexSettings, ServeSettings

LONG = ' '.join(f'{word} ran on the red mat.' for word in ('cat', 'dog', 'fish', 'bird') * 3)
DOCUMENTS = [
    {'id': 'a', 'text': 'cat sat on the mat', 'title': 'cat', 'year': 2020},
    {'id': 'guide/b', 'text': f'{LONG} moon tree.', 'title': 'the long one', 'tags': ['x', 'Y']},
    {'id': 'c', 'text': 'the fish ate the bird in the sea'},
    {'id': 'untold', 'text': '', 'title': 'moon', 'lang': 'en'},
    {'id': 'bare', 'text': '', 'lang': 'de'},
]
N_PASSAGES = 16  # thirteen of them of the long document


@pytest.fixture
def make_collection(tiny_checkpoint, tmp_path):
    """make(sparse='none', **settings) -> the folder of a collection of five documents."""
    encoder = str(tiny_checkpoint('encoder'))

    def make(sparse='none', **settings):
        folder = tmp_path / 'mine'
        small = {'passage_tokens': 10, 'overlap': 3, 'sparse': sparse, **settings}
        with Collection.open(folder, encoder=encoder, **small) as collection:
            collection.sync(DOCUMENTS)
        return folder

    return make


@pytest.fixture
def opened(rerankers, serving_path):
    """open(folder, **settings) -> a client of a service of this index alone."""

    def open_service(folder, **settings):
        return serving_path(folder, settings, rerankers=[*rerankers])

    return open_service


@pytest.fixture
def client(make_collection, opened):
    """A client of a service of the collection without Lucene."""
    return opened(make_collection())


@pytest.fixture
def hits(tmp_path):
    """hits(query, k=4, **fields of a spec) -> what the library gives."""

    def search(query, k=4, **fields):
        spec = PipelineSpec.of({'index': str(tmp_path / 'mine'), **fields})
        pipeline = open_pipeline(spec).pipeline
        try:
            return pipeline.search(query, k)
        finally:
            pipeline.close()

    return search


def candidates(client, query, **parameters):
    answer = client.get('/v1/mine/search', params={'query': query, **parameters})
    assert answer.status_code == 200, answer.text
    return answer.json()['candidates']


def test_the_index_says_what_it_is(client):
    (index,) = client.get('/v1/indexes').json()['indexes']
    assert index['index_type'] == 'collection'
    assert (index['documents'], index['language'], index['generation']) == (5, 'en', 1)
    assert index['passages'] == N_PASSAGES
    assert index['encoder'] == 'encoder'
    assert (index['systems'], index['default']) == (['dense'], ['dense'])
    assert 'fusion' not in index, 'there is one ranking'
    assert client.get('/v1/mine').json() == {'api': 'v1', **index}


def test_a_learned_sparse_model_in_place_of_bm25(make_collection, opened, hits, tiny_epic):
    folder = make_collection(sparse=str(tiny_epic('weighing')))
    client = opened(folder)
    (index,) = client.get('/v1/indexes').json()['indexes']
    assert index['systems'] == index['default'] == ['dense', 'sparse']
    assert (index['fusion'], index['weights']) == ('interpolation', [0.6, 0.4])
    assert index['normalize'] == 'background'
    spec = {'rankings': ('sparse',)}
    for parameters, fields in (
        ({}, {}),
        ({'system': 'hybrid'}, {}),
        ({'system': 'sparse'}, spec),
        ({'system': 'sparse', 'filter': 'year:2020'}, spec | {'filter': 'year:2020'}),
    ):
        answered = candidates(client, 'moon tree', **parameters)
        expected = hits('moon tree', **fields)
        assert [hit['docid'] for hit in answered] == [hit.docid for hit in expected]
        scores = [hit.score for hit in expected]
        assert [hit['score'] for hit in answered] == pytest.approx(scores, abs=1e-5)
    refused = client.get('/v1/mine/search', params={'query': 'cat', 'system': 'bm25'})
    assert refused.status_code == 404
    assert 'it has dense, sparse' in refused.text
    with Collection.open(folder) as collection:
        collection.add([{'id': 'new', 'text': 'moon tree moon tree'}])

    def docids():
        return [hit['docid'] for hit in candidates(client, 'moon tree', system='sparse')]

    wait_until(lambda: 'new' in docids())
    assert docids()[:4] == [hit.docid for hit in hits('moon tree', **spec)]


def test_token_vectors_order_the_best_hits(make_collection, opened, hits, tmp_path):
    folder = make_collection(multi_vector=write_multi_vector(tmp_path / 'late'))
    client = opened(folder)
    (index,) = client.get('/v1/indexes').json()['indexes']
    assert index['systems'] == ['dense', 'multi', 'rescored']
    assert index['default'] == ['rescored']
    within = {'filter': 'year:2020'}
    for parameters, fields in (
        ({}, {}),
        (within, within),
        ({'system': 'multi'}, {'rankings': ('multi',)}),
        ({'system': ['dense', 'multi'], **within}, {'rankings': ('dense', 'multi'), **within}),
        ({'system': ['multi', 'rescored']}, {'rankings': ('multi', 'rescored')}),
    ):
        answered = candidates(client, 'moon tree', **parameters)
        expected = hits('moon tree', **fields)
        assert [hit['docid'] for hit in answered] == [hit.docid for hit in expected]
        scores = [hit.score for hit in expected]
        assert [hit['score'] for hit in answered] == pytest.approx(scores, abs=1e-5)
    # Nothing was learned that could tell it.
    refused = client.get('/v1/mine/search', params={'query': 'cat', 'confidence': True})
    assert refused.status_code == 400
    assert 'confidence is not known' in refused.text
    like = client.get('/v1/mine/search', params={'like': 'a'}).json()['candidates']
    assert like and 'a' not in [hit['docid'] for hit in like]
    with Collection.open(folder) as collection:
        collection.add([{'id': 'new', 'text': 'moon tree moon tree'}])
    wait_until(lambda: 'new' in [hit['docid'] for hit in candidates(client, 'moon tree', hits=6)])


def test_a_hit_is_a_document_with_its_best_passage(client, hits):
    found = candidates(client, 'moon tree')
    expected = hits('moon tree')
    assert [hit['docid'] for hit in found] == [hit.docid for hit in expected]
    assert [hit['score'] for hit in found] == pytest.approx(
        [hit.score for hit in expected], abs=1e-5
    )
    text_of = {document['id']: document['text'] for document in DOCUMENTS}
    for hit, same in zip(found, expected, strict=True):
        (passage,) = same.excerpts
        assert hit['passage'] == {
            'number': passage.number,
            'start': passage.start,
            'end': passage.end,
            'shown': [passage.start, passage.end],
            'headings': [],
            'anchor': '',
            'file': '',
            'line': None,
            'row': None,
            'last_page': None,
            'is_code': False,
        }
        assert hit['doc'] == passage.text == text_of[hit['docid']][passage.start : passage.end]
        assert hit['title'] == passage.title
        assert 'display' not in hit


def test_its_rankings_explain_hits(client):
    asked = {'query': 'moon tree', 'docid': ['guide/b', 'a']}
    for model in ({}, {'model': 'dense'}):
        explained = client.get('/v1/mine/explain', params={**asked, **model}).json()
        assert explained['system'] == 'rankings'
        assert [(told['docid'], told['kind']) for told in explained['reasons']] == [
            ('guide/b', 'sentence'),
            ('a', 'sentence'),
        ]
        told = explained['reasons'][0]
        whole = client.get('/v1/mine/doc/guide/b').json()['doc']['text']
        assert whole[told['start'] : told['end']] == told['sentence']
    asked_along = {'query': 'cat', 'explain': 'rankings', 'explain_hits': 2}
    answer = client.get('/v1/mine/search', params=asked_along).json()
    # A document without text has no sentence.
    with_text = [hit['docid'] for hit in answer['candidates'][:2] if hit['doc']]
    assert [told['docid'] for told in answer['explanations'][0]['reasons']] == with_text
    wrong = client.get('/v1/mine/explain', params={'query': 'cat', 'docid': ['none']})
    assert wrong.status_code == 404
    many = client.get(
        '/v1/mine/explain', params={'query': 'x', 'docid': list(map(str, range(157)))}
    )
    assert many.json()['error'] == '157 documents were given, at most 156 are explained here'


def test_a_document_is_whole(client):
    whole = client.get('/v1/mine/doc/guide/b').json()
    assert whole['doc'] == {
        'title': 'the long one',
        'text': f'{LONG} moon tree.',
        'tags': ['x', 'Y'],
    }
    shown = client.get('/v1/mine/doc/guide/b', params={'display': True, 'query': 'moon'}).json()
    assert ''.join(part['text'] for part in shown['display']) == f'{LONG} moon tree.'
    assert [part['text'] for part in shown['display'] if part['match']] == ['moon']
    # A document of nothing but its text is that text.
    assert client.get('/v1/mine/doc/c').json()['doc'] == DOCUMENTS[2]['text']
    cut = client.get('/v1/mine/doc/a', params={'max_doc_length': 3}).json()['doc']
    assert cut == {'title': 'cat', 'text': 'cat', 'year': 2020}
    stored = client.get('/v1/mine/doc/a', params={'parse': False}).json()['doc']
    assert json.loads(stored) == DOCUMENTS[0]
    assert client.get('/v1/mine/doc/none').status_code == 404


def test_a_search_can_give_whole_documents(client):
    (hit,) = candidates(client, 'the sea', hits=1, parse=False)
    stored = {document['id']: document for document in DOCUMENTS}
    assert json.loads(hit['doc']) == stored[hit['docid']]
    cut = candidates(client, 'the sea', max_doc_length=3)
    assert sorted(len(hit['doc']) for hit in cut) == [0, 3, 3, 3]


def test_a_reranker_reads_several_passages(client, hits, tmp_path):
    stage = f'{tmp_path / "monobert"}@3:passages=4'
    found = candidates(client, 'dog tree', rerank='monobert@3:passages=4', provenance=True)
    expected = hits('dog tree', stages=[stage])
    assert [hit['docid'] for hit in found] == [hit.docid for hit in expected]
    assert [hit['passage']['number'] for hit in found] == [
        hit.excerpts[0].number for hit in expected
    ]
    one = candidates(client, 'dog tree', rerank='monobert@3')
    scores = {hit['docid']: hit['score'] for hit in one}
    for hit in found:
        assert hit['score'] >= scores[hit['docid']] - 1e-6, 'the best of more passages'


def test_the_passage_that_decided_is_the_rerankers(client, tmp_path):
    """Its score alone is that of the document."""
    mono = MonoBertReranker(tmp_path / 'monobert')
    for hit in candidates(client, 'dog tree', rerank='monobert@4:passages=20'):
        text = f'{hit["title"]} {hit["doc"]}'.strip()
        (alone,) = mono.rerank('dog tree', [Candidate('x', text=text)])
        assert alone.score == pytest.approx(hit['score'], abs=1e-5)


@pytest.mark.parametrize(
    ('parameters', 'said'),
    [
        ({'rerank': 'duobert@3:passages=2'}, "leave 'passages' out"),
        ({'rerank': 'monobert@200:passages=50'}, '10,000 model inputs'),
        ({'system': 'bm25'}, "has no system 'bm25'"),
        ({'system': 'hybrid'}, "has no system 'bm25'"),
        ({'fusion': 'rrf', 'alpha': 0.5}, 'alpha'),
    ],
)
def test_what_is_refused(client, parameters, said):
    answer = client.get('/v1/mine/search', params={'query': 'cat', **parameters})
    assert answer.status_code in (400, 404) and said in answer.json()['error']


def test_passages_are_for_documents(serving):
    """Not for the passages of another index."""
    parameters = {'query': 'cat', 'rerank': 'monobert@3:passages=2'}
    answer = serving().get('/v1/tiny/search', params=parameters)
    assert answer.status_code == 400 and "leave 'passages' out" in answer.json()['error']


def test_what_a_collection_has_itself_is_not_named(make_collection):
    async def open_service(**settings):
        indexes = {'mine': IndexSettings(path=str(make_collection()), **settings)}
        service = Service(ServeSettings(indexes=indexes))
        try:
            await service.open()
        finally:
            await service.close()

    with pytest.raises(PyseriniRepbertError, match='has its own rankings'):
        asyncio.run(open_service(sparse=['bm25']))
    with pytest.raises(PyseriniRepbertError, match="should be of type 'tf'"):
        asyncio.run(open_service(index_type='tf'))


def test_an_explanation_is_of_the_best_passage(client):
    (hit,) = candidates(client, 'moon tree', hits=1)
    parameters = {'query': 'moon tree', 'model': 'monobert', 'docid': hit['docid']}
    explained = client.get('/v1/mine/explain', params=parameters).json()
    span = {name: hit['passage'][name] for name in ('number', 'start', 'end')}
    assert explained['excerpts'] == [{'docid': hit['docid'], **span}]


def test_the_log_has_the_generation(client, caplog):
    caplog.set_level(logging.INFO, 'pyserini_repbert.serve.requests')
    candidates(client, 'cat')
    client.get('/v1/indexes')
    entries = [json.loads(record.message) for record in caplog.records if record.message[:1] == '{']
    assert [entry.get('generation') for entry in entries] == [1, None]


def test_comparing(client):
    body = {'query': 'moon', 'a': {}, 'b': {'rerank': ['monobert@2']}, 'display': True}
    compared = client.post('/v1/mine/compare', json=body).json()
    assert {hit['docid'] for hit in compared['a']['candidates']} >= {'a', 'guide/b', 'c'}
    assert all('display' in hit for hit in compared['b']['candidates'])


def test_mcp_tools(make_collection, rerankers):
    fastmcp = pytest.importorskip('fastmcp', reason='the serve extra is not installed')
    from pyserini_repbert.serve.mcp import make_mcp

    indexes = {'mine': IndexSettings(path=str(make_collection()))}
    settings = ServeSettings(indexes=indexes, rerankers=[*rerankers])

    async def call_all():
        async with fastmcp.Client(make_mcp(settings)) as client:

            async def call(tool, **arguments):
                return (await client.call_tool(tool, arguments)).data

            docids = ['a', 'c']
            return [
                await call('list_indexes', index_type='collection'),
                await call('search', query='moon tree', index='mine', hits=1),
                await call('get_document', docid='a', index='mine'),
                await call('rerank', query='cat', docids=docids, index='mine', reranker='monobert'),
            ]

    listed, found, document, reranked = asyncio.run(call_all())
    assert listed == ['mine']
    assert found['candidates'][0]['passage']['number'] >= 0
    assert document == {'title': 'cat', 'text': 'cat sat on the mat', 'year': 2020}
    assert {hit['docid'] for hit in reranked} == {'a', 'c'}


def test_mcp_tools_of_token_vectors(make_collection, hits, tmp_path):
    fastmcp = pytest.importorskip('fastmcp', reason='the serve extra is not installed')
    from pyserini_repbert.serve.mcp import make_mcp

    folder = make_collection(multi_vector=write_multi_vector(tmp_path / 'late'))
    settings = ServeSettings(indexes={'mine': IndexSettings(path=str(folder))})

    async def call_all():
        async with fastmcp.Client(make_mcp(settings)) as client:

            async def call(tool, **arguments):
                return (await client.call_tool(tool, {'index': 'mine', **arguments})).data

            asked = {'query': 'moon tree', 'docids': ['a', 'c']}
            return [
                await call('search', query='moon tree'),
                await call('search', query='moon tree', system=['multi']),
                await call('explain', **asked),
                await call('explain', **asked, model='multi'),
            ]

    rescored, alone, explained, by_tokens = asyncio.run(call_all())
    for answer, fields in ((rescored, {}), (alone, {'rankings': ('multi',)})):
        expected = hits('moon tree', **fields)
        assert [hit['docid'] for hit in answer['candidates']] == [hit.docid for hit in expected]
    for explanation in (explained, by_tokens):
        reasons = [own for own in explanation['reasons'] if own['kind'] == 'tokens']
        assert [own['docid'] for own in reasons] == ['a', 'c']
        assert all('=' in word['word'] for own in reasons for word in own['words'])


def test_a_long_passage_is_cut_around_the_words_of_the_query():
    text = 'sky ' * 300 + 'snail lettuce ' + 'sea ' * 300
    shown = ''.join(part['text'] for part in snippet_parts('Snails', text))
    assert len(shown) <= SNIPPET_CHARACTERS
    assert shown.startswith('… sky') and shown.endswith('sea …')
    middle = shown.index('snail') / len(shown)
    assert 0.45 < middle < 0.55


@pytest.mark.slow
@pytest.mark.jvm
def test_both_rankings_are_fused_as_the_collection_does(make_collection, opened, hits):
    client = opened(make_collection(sparse='bm25'))
    index = client.get('/v1/mine').json()
    assert (index['systems'], index['default']) == (['dense', 'bm25'], ['dense', 'bm25'])
    assert (index['fusion'], index['weights']) == ('interpolation', [0.6, 0.4])

    def scores(**parameters):
        return {hit['docid']: hit['score'] for hit in candidates(client, 'moon', **parameters)}

    usual = scores()
    assert usual == pytest.approx({hit.docid: hit.score for hit in hits('moon')}, abs=1e-5)
    for same in (
        {'system': 'hybrid'},
        {'system': 'dense,bm25'},
        {'system': 'bm25,dense'},
        {'fusion': 'interpolation'},
        {'weights': '0.6,0.4'},
        {'alpha': 0.6},
        {'fusion': 'interpolation', 'weights': '0.4,0.6', 'system': 'bm25,dense'},
    ):
        assert scores(**same) == pytest.approx(usual, abs=1e-5), same
    assert scores(alpha=0.1) != pytest.approx(usual, abs=1e-5)
    assert max(scores(fusion='interleave').values()) == 1.0
    assert scores(system='dense') == pytest.approx(
        {hit.docid: hit.score for hit in hits('moon', rankings=['dense'])}, abs=1e-5
    )
    by_words = scores(system='bm25')
    assert set(by_words) == {'guide/b', 'untold'}
    assert scores(system='bm25', k1=0.1, b=0) != by_words
    # A document of nothing but a title is shown by it.
    (untold,) = [hit for hit in candidates(client, 'moon') if hit['docid'] == 'untold']
    assert (untold['title'], untold['doc']) == ('moon', '')
    steps = client.get('/v1/mine/search', params={'query': 'moon'}).json()['steps']
    assert [step['step'] for step in steps] == ['dense', 'bm25', 'interpolation']


def docids(client, query, **parameters):
    return [hit['docid'] for hit in candidates(client, query, **parameters)]


def test_a_search_within_a_filter(client):
    assert docids(client, 'cat tree', filter='year:[2020 TO *]') == ['a']
    assert docids(client, 'cat tree', filter='tags:y') == ['guide/b']
    assert sorted(docids(client, 'cat tree', filter='NOT year:*')) == ['c', 'guide/b', 'untold']
    # The same filter again is one that is kept.
    assert docids(client, 'cat tree', filter='tags:y') == ['guide/b']


def test_a_filter_that_cannot_be_read(client):
    for text, message in (
        ('yaer:2020', "there is no field 'yaer' (did you mean 'year'?): the fields are docid, la"),
        ('year:[2020 TO', 'cannot be read'),
        ('', 'the filter is empty'),
    ):
        answer = client.get('/v1/mine/search', params={'query': 'cat', 'filter': text})
        assert answer.status_code == 400
        assert message in answer.json()['error']


def test_a_filter_that_no_document_matches(client):
    asked = {'query': 'cat', 'filter': 'tags:nowhere'}
    answer = client.get('/v1/mine/search', params=asked).json()
    assert answer['candidates'] == []
    assert answer['warnings'] == [
        "no document matches filter 'tags:nowhere': 'tags' has the values x, y"
    ]


def test_what_is_told_of_fields(client):
    (about,) = client.get('/v1/indexes').json()['indexes']
    expected = {'lang': ['text'], 'language': ['text'], 'tags': ['text'], 'year': ['number']}
    assert about['fields'] == expected
