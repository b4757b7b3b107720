"""Clients write into a collection of the service."""

import json
import shutil
import threading

import pytest
from folders import write_files
from starlette.testclient import TestClient

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.generation import read_known
from pyserini_repbert.data.documents import Document
from pyserini_repbert.errors import BusyError, InputError
from pyserini_repbert.serve import service as services, writes
from pyserini_repbert.serve.app import create_app
from pyserini_repbert.serve.child import OverdueError
from pyserini_repbert.serve.refusals import TooLateError
from pyserini_repbert.serve.settings import IndexSettings, Limits, ServeSettings
from pyserini_repbert.serve.writes import (
    CollectionWriter,
    Edit,
    apply_edit,
    merge_edits,
    read_documents,
)

WRITER = {'x-api-key': 'writer'}
READER = {'x-api-key': 'reader'}
DOCUMENTS = [{'id': word, 'text': f'the {word} sat on the mat'} for word in ('cat', 'dog', 'fish')]


@pytest.fixture
def folder(tiny_checkpoint, tmp_path):
    """A collection of three documents without Lucene."""
    encoder = str(tiny_checkpoint('encoder'))
    with Collection.open(tmp_path / 'mine', encoder=encoder, sparse='none') as collection:
        collection.sync(DOCUMENTS)
    return tmp_path / 'mine'


@pytest.fixture
def serving(serving_path):
    """serve(folder, **settings of the service) -> a client."""

    def serve(folder, writable=True, source=None, **settings):
        keys = {'api_keys': ['reader'], 'write_keys': ['writer'], **settings}
        return serving_path(folder, {'writable': writable, 'source': source}, **keys)

    return serve


@pytest.fixture
def client(folder, serving, in_this_process):
    return serving(folder)


def writer_of(folder, published=lambda: None, **limits):
    """A writer without a service."""
    return CollectionWriter(folder, 'cpu', Limits(**limits), published, lambda: read_known(folder))


def docids(client, **headers):
    answer = client.get('/v1/mine/search?query=the+mat&hits=9', headers=headers or READER)
    return sorted(hit['docid'] for hit in answer.json()['candidates'])


def test_what_is_written_is_found(client):
    body = {'text': 'the bird sat on the mat', 'title': 'Bird', 'year': 2024}
    put = client.put('/v1/mine/documents/a/bird?wait=true', json=body, headers=WRITER).json()
    assert (put['state'], put['generation'], put['error']) == ('done', 2, None)
    assert put['changes'] == {'added': 1, 'changed': 0, 'deleted': 0, 'unchanged': 0}
    assert docids(client) == ['a/bird', 'cat', 'dog', 'fish']
    document = client.get('/v1/mine/doc/a/bird', headers=READER).json()['doc']
    assert document['title'] == 'Bird' and document['year'] == 2024

    deleted = client.delete('/v1/mine/documents/cat?wait=true', headers=WRITER).json()
    assert deleted['generation'] == 3 and deleted['changes']['deleted'] == 1
    assert docids(client) == ['a/bird', 'dog', 'fish']

    lines = '\n'.join(json.dumps({'id': f'n{n}', 'text': 'a mat'}) for n in range(3))
    posted = client.post('/v1/mine/documents?wait=true', content=lines, headers=WRITER).json()
    assert posted['documents'] == 3 and posted['generation'] == 4
    assert docids(client) == ['a/bird', 'dog', 'fish', 'n0', 'n1', 'n2']


def test_a_write_that_is_not_waited_for_has_a_job(client):
    answer = client.put('/v1/mine/documents/bird', json={'text': 'a bird'}, headers=WRITER)
    assert answer.status_code == 202
    job = answer.json()['job']
    client.app.state.service.writers['mine'].job(job).ended.wait(20)
    done = client.get(f'/v1/mine/writes/{job}', headers=WRITER).json()
    assert (done['state'], done['generation']) == ('done', 2)
    unknown = client.get('/v1/mine/writes/other', headers=WRITER)
    assert unknown.status_code == 404 and 'no write' in unknown.json()['error']


