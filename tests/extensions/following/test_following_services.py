"""The setting `follow` of a service: its collection in step with a folder whose files change."""

import logging
import threading

import pytest
from folders import wait_until, write_files
from ready_services import ready_client

pytest.importorskip('fastapi', reason='the serve extra is not installed')
pytest.importorskip('prometheus_client', reason='the serve extra is not installed')

from folders import HANGS

from pyserini_repbert.collection import Collection
from pyserini_repbert.commands.command import run
from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.following.serving import IN_SERVICES
from pyserini_repbert.serve import writes
from pyserini_repbert.serve.child import LostProcessError
from pyserini_repbert.serve.command import main
from pyserini_repbert.serve.settings import IndexSettings, ServeSettings, read_settings

LOG = 'pyserini_repbert.extensions.following.serving'
WORDS = ('cat', 'dog', 'fish')


@pytest.fixture
def mine(notes, tmp_path, tiny_checkpoint):
    """A collection of the notes."""
    encoder = str(tiny_checkpoint('encoder'))
    with Collection.open(tmp_path / 'mine', encoder=encoder, sparse='none') as collection:
        collection.sync(notes)
    return tmp_path / 'mine'


def served(folder, corpus, **settings):
    """A client of a service whose collection follows a corpus."""
    index = IndexSettings(path=str(folder), follow=str(corpus), **settings)
    return ready_client(ServeSettings(indexes={'mine': index}, write_keys=['writer']))


def docids(client):
    answer = client.get('/v1/mine/search?query=the+mat&hits=9').json()
    return sorted(hit['docid'] for hit in answer['candidates'])


def generation(client):
    return client.get('/v1/mine').json()['generation']


@pytest.mark.usefixtures('in_this_process')
def test_a_service_follows_what_changes_before_and_while_it_serves(mine, notes):
    (notes / 'bird.txt').write_text('a bird on the mat', encoding='utf-8')
    with served(mine, notes) as client:
        wait_until(lambda: generation(client) == 2)
        assert 'bird.txt' in docids(client)
        write_files(notes, {'moon.txt': 'the moon', 'tree.txt': 'the tree'})
        (notes / 'cat.txt').unlink()
        wait_until(lambda: generation(client) == 3)
        assert docids(client) == ['bird.txt', 'dog.txt', 'fish.txt', 'moon.txt', 'tree.txt']
    # It has stopped with the service.
    assert not [thread for thread in threading.enumerate() if thread.name == 'follow mine']


@pytest.mark.usefixtures('in_this_process')
def test_a_sync_that_fails_is_one_line_of_the_log(mine, notes, caplog):
    with caplog.at_level(logging.WARNING, LOG), served(mine, notes) as client:
        for word in ('cat', 'dog'):
            (notes / f'{word}.txt').unlink()
        wait_until(lambda: caplog.records)
        assert docids(client) == ['cat.txt', 'dog.txt', 'fish.txt']
        (notes / 'cat.txt').write_text('a red cat', encoding='utf-8')
        wait_until(lambda: generation(client) == 2)
        assert docids(client) == ['cat.txt', 'fish.txt']
    (record,) = [record for record in caplog.records if record.name == LOG]
    assert record.getMessage().startswith(f"index 'mine' is not in step with {notes}: ")
    assert 'has lost 2 of 3 documents' in record.getMessage()
    assert '\n' not in record.getMessage()


def test_a_sync_in_hand_is_given_up_when_the_service_stops(mine, notes, monkeypatch, caplog):
    begun = threading.Event()
    ended = threading.Event()

    class Slow:
        def call(self, function, *arguments, seconds):
            begun.set()
            assert ended.wait(HANGS)
            raise LostProcessError('the process was ended')

        def end(self):
            ended.set()

        def stop(self):
            pass

    monkeypatch.setattr(writes, 'ChildProcess', Slow)
    with caplog.at_level(logging.WARNING, LOG), served(mine, notes):
        assert begun.wait(HANGS)
    assert ended.is_set()
    assert not [record for record in caplog.records if record.name == LOG]


@pytest.mark.usefixtures('in_this_process')
def test_clients_and_the_folder_write_one_after_the_other(mine, notes):
    with served(mine, notes, writable=True) as client:
        service = client.app.state.service
        assert service.writer_of('mine') is service.writers['mine']
        body = {'text': 'a bird on the mat'}
        put = client.put(
            '/v1/mine/documents/bird?wait=true', json=body, headers={'x-api-key': 'writer'}
        )
        assert put.json()['state'] == 'done'
        (notes / 'moon.txt').write_text('the moon', encoding='utf-8')
        wait_until(lambda: 'moon.txt' in docids(client))
        assert 'bird' in docids(client)


def test_only_followed_collections_are_written(mine, notes):
    with served(mine, notes) as client:
        answer = client.put(
            '/v1/mine/documents/bird', json={'text': 'bird'}, headers={'x-api-key': 'writer'}
        )
        assert answer.status_code == 403
        assert 'not writable here' in answer.json()['error']


def test_paths_are_beside_the_settings_file(mine, notes, tmp_path):
    path = tmp_path / 'serve.yaml'
    path.write_text('indexes:\n  mine: {path: mine, follow: notes}\n  other: mine\n')
    indexes = read_settings(path).indexes
    assert indexes['mine'].follow == str(notes)
    assert indexes['other'].follow is None


def test_what_cannot_be_followed_ends_the_service_with_one_line(mine, tmp_path, capsys):
    path = tmp_path / 'serve.yaml'
    path.write_text('indexes:\n  mine: {path: mine, follow: nowhere}\n')
    assert run(main, ['--config', str(path), '--port', '0', '--quiet']) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "'nowhere' is not a folder or a file of this machine" in line


def test_only_collections_follow_a_folder(tmp_path, notes, tiny_checkpoint, corpus_file, capsys):
    from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
    from pyserini_repbert.names.corpora import open_corpus

    encoder = RepBertDocumentEncoder(tiny_checkpoint('encoder'))
    encode_corpus(open_corpus(corpus_file(3)), encoder, tmp_path / 'bundle', store_text=True)
    path = tmp_path / 'serve.yaml'
    path.write_text('indexes:\n  mine: {path: bundle, follow: notes}\n')
    assert run(main, ['--config', str(path), '--port', '0', '--quiet']) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "index 'mine' is not a collection: only collections follow a folder" in line


def test_one_process_follows():
    settings = ServeSettings(indexes={'mine': IndexSettings(path='mine', follow='notes')})
    IN_SERVICES.check(settings, 1)
    with pytest.raises(InputError, match="'mine' follows a folder: one process"):
        IN_SERVICES.check(settings, 2)
