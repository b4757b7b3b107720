"""Files with the same text are one hit, and others take their places."""

import pytest
from starlette.testclient import TestClient

from pyserini_repbert.collection import Collection
from pyserini_repbert.data.copies import depths_of
from pyserini_repbert.serve.app import create_app
from pyserini_repbert.serve.settings import IndexSettings, ServeSettings

TEXTS = ('A cat sat.', 'A dog ran.', 'A fish on the mat.', 'The red bird.')
COPIES = ('backup-1', 'backup-2', 'backup-3', 'backup-4')


@pytest.fixture
def client(tiny_checkpoint, tmp_path):
    """A client of a service of four texts, each of them in five folders."""
    for folder in ('notes', *COPIES):
        (tmp_path / 'docs' / folder).mkdir(parents=True)
        for number, text in enumerate(TEXTS):
            (tmp_path / 'docs' / folder / f'{number}.txt').write_text(text)
    with Collection.open(
        tmp_path / 'mine', encoder=str(tiny_checkpoint('encoder')), sparse='none'
    ) as collection:
        collection.sync(tmp_path / 'docs')
    index = IndexSettings(path=str(tmp_path / 'mine'))
    with TestClient(create_app(ServeSettings(indexes={'mine': index}))) as client:
        while client.get('/readyz').status_code == 503:
            assert client.app.state.service.failure is None
        yield client


def numbers_of(hits):
    return [hit['docid'].split('/')[1] for hit in hits]


def test_as_many_texts_are_shown_as_are_asked_for(client):
    """Of four files, two texts were shown where each had a copy."""

    def search(hits):
        answer = client.get(f'/v1/mine/search?query=cat&hits={hits}&group_copies=true').json()
        return answer['candidates']

    whole = search(10)
    assert sorted(numbers_of(whole)) == ['0.txt', '1.txt', '2.txt', '3.txt']
    for hit in whole:
        assert numbers_of([{'docid': docid} for docid in hit['also_in']]) == 4 * numbers_of([hit])
    # What is shown first stays where it is when more hits are asked for.
    for hits in range(1, 5):
        shown = search(hits)
        assert numbers_of(shown) == numbers_of(whole)[:hits]
        assert [hit['rank'] for hit in shown] == list(range(1, hits + 1))


def test_each_file_is_a_hit_unless_they_are_grouped(client):
    candidates = client.get('/v1/mine/search?query=cat&hits=100').json()['candidates']
    assert len(candidates) == 20
    assert not any('also_in' in hit for hit in candidates)


def test_the_ranking_grows_until_there_are_enough_texts():
    assert list(depths_of(3)) == [6, 12, 24, 48, 96, 192, 384, 768, 1000]
    assert list(depths_of(600)) == [1200]