def test_sync_follows_the_source_of_the_settings(tmp_path, tiny_checkpoint, serving):
    corpus = write_files(tmp_path / 'notes', {'a.txt': 'the cat sat'})
    encoder = str(tiny_checkpoint('encoder'))
    with Collection.open(tmp_path / 'mine', encoder=encoder, sparse='none') as collection:
        collection.sync(corpus)
    (corpus / 'b.txt').write_text('the dog sat')
    # In a process of its own, as it is meant.
    client = serving(tmp_path / 'mine', source=str(corpus))
    answer = client.post('/v1/mine/sync?wait=true', headers=WRITER).json()
    assert answer['changes'] == {'added': 1, 'changed': 0, 'deleted': 0, 'unchanged': 1}
    assert docids(client) == ['a.txt', 'b.txt']


@pytest.mark.parametrize(
    ('headers', 'said'),
    [
        (READER, 'writing takes a key that may write'),
        ({'x-api-key': 'writer '}, None),
        ({'x-api-key': 'no'}, 'this service takes a key, the one given is refused'),
    ],
)
def test_only_keys_that_may_write_do(client, headers, said):
    answer = client.put('/v1/mine/documents/x', json={'text': 'x'}, headers=headers)
    if said is None:
        assert answer.status_code == 202
    else:
        assert answer.status_code in (401, 403) and said in answer.json()['error']
    assert docids(client, **{'x-api-key': 'writer'})  # who may write may read


def test_an_index_is_not_writable_unless_the_settings_say_it(folder, serving):
    client = serving(folder, writable=False)
    answer = client.put('/v1/mine/documents/x', json={'text': 'x'}, headers=WRITER)
    assert answer.status_code == 403 and 'not writable here' in answer.json()['error']
    answer = client.delete('/v1/other/documents/x', headers=WRITER)
    assert answer.status_code == 404


@pytest.mark.parametrize(
    ('path', 'body', 'said'),
    [
        ('documents/x', '{"text"', 'the body is not JSON'),
        ('documents/x', '["text"]', 'the body has to be a JSON object'),
        ('documents/x', '{"id": "y", "text": ""}', "the body has the id 'y', the address 'x'"),
        (
            'documents/x',
            '{"docid": "y", "text": ""}',
            "the body has the docid 'y', the address 'x'",
        ),
        (
            'documents/x',
            '{"docno": "y", "text": ""}',
            "the body has the docno 'y', the address 'x'",
        ),
        ('documents/x', '{"docid": "x", "id": "y", "text": ""}', "the body has the id 'y'"),
        ('documents/x', '{"text": "x", "title": 1984}', "the title of document 'x' is not text"),
        ('documents/x%20y', '{"text": "x"}', 'white space'),
        ('documents/x', '{"title": "x"}', 'text'),
        ('documents', '', 'the body has no documents'),
        ('documents', '{"id": "a", "text": "x"}\nno', 'line 2 is not JSON'),
        ('documents', '{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}', "'a'"),
        ('sync', '', "index 'mine' has no source"),
    ],
)
def test_what_no_collection_takes_is_refused_and_nothing_is_written(client, path, body, said):
    method = 'PUT' if '/' in path else 'POST'
    answer = client.request(method, f'/v1/mine/{path}', content=body, headers=WRITER)
    assert answer.status_code == 400 and said in answer.json()['error'], answer.text
    assert docids(client) == ['cat', 'dog', 'fish']


