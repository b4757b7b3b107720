"""Folders of others are opened by the system that recognises them, whichever system that is."""

from types import SimpleNamespace

import pytest

from pyserini_repbert.errors import MismatchError
from pyserini_repbert.names.rerankers import open_reranker
from pyserini_repbert.serve.rerankers import Rerankers
from pyserini_repbert.serve.settings import ServeSettings
from pyserini_repbert.systems import encoders, registry
from pyserini_repbert.systems.registry import System


class OwnReranker:
    def __init__(self, model, device, max_length=None):
        self.model = model
        self.max_length = max_length


def has_own_file(name):
    return name.endswith('own')


@pytest.fixture(autouse=True)
def own_system(monkeypatch):
    """A system of another package, which recognises folders by their name."""
    own = System(
        'own-family',
        'Own',
        recognises=f'{__name__}:has_own_file',
        description='a model of our own',
        advice='rerank with it',
        reranker=f'{__name__}:OwnReranker',
    )
    entry_point = SimpleNamespace(load=lambda: own)
    monkeypatch.setattr(registry, 'entry_points', lambda group: [entry_point])
    registry.systems.cache_clear()
    yield
    registry.systems.cache_clear()


def test_a_reranker_of_a_recognised_folder(tmp_path):
    folder = str(tmp_path / 'own')
    reranker = open_reranker(folder, precision='float16', max_length=5)
    assert type(reranker).__name__ == 'OwnReranker'
    assert (reranker.model, reranker.max_length) == (folder, 5)


def test_a_service_names_its_system(tmp_path):
    folder = tmp_path / 'own'
    folder.mkdir()
    settings = ServeSettings.model_construct(rerankers=[str(folder)])
    assert Rerankers(settings, queues={}).systems == {'own': 'own-family'}


@pytest.mark.parametrize(
    ('open_encoder', 'expected'),
    [
        (encoders.query_encoder, 'an encoder of dense vectors'),
        (encoders.document_encoder, 'an encoder of dense vectors'),
        (encoders.term_weights_encoder, 'an encoder of term weights'),
    ],
)
def test_it_is_no_encoder(open_encoder, expected):
    message = f"'own' is a model of our own, {expected} was expected: rerank with it"
    with pytest.raises(MismatchError) as caught:
        open_encoder('own')
    assert str(caught.value) == message
