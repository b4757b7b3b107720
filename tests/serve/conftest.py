"""A service over a tiny index, with tiny rerankers of all systems, behind a client in this
process.
"""

from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from ready_services import ready_client

pytest.importorskip('fastapi', reason='the serve extra is not installed')
pytest.importorskip('prometheus_client', reason='the serve extra is not installed')

from judged import N_QUESTIONS

from pyserini_repbert.collection import Collection
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.serve import learning, writes
from pyserini_repbert.serve.settings import IndexSettings, Limits, ServeSettings

TOPICS = 'q1\tcat sat on the mat\nq2\tred fish in the sea\n'
QRELS = 'q1 0 d1 1\nq1 0 d2 0\nq2 0 d3 2\n'


@pytest.fixture(scope='session', autouse=True)
def _no_garbage():
    """A service collects garbage when it opens, among all that tests import: 0.2 seconds of a core.
    Once it closes, Python looks through all that again and again.
    """
    collector = SimpleNamespace(collect=int, freeze=int, unfreeze=int)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('pyserini_repbert.serve.service.gc', collector)
        yield


class _CalledHere:
    """A `ChildProcess` that calls functions in this process: another one starts for seconds."""

    def call(self, function, *arguments, seconds):
        return function(*arguments)

    def end(self):
        pass

    def stop(self):
        pass


@pytest.fixture
def in_this_process(monkeypatch):
    """A service writes and learns in this process."""
    monkeypatch.setattr(writes, 'ChildProcess', _CalledHere)
    monkeypatch.setattr(learning, 'ChildProcess', _CalledHere)
    yield
    for collection in writes._open_collections.values():
        collection.close()
    writes._open_collections.clear()


@pytest.fixture
def bundle(tiny_checkpoint, corpus_file, tmp_path):
    """A dense bundle of 12 passages with their texts."""
    folder = tmp_path / 'bundle'
    encode_corpus(
        open_corpus(corpus_file(12)),
        RepBertDocumentEncoder(tiny_checkpoint('encoder')),
        folder,
        store_text=True,
    )
    return folder


@pytest.fixture
def rerankers(cross_encoder_folder, tiny_epic, tiny_cedr):
    """Folders of a monoBERT, a duoBERT, an EPIC and a CEDR, each called as its system."""
    folders = [cross_encoder_folder('monobert'), cross_encoder_folder('duobert'), tiny_epic('epic')]
    return tuple(map(str, [*folders, tiny_cedr('knrm', 'cedr')]))


@pytest.fixture
def index_settings(bundle, tmp_path):
    """The bundle, with two judged topics."""
    (tmp_path / 'topics.tsv').write_text(TOPICS, encoding='utf-8')
    (tmp_path / 'qrels.txt').write_text(QRELS, encoding='utf-8')
    files = {'topics': str(tmp_path / 'topics.tsv'), 'qrels': str(tmp_path / 'qrels.txt')}
    return IndexSettings(path=str(bundle), **files)


@pytest.fixture
def serving(index_settings, rerankers):
    """make(limits=…, **settings) -> a client of a service that is ready."""
    with ExitStack() as held:

        def make(limits=None, **settings):
            indexes = {'tiny': index_settings}
            own = ServeSettings(
                indexes=indexes, rerankers=[*rerankers], limits=limits or Limits(), **settings
            )
            return held.enter_context(ready_client(own))

        yield make


@pytest.fixture
def client(serving):
    """A client of the service with its defaults."""
    return serving()


@pytest.fixture
def serving_with_mcp(index_settings):
    """A client of a service with MCP at /mcp."""
    settings = ServeSettings(indexes={'tiny': index_settings})
    with ready_client(settings, with_mcp=True) as client:
        yield client


@pytest.fixture
def judged_collection(tiny_checkpoint, tmp_path):
    """A collection without Lucene: two documents for each question."""
    documents = []
    for number in range(N_QUESTIONS):
        documents.append({'id': f'plain{number}', 'text': f'w{number} cat', 'kind': 'plain'})
        wanted = {'id': f'wanted{number}', 'text': f'w{number} mat', 'title': f'about {number}'}
        documents.append({**wanted, 'kind': 'wanted'})
    encoder = str(tiny_checkpoint('own'))
    with Collection.open(tmp_path / 'mine', encoder=encoder, sparse='none') as collection:
        collection.add(documents)
    return tmp_path / 'mine'


@pytest.fixture
def serving_path():
    """serve(path, of_index={}, **settings of the service) -> a client."""
    with ExitStack() as held:

        def serve(path, of_index=None, **settings):
            index = IndexSettings(path=str(path), **of_index or {})
            of_service = ServeSettings(indexes={'mine': index}, **settings)
            return held.enter_context(ready_client(of_service))

        yield serve