@pytest.mark.parametrize(
    ('body', 'docid', 'fields'),
    [
        ({'id': 'w', 'docid': 'cat', 'docno': 'dog'}, 'w', {'docid': 'cat', 'docno': 'dog'}),
        ({'docid': 'w', 'docno': 'dog', '_id': 7}, '7', {'docid': 'w', 'docno': 'dog'}),
        ({'docno': 'w', 'contents': 'sea'}, 'w', {'contents': 'sea'}),
    ],
)
def test_a_document_with_several_identifiers_replaces_no_other(
    folder, in_this_process, body, docid, fields
):
    edit = read_documents(json.dumps({**body, 'text': 'moon'}).encode())
    apply_edit(str(folder), 'cpu', edit)
    with Collection.open(folder) as collection:
        assert len(collection) == 4
        assert collection.generation.documents([docid]) == [Document(docid, 'moon', '', fields)]


def test_a_document_that_was_never_there_cannot_be_deleted(client):
    answer = client.delete('/v1/mine/documents/none?wait=true', headers=WRITER)
    assert answer.status_code == 400 and "'none'" in answer.json()['error']


def test_settings_that_do_not_go_together(folder, tmp_path):
    with pytest.raises(InputError, match='writable collection'):
        IndexSettings.of(path=str(folder), source='x')
    index = IndexSettings(path=str(folder), writable=True)
    app = create_app(ServeSettings(indexes={'mine': index}))
    with TestClient(app) as client:
        while client.get('/readyz').status_code == 503 and not app.state.service.failure:
            pass
        assert 'no key may write' in app.state.service.failure


def test_edits_that_wait_become_one_generation(folder, in_this_process):
    begun = threading.Event()
    first = threading.Event()

    def published():
        begun.set()
        first.wait(20)

    writer = writer_of(folder, published)
    jobs = [writer.submit(Edit(put=(Document('n0', 'mat'),)))]
    begun.wait(20)
    for number in range(1, 6):
        jobs.append(writer.submit(Edit(put=(Document(f'n{number}', 'mat'),))))
    # One that fails does not fail the others.
    bad = writer.submit(Edit(deleted=('never',)))
    first.set()
    for job in [*jobs, bad]:
        assert job.ended.wait(20)
    writer.stop()
    assert bad.state == 'failed' and isinstance(bad.error, InputError)
    assert [job.state for job in jobs] == ['done'] * 6
    with Collection.open(folder) as collection:
        assert len(collection) == 9


def test_merged_edits_do_what_the_edits_do():
    cat = Document('cat', 'one')
    other = Document('cat', 'two')
    dog = Document('dog', 'dog')
    edits = [Edit(put=(cat, dog)), Edit(deleted=('dog', 'fish')), Edit(put=(other,))]
    assert merge_edits(edits) == Edit(put=(other,), deleted=('dog', 'fish'))


def test_a_stopping_service_says_so_to_those_who_wait(folder, in_this_process):
    begun = threading.Event()
    go_on = threading.Event()

    def published():
        begun.set()
        go_on.wait(20)

    writer = writer_of(folder, published, waiting=1)
    writer.submit(Edit(put=(Document('n', 'mat'),)))
    begun.wait(20)
    waiting = writer.submit(Edit(put=(Document('m', 'mat'),)))
    with pytest.raises(Exception, match='1 writes wait already'):
        writer.submit(Edit(put=(Document('o', 'mat'),)))
    stopping = threading.Thread(target=writer.stop)
    stopping.start()
    assert waiting.ended.wait(20)
    assert isinstance(waiting.error, BusyError)
    go_on.set()
    stopping.join()


def test_writes_go_on_after_a_generation_that_cannot_be_opened(folder, in_this_process):
    openings = []

    def published():
        openings.append(len(openings))
        if len(openings) == 1:
            raise OSError('the disk is away')

    writer = writer_of(folder, published)
    first = writer.submit(Edit(put=(Document('n', 'mat'),)))
    assert first.ended.wait(20)
    assert first.state == 'failed'
    assert 'generation 2 is written, but searches cannot open it yet' in str(first.error)
    second = writer.submit(Edit(put=(Document('m', 'mat'),)))
    assert second.ended.wait(20)
    writer.stop()
    assert (second.state, second.generation) == ('done', 3)


