"""RepBERT in Pyserini's tables: its place, its idempotence, and indexes installed in Pyserini's
cache.
"""

import json

import pytest

from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.errors import InputError
from pyserini_repbert.interop import pyserini as plugin


class Ance:
    """Stands for an encoder of Pyserini's."""


@pytest.fixture
def maps(tmp_path, monkeypatch):
    tables = ({'ance': Ance, 'auto': object}, {'auto': object, 'ance': Ance})
    monkeypatch.setattr(plugin, 'encoder_maps', lambda: tables)
    monkeypatch.setattr(plugin, 'indexes_folder', lambda: tmp_path / 'indexes')
    return tables


def chosen(table, encoder):
    """The class that Pyserini's commands choose: the first keyword that is part of the
    lower-cased name.
    """
    return next((found for keyword, found in table.items() if keyword in encoder.lower()), None)


def checkpoint(folder, ranking):
    folder.mkdir(parents=True)
    (folder / 'config.json').write_text(
        json.dumps({'model_type': 'bert'} | ({'ranking': ranking} if ranking else {}))
    )
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


@pytest.mark.jvm
def test_an_installed_index_is_found_by_pyserini_itself(tmp_path, monkeypatch):
    """With the tables of the installed version, which in 2.x take no assignment."""
    from pyserini_repbert.lucene.compat import import_pyserini, prebuilt_tables

    monkeypatch.setenv('PYSERINI_CACHE', str(tmp_path / 'pyserini'))
    (tmp_path / 'exported').mkdir()
    (tmp_path / 'exported' / 'docid').write_text('a\nb\n')
    folder = plugin.install_index(tmp_path / 'exported', 'demo.own-index')
    util = import_pyserini('pyserini.util')
    assert (
        util.check_downloaded('demo.own-index') and 'demo.own-index' in prebuilt_tables()['dense']
    )
    assert util.download_prebuilt_index('demo.own-index', verbose=False) == str(folder)
    assert (folder / 'docid').read_text() == 'a\nb\n'
    for name in ('demo.own-index', 'msmarco-v1-passage', 'a/b', ''):
        with pytest.raises(InputError, match=f"^'{name}' cannot name an index"):
            plugin.install_index(tmp_path / 'exported', name)
