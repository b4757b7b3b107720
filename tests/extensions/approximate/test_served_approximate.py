"""Approximate search of a served collection: of its dense vectors, and of its token vectors."""

import asyncio
import json
import shutil
from contextlib import ExitStack, closing

import pytest
from drawn_documents import COMPLETE
from folders import wait_until
from ready_services import ready_client
from sentence_folders import write_multi_vector

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.copying import copy_collection
from pyserini_repbert.commands import command
from pyserini_repbert.commands.encode import main as encode_command
from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.approximate import AnnSettings, build_ann
from pyserini_repbert.serve import service as services
from pyserini_repbert.serve.indexes import index_type_of
from pyserini_repbert.serve.service import Service
from pyserini_repbert.serve.settings import IndexSettings, ServeSettings, read_settings

pytest.importorskip('sentence_transformers')

WORDS = 'cat dog fish bird moon tree sea'.split()
COUNT = 630  # an approximate index takes 624 vectors at least
DENSE_INDEX = 'ann'
TOKEN_INDEX = 'tokens/ann'


def documents():
    made = []
    for number in range(COUNT):
        text = ' '.join(WORDS[number % place] for place in range(2, 7))
        made.append({'id': f'd{number}', 'text': text, 'year': number % 10})
    return made


@pytest.fixture
def folder(shared, tiny_checkpoint, tmp_path, monkeypatch):
    """A copy of a collection with both approximate indexes, and services that look often."""
    monkeypatch.setattr(services, '_LOOKED_EVERY', 0.02)
    template = shared / 'mine'
    if not template.exists():
        tiny_checkpoint().rename(shared / 'encoder')
        models = {
            'encoder': str(shared / 'encoder'),
            'multi_vector': write_multi_vector(shared / 'late'),
        }
        with Collection.open(template, sparse='none', **models) as collection:
            collection.add(documents())
            build_ann(collection.folder, COMPLETE)
            build_ann(collection.folder, COMPLETE, ranking='multi')
    copy_collection(template, tmp_path / 'mine')
    return tmp_path / 'mine'


@pytest.fixture
def serve(folder):
    """serve() -> a client of a service that offers the collection's approximate indexes."""
    with ExitStack() as held:

        def open_service():
            return held.enter_context(ready_client(_settings(folder)))

        yield open_service


def _settings(folder):
    return ServeSettings(indexes={'mine': IndexSettings(path=str(folder), ann=True)}, rerankers=[])


def hits(client, *systems, query='moon tree', **parameters):
    """The docids and scores of seven hits of systems."""
    parameters = {'query': query, 'hits': 7, 'system': systems, **parameters}
    answer = client.get('/v1/mine/search', params=parameters)
    assert answer.status_code == 200, answer.text
    return [(hit['docid'], hit['score']) for hit in answer.json()['candidates']]


def assert_hits_equal(client):
    """Compare with exact search, also within filters; returns the docids by token vectors."""
    for approximate, exact in (('ann', 'dense'), ('multi-ann', 'multi')):
        for parameters in ({}, {'filter': 'year:[0 TO 6]'}, {'filter': 'year:3'}):
            found = hits(client, approximate, **parameters)
            assert found == hits(client, exact, **parameters)
            assert len(found) == 7
    return [docid for docid, _ in hits(client, 'multi-ann')]


def wait_for(client, generation):
    wait_until(lambda: client.get('/v1/mine').json()['generation'] >= generation)


def add(folder, docid):
    with Collection.open(folder) as collection:
        collection.add([{'id': docid, 'text': 'moon tree moon tree', 'year': 3}])


def test_each_approximate_ranking_is_a_system(serve, folder):
    client = serve()
    index = client.get('/v1/mine').json()
    assert index['systems'] == ['dense', 'multi', 'rescored', 'ann', 'multi-ann']
    assert index['approximate'] == {'ann': 'dense', 'multi-ann': 'multi'}
    assert index['default'] == ['rescored']
    assert set(index['like']) == set(index['systems'])
    assert_hits_equal(client)
    near = client.get('/v1/mine/search', params={'like': 'd4', 'system': 'multi-ann'}).json()
    exact = client.get('/v1/mine/search', params={'like': 'd4', 'system': 'multi'}).json()
    assert near['candidates'] == exact['candidates']
    asked = {'query': 'moon tree', 'docid': 'd4'}
    explained = client.get('/v1/mine/explain', params={**asked, 'model': 'multi-ann'})
    assert explained.status_code == 200, explained.text
    # As `search --ann --rankings dense multi`.
    with (
        Collection.open(folder) as collection,
        closing(collection.searcher(rankings=('dense', 'multi'), ann=True)) as searcher,
    ):
        expected = [(hit.docid, round(hit.score, 6)) for hit in searcher.search('moon tree', 7)]
    assert hits(client, 'ann', 'multi-ann') == expected