def test_writes_that_wait_together_wait_once_for_another_writer(folder, monkeypatch):
    calls = []
    waiting = threading.Event()

    def refuse(_, edit):
        waiting.wait(20)
        calls.append(edit)
        raise BusyError('another process writes')

    monkeypatch.setattr(writes, '_MOST_BUSY_SECONDS', 0.0)
    monkeypatch.setattr(CollectionWriter, '_call', refuse)
    writer = writer_of(folder)
    jobs = [writer.submit(Edit(put=(Document(f'n{number}', 'mat'),))) for number in range(6)]
    waiting.set()
    for job in jobs:
        assert job.ended.wait(20)
    writer.stop()
    said = 'another program writes into the collection: send the write again later'
    assert [str(job.error) for job in jobs] == [said] * 6
    # The first may be taken before the others come.
    assert len(calls) <= 2


def test_a_job_that_has_ended_keeps_no_documents(folder, in_this_process):
    writer = writer_of(folder)
    job = writer.submit(Edit(put=(Document('n', 'mat'), Document('m', 'mat'))))
    assert job.ended.wait(20)
    writer.stop()
    assert job.edit == Edit()
    assert job.n_documents == 2


def test_a_document_of_another_source_is_refused(folder, tmp_path, serving, in_this_process):
    notes = write_files(tmp_path / 'notes', {'a.txt': 'the bird sat on the mat'})
    client = serving(folder, source=str(notes))
    assert client.post('/v1/mine/sync?wait=true', headers=WRITER).status_code == 200
    body = {'text': 'a mat'}
    refused = client.put('/v1/mine/documents/cat?wait=true', json=body, headers=WRITER)
    assert refused.status_code == 409
    assert refused.json()['error'].startswith(
        "document 'cat' belongs to source 'python', and source 'add' would replace it"
    )
    assert client.put('/v1/mine/documents/b.txt?wait=true', json=body, headers=WRITER).is_success
    (notes / 'b.txt').write_text('the bird sat')
    refused = client.post('/v1/mine/sync?wait=true', headers=WRITER)
    assert refused.status_code == 409
    assert refused.json()['error'].startswith("document 'b.txt' belongs to source 'add', and")
    # A document that is deleted belongs to no source.
    assert client.delete('/v1/mine/documents/b.txt?wait=true', headers=WRITER).is_success
    assert client.post('/v1/mine/sync?wait=true', headers=WRITER).is_success
    assert docids(client) == ['a.txt', 'b.txt', 'cat', 'dog', 'fish']


def test_a_document_may_be_deleted_and_written_together(folder, in_this_process):
    begun = threading.Event()
    go_on = threading.Event()

    def published():
        begun.set()
        go_on.wait(20)

    writer = writer_of(folder, published)
    writer.submit(Edit(put=(Document('n', 'mat'),)))
    begun.wait(20)
    jobs = [
        writer.submit(Edit(deleted=('cat',))),
        writer.submit(Edit(put=(Document('cat', 'mine now'),))),
    ]
    go_on.set()
    for job in jobs:
        assert job.ended.wait(20)
    writer.stop()
    assert [job.state for job in jobs] == ['done', 'done']


def rebuilt(folder):
    """Another collection of the same documents, and many generations of it."""
    encoder = str(folder.parent / 'encoder')
    with Collection.open(folder, encoder=encoder, sparse='none') as collection:
        for number in range(5):
            collection.sync([*DOCUMENTS, {'id': f'other{number}', 'text': 'mat'}])


def gone(folder):
    """Nothing."""


def earlier(folder):
    """The collection as it was before the last write."""
    shutil.copytree(folder.with_name('backup'), folder)


def _files(folder):
    """The files of a collection, without those that SQLite itself rewrites when it is closed."""
    kept = (path for path in folder.rglob('*') if not path.name.startswith('collection.sqlite'))
    return {path: path.read_bytes() for path in kept if path.is_file()}


