"""A service goes over to the generations that another process publishes."""

import gc
import logging
import multiprocessing
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from ready_services import ready_client

from pyserini_repbert.collection import Collection
from pyserini_repbert.extensions.trials import encode_trial, go_back, use_trial
from pyserini_repbert.serve import routes, service as services
from pyserini_repbert.serve.settings import IndexSettings, ServeSettings

WORDS = ('cat', 'dog', 'fish', 'bird', 'moon', 'tree')


def documents(number):
    """Six documents that say their number."""
    return [{'id': f'{word}-{number}', 'text': f'the {word} sat on the mat'} for word in WORDS]


@pytest.fixture
def folder(tiny_checkpoint, tmp_path, monkeypatch):
    """A collection in its first generation, and services that look often."""
    monkeypatch.setattr(services, '_LOOKED_EVERY', 0.02)
    with Collection.open(
        tmp_path / 'mine', encoder=str(tiny_checkpoint('encoder')), sparse='none'
    ) as collection:
        collection.sync(documents(1))
    return tmp_path / 'mine'


def served(folder, **settings_of_index):
    """A client of a service of the collection."""
    settings = ServeSettings(indexes={'mine': IndexSettings(path=str(folder), **settings_of_index)})
    return ready_client(settings)


def search(client):
    """The generation of an answer, and the numbers that its documents say."""
    answer = client.get('/v1/mine/search?query=the+cat&hits=20')
    assert answer.status_code == 200, answer.text
    body = answer.json()
    numbers = {hit['docid'].rpartition('-')[2] for hit in body['candidates']}
    assert len(body['candidates']) == len(WORDS)
    return body['generation'], numbers


def wait_for(client, generation):
    """Until the service answers from a generation."""
    for _ in range(500):
        found, numbers = search(client)
        if found == generation:
            return numbers
        time.sleep(0.02)
    raise AssertionError(f'the service stays on generation {found}')


def publish(folder, numbers, pause=0.0):
    """Publish a generation for each number."""
    with Collection.open(folder) as collection:
        for number in numbers:
            collection.sync(documents(number), delete_most=True)
            time.sleep(pause)


def test_a_service_goes_over_to_a_new_generation(folder):
    with served(folder) as client:
        assert search(client) == (1, {'1'})
        before = client.app.state.service.served['mine']
        publish(folder, [2])
        assert wait_for(client, 2) == {'2'}
        after = client.app.state.service.served['mine']
        assert after.query_encoder is before.query_encoder
        assert client.get('/v1/mine').json()['generation'] == 2
        assert client.get('/v1/mine/doc/cat-2').status_code == 200
        assert client.get('/v1/mine/doc/cat-1').status_code == 404


def test_a_service_goes_over_to_a_trial_and_back(folder, tiny_checkpoint):
    other = str(tiny_checkpoint('other', seed=7))

    def scores(client):
        answer = client.get('/v1/mine/search?query=the+cat&hits=20').json()
        return {hit['docid']: hit['score'] for hit in answer['candidates']}

    with served(folder) as client:
        before = scores(client)
        with Collection.open(folder, encoder=other) as collection:
            encode_trial(collection)
        # The trial beside it changes no answer.
        assert search(client) == (1, {'1'})
        assert scores(client) == before
        with Collection.open(folder) as collection:
            use_trial(collection)
        assert wait_for(client, 2) == {'1'}
        assert scores(client) != before
        assert client.get('/v1/mine').json()['encoder'] == 'other'
        with Collection.open(folder) as collection:
            go_back(collection)
        assert wait_for(client, 3) == {'1'}
        assert scores(client) == before


def test_a_request_ends_on_the_generation_on_which_it_began(folder):
    with served(folder) as client:
        service = client.app.state.service
        with service.hold('mine') as held:
            publish(folder, [2])
            wait_for(client, 2)
            assert held.store.documents(['cat-1', 'cat-2'])[1] is None
            assert held.index.generation.number == 1
            assert (folder / 'generations' / '000001.json').exists()
        with pytest.raises(Exception, match='closed'):
            held.store.documents(['cat-1'])


def test_the_list_of_indexes_holds_each_while_it_is_read(folder, monkeypatch):
    read = routes.index_answer

    def read_after_the_next_generation(service, index):
        service._current['mine'].replace(newer)
        return read(service, index)

    with served(folder) as client:
        service = client.app.state.service
        monkeypatch.setattr(services, '_LOOKED_EVERY', 60)
        time.sleep(0.1)
        publish(folder, [2])
        settings = service.settings
        newer = services.ServedIndex(
            'mine',
            settings.indexes['mine'],
            settings,
            service.queues,
            base=None,
            before=service.served['mine'],
        )
        monkeypatch.setattr(routes, 'index_answer', read_after_the_next_generation)
        answer = client.get('/v1/indexes')
        assert answer.status_code == 200, answer.text
        assert answer.json()['indexes'][0]['generation'] == 1


def test_a_generation_that_cannot_be_opened_is_said_once(folder, monkeypatch, caplog):
    def fail(*_, **__):
        raise OSError('the disk is away')

    with served(folder) as client:
        monkeypatch.setattr(services, 'ServedIndex', fail)
        publish(folder, [2])
        with caplog.at_level(logging.WARNING):
            time.sleep(0.5)
        assert search(client) == (1, {'1'})
        said = [record.getMessage() for record in caplog.records if 'stays' in record.message]
        assert said == [
            "index 'mine' stays on its generation, the newest cannot be opened: the disk is away"
        ]


@pytest.mark.slow
def test_clients_search_while_generations_are_published(folder):
    n_generations = 50
    answers = []
    ended = threading.Event()

    def ask(client):
        while not ended.is_set():
            answers.append(search(client))

    with served(folder) as client, ThreadPoolExecutor(16) as threads:
        askers = [threads.submit(ask, client) for _ in range(16)]
        writer = multiprocessing.get_context('spawn').Process(
            target=publish, args=(folder, range(2, n_generations + 1), 0.05)
        )
        try:
            writer.start()
            writer.join()
            assert writer.exitcode == 0
            wait_for(client, n_generations)
        finally:
            ended.set()
        for asker in askers:
            # Raises what failed.
            asker.result()
        gc.collect()
    # Each answer has the documents of its own generation, and of no other.
    assert all(numbers == {str(generation)} for generation, numbers in answers)
    assert len({generation for generation, _ in answers}) > 5


def test_a_damaged_text_is_an_error_of_its_index(folder, caplog):
    with served(folder) as client:
        with sqlite3.connect(folder / 'collection.sqlite') as connection:
            connection.execute("UPDATE texts SET text = 'changed'")
        connection.close()
        answer = client.get('/v1/mine/search?query=the+cat&hits=2')
        assert answer.status_code == 503
        assert answer.json()['error'].startswith('this index is damaged, or a file that it needs')
        assert str(folder) not in answer.text
        assert client.get('/readyz').status_code == 200
    assert "the title or the text of document '" in caplog.text
    assert 'Traceback' not in caplog.text
