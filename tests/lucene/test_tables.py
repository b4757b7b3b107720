"""Pyserini 2.x's tables: fetched once, kept, and read from there; nothing here needs Pyserini or a network."""

import io
import json
import urllib.request
from email.message import Message
from urllib.error import URLError
from urllib.response import addinfourl

import pytest

from pyserini_repbert.errors import MissingResourceError
from pyserini_repbert.lucene import tables

COMMIT = '367560b4de7d9c3486f666dcc2df7783ca7758f2'
HOST = 'https://raw.githubusercontent.com/castorini'
ADDRESS = f'{HOST}/prebuilt-indexes/{COMMIT}/lucene/other-inverted.json'
TABLE = [{'name': 'cacm', 'md5': '0'}]


@pytest.fixture
def network(monkeypatch):
    """Stands for the network: `answers` by address, `asked` in order; what it does not know is unreachable."""
    monkeypatch.delenv('PYSERINI_SEED')
    monkeypatch.delenv('PYSERINI_REPBERT_OFFLINE')
    monkeypatch.delenv('HF_HUB_OFFLINE', raising=False)

    class Network:
        def __init__(self):
            self.answers = {ADDRESS: json.dumps(TABLE).encode()}
            self.asked = []

        def open(self, handler, request):
            self.asked.append(request.full_url)
            if request.full_url not in self.answers:
                raise URLError('no route to host')
            answer = addinfourl(io.BytesIO(self.answers[request.full_url]), Message(), request.full_url, 200)
            answer.msg = 'OK'
            return answer

    network = Network()
    monkeypatch.setattr(urllib.request.HTTPSHandler, 'https_open', lambda *asked: network.open(*asked))
    monkeypatch.setattr(urllib.request, '_opener', None)
    return network


def opened(address=ADDRESS):
    """The table as a module of Pyserini reads it that is imported now."""
    tables.keep_tables()
    with urllib.request.urlopen(address, timeout=10) as response:
        return json.load(response)


def test_a_table_is_fetched_once_and_then_there_without_a_network(network):
    assert opened() == TABLE
    network.answers = {}
    assert opened() == TABLE
    assert network.asked == [ADDRESS]
    kept = tables.tables_folder() / 'prebuilt-indexes' / COMMIT / 'lucene/other-inverted.json'
    assert json.loads(kept.read_text()) == TABLE


def test_a_table_that_cannot_be_had_is_one_line_with_the_way_to_it(network, monkeypatch):
    network.answers = {}
    with pytest.raises(MissingResourceError) as caught:
        opened()
    message = str(caught.value)
    assert 'lucene/other-inverted.json' in message and f'{HOST}/prebuilt-indexes/{COMMIT}/' in message
    assert '(no route to host)' in message and f'kept in {tables.tables_folder()}' in message
    monkeypatch.setenv('PYSERINI_REPBERT_OFFLINE', '1')
    network.asked.clear()
    with pytest.raises(MissingResourceError, match='downloads are off'):
        opened()
    assert network.asked == []


def test_what_is_no_table_is_not_kept(network):
    """A hotel's log-in page, or a connection that ended early."""
    network.answers = {ADDRESS: b'<html>please log in</html>'}
    with pytest.raises(MissingResourceError):
        opened()
    assert not list(tables.tables_folder().rglob('*'))
    network.answers = {ADDRESS: json.dumps(TABLE).encode()}
    assert opened() == TABLE
    (tables.tables_folder() / 'prebuilt-indexes' / COMMIT / 'lucene/other-inverted.json').write_text('[{"na')
    assert opened() == TABLE, 'a damaged copy is fetched again'