@pytest.mark.parametrize(
    ('put_there', 'said'),
    [
        (gone, 'no longer holds a collection'),
        (rebuilt, 'no longer holds the collection that was opened'),
        (earlier, 'holds generation 1, and generation 2 was there'),
    ],
)
def test_another_collection_is_not_taken_over(
    folder, serving, in_this_process, put_there, said, monkeypatch
):
    monkeypatch.setattr(services, '_LOOKED_EVERY', 0.02)
    shutil.copytree(folder, folder.with_name('backup'))
    client = serving(folder)
    body = {'text': 'the bird sat on the mat'}
    client.put('/v1/mine/documents/bird?wait=true', json=body, headers=WRITER)
    away = folder.with_name('away')
    folder.rename(away)
    put_there(folder)
    before = _files(folder)
    known = None if put_there is gone else read_known(folder)

    refused = client.put('/v1/mine/documents/lost?wait=true', json=body, headers=WRITER)
    assert (refused.status_code, said in refused.json()['error']) == (503, True)
    while client.get('/readyz').status_code == 200:
        pass
    ready = client.get('/readyz')
    assert ready.status_code == 503
    assert ready.json()['error'].startswith("index 'mine': its folder ")
    assert said in ready.json()['error'] and str(folder) not in ready.json()['error']
    judgment = {'question': 'cat', 'docid': 'cat', 'grade': 1}
    judged = client.post('/v1/mine/judgments', json={'judgments': [judgment]}, headers=WRITER)
    assert judged.status_code == 503
    # Searches go on in the generation that is open.
    assert docids(client) == ['bird', 'cat', 'dog', 'fish']
    if put_there is gone:
        assert not folder.exists()
    else:
        assert _files(folder) == before
        assert read_known(folder) == known
        assert not (folder / 'judgments.sqlite').exists()
        folder.rename(folder.with_name('other'))

    away.rename(folder)
    while client.get('/readyz').status_code == 503:
        pass
    again = client.put('/v1/mine/documents/back?wait=true', json=body, headers=WRITER).json()
    assert (again['state'], again['generation']) == ('done', 3)
    assert docids(client) == ['back', 'bird', 'cat', 'dog', 'fish']


def test_a_write_that_is_waited_for_too_long_says_that_it_may_still_happen(
    folder, serving, in_this_process, monkeypatch
):
    go_on = threading.Event()
    apply = writes.apply_edit

    def slowly(*arguments):
        go_on.wait(20)
        return apply(*arguments)

    monkeypatch.setattr(writes, 'apply_edit', slowly)
    client = serving(folder, limits=Limits(rerank_seconds=0.1))
    answer = client.put('/v1/mine/documents/x?wait=true', json={'text': 'x'}, headers=WRITER)
    assert answer.status_code == 504
    (job,) = client.app.state.service.writers['mine']._jobs
    assert answer.json()['error'] == (
        f"write '{job}' has not ended yet, and may still happen: ask /v1/mine/writes/{job} "
        'whether it has'
    )
    go_on.set()
    client.app.state.service.writers['mine'].job(job).ended.wait(20)
    assert client.get(f'/v1/mine/writes/{job}', headers=WRITER).json()['state'] == 'done'


def test_work_that_takes_too_long_is_given_up(folder, monkeypatch):
    class Slow:
        def call(self, function, *arguments, seconds):
            raise OverdueError(f'the work took more than {seconds:.0f} s and was given up')

        def stop(self):
            pass

    monkeypatch.setattr(writes, 'ChildProcess', Slow)
    writer = writer_of(folder, write_seconds=7.0)
    job = writer.submit(Edit(put=(Document('n', 'mat'),)))
    assert job.ended.wait(20)
    writer.stop()
    assert isinstance(job.error, TooLateError)
    assert 'more than 7 s and was given up (limits: write_seconds)' in str(job.error)