def test_they_serve_later_generations(serve, folder, caplog):
    client = serve()
    service = client.app.state.service
    before = [service.served['mine'].ranker(name).ranker.scan for name in ('ann', 'multi-ann')]
    add(folder, 'newer')
    wait_for(client, 2)
    assert 'newer' in assert_hits_equal(client)
    for name, scan in zip(('ann', 'multi-ann'), before, strict=True):
        assert service.served['mine'].ranker(name).ranker.scan.index is scan.index
    with Collection.open(folder) as collection:
        build_ann(collection.folder, COMPLETE, ranking='multi', overwrite=True)
    assert 'newer' in assert_hits_equal(client)
    shutil.rmtree(folder / DENSE_INDEX)
    shutil.rmtree(folder / TOKEN_INDEX)
    add(folder, 'newest')
    wait_for(client, 3)
    assert caplog.text.count("index 'mine' is searched exactly: ") == 2
    assert {'newer', 'newest'} <= set(assert_hits_equal(client))
    assert list(client.get('/v1/mine').json()['approximate']) == ['ann', 'multi-ann']


@pytest.mark.parametrize(
    ('missing', 'systems', 'left_out'),
    [
        (DENSE_INDEX, ['dense', 'multi', 'rescored', 'multi-ann'], "answers without 'ann'"),
        (TOKEN_INDEX, ['dense', 'multi', 'rescored', 'ann'], "answers without 'multi-ann'"),
    ],
)
def test_one_index_is_enough(serve, folder, caplog, missing, systems, left_out):
    (folder / missing).rename(folder.parent / 'away')
    client = serve()
    assert client.get('/v1/mine').json()['systems'] == systems
    assert left_out in caplog.text
    (folder.parent / 'away').rename(folder / missing)
    add(folder, 'newer')
    wait_for(client, 2)
    assert 'newer' in assert_hits_equal(client)


def test_without_any_it_is_refused(folder):
    shutil.rmtree(folder / DENSE_INDEX)
    shutil.rmtree(folder / TOKEN_INDEX)

    async def open_service():
        service = Service(_settings(folder))
        try:
            await service.open()
        finally:
            await service.close()

    with pytest.raises(InputError, match='build it with `index ann`'):
        asyncio.run(open_service())


def test_a_bundle_offers_its_index(folder, tmp_path):
    passages = tmp_path / 'passages.jsonl'
    with passages.open('w') as stream:
        for document in documents():
            print(json.dumps({'id': document['id'], 'contents': document['text']}), file=stream)
    with Collection.open(folder) as collection:
        encoder = collection.generation.settings.encoder
    encode = f'--corpus {passages} --encoder {encoder} --output {tmp_path}/bundle --store-text'
    assert command.run(encode_command, [*encode.split(), '--quiet']) == 0
    build_ann(tmp_path / 'bundle', AnnSettings('hnsw', 0.5, 10))
    config = tmp_path / 'serve.yaml'
    config.write_text('indexes: {mine: {path: bundle, ann: true}}\nrerankers: []\n')
    indexes = read_settings(config).indexes
    assert indexes['mine'] == IndexSettings(path=str(tmp_path / 'bundle'), ann=True)
    with ready_client(ServeSettings(indexes=indexes)) as client:
        assert client.get('/v1/mine').json()['approximate'] == {'ann': 'dense'}
        assert {docid for docid, _ in hits(client, 'ann')} <= {f'd{n}' for n in range(COUNT)}


def test_an_index_of_words_offers_none(tmp_path):
    (tmp_path / 'segments_1').touch()
    settings = IndexSettings(path=str(tmp_path), ann=True)
    with pytest.raises(InputError, match='ann is for dense vectors, and .* leave it out'):
        index_type_of('words', settings)
