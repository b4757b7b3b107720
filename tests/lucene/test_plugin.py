"""RepBERT in Pyserini's tables: its place and its idempotence."""

import json

import pytest

from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.interop import pyserini as plugin


class Ance:
    """Stands for an encoder of Pyserini's."""


@pytest.fixture
def maps(monkeypatch):
    tables = ({'ance': Ance, 'auto': object}, {'auto': object, 'ance': Ance})
    monkeypatch.setattr(plugin, 'encoder_maps', lambda: tables)
    return tables


def chosen(table, encoder):
    """The class that Pyserini's commands choose: the first keyword that is part of the lower-cased name."""
    return next((found for keyword, found in table.items() if keyword in encoder.lower()), None)


def checkpoint(folder, ranking):
    folder.mkdir(parents=True)
    (folder / 'config.json').write_text(json.dumps({'model_type': 'bert'} | ({'ranking': ranking} if ranking else {})))
    return str(folder)


def test_repbert_comes_first_once_and_the_rest_keeps_its_order(maps):
    queries, documents = maps
    plugin.register()
    plugin.register()
    assert list(queries) == ['repbert', 'ance', 'auto']
    assert list(documents) == ['repbert', 'auto', 'ance']
    assert chosen(queries, 'models/ance/RepBERT-demo') is RepBertQueryEncoder
    assert chosen(documents, 'repbert') is RepBertDocumentEncoder
    assert chosen(queries, 'castorini/ance-msmarco-passage') is Ance


def test_a_folder_is_what_its_config_says(maps, tmp_path):
    queries, documents = maps
    plugin.register()
    ours = checkpoint(tmp_path / 'Ance/Tuned', {'system': 'repbert'})
    plugin.claim(ours)
    plugin.claim(ours)
    assert chosen(queries, ours) is RepBertQueryEncoder
    assert chosen(documents, ours) is RepBertDocumentEncoder
    assert chosen(queries, 'ance-elsewhere') is Ance
    assert len(queries) == 4


def test_another_checkpoint_below_our_name_keeps_its_class(maps, tmp_path):
    queries, _ = maps
    plugin.register()
    plugin.claim('repbert-demo')
    assert chosen(queries, 'repbert-demo') is RepBertQueryEncoder
    other = checkpoint(tmp_path / 'pyserini_repbert/ance', None)
    plugin.claim(other)
    assert chosen(queries, other) is Ance
