"""RepBERT in Pyserini's tables: its place, its idempotence, and indexes installed in Pyserini's cache."""

import json

import pytest

from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.interop import pyserini as plugin


class Ance:
    """Stands for an encoder of Pyserini's."""


@pytest.fixture
def maps(tmp_path, monkeypatch):
    tables = ({'ance': Ance, 'auto': object}, {'auto': object, 'ance': Ance})
    monkeypatch.setattr(plugin, 'encoder_maps', lambda: tables)
    indexes = {'sparse': {'msmarco': {'md5': '0'}}, 'impact': {}, 'dense': {}}
    monkeypatch.setattr(plugin, 'prebuilt_tables', lambda: indexes)
    monkeypatch.setattr(plugin, 'indexes_folder', lambda: tmp_path / 'cache/indexes')
    return (*tables, indexes['dense'])


def chosen(table, encoder):
    """The class that Pyserini's commands choose: the first keyword that is part of the lower-cased name."""
    return next((found for keyword, found in table.items() if keyword in encoder.lower()), None)


def checkpoint(folder, ranking):
    folder.mkdir(parents=True)
    (folder / 'config.json').write_text(json.dumps({'model_type': 'bert'} | ({'ranking': ranking} if ranking else {})))
    return str(folder)


def test_repbert_comes_first_once_and_the_rest_keeps_its_order(maps):
    queries, documents, _ = maps
    plugin.register()
    plugin.register()
    assert list(queries) == ['repbert', 'ance', 'auto']
    assert list(documents) == ['repbert', 'auto', 'ance']
    assert chosen(queries, 'models/ance/RepBERT-demo') is RepBertQueryEncoder
    assert chosen(documents, 'repbert') is RepBertDocumentEncoder
    assert chosen(queries, 'castorini/ance-msmarco-passage') is Ance


def test_a_folder_is_what_its_config_says(maps, tmp_path):
    queries, documents, _ = maps
    plugin.register()
    ours = checkpoint(tmp_path / 'Ance/Tuned', {'system': 'repbert'})
    plugin.claim(ours)
    plugin.claim(ours)
    assert chosen(queries, ours) is RepBertQueryEncoder
    assert chosen(documents, ours) is RepBertDocumentEncoder
    assert chosen(queries, 'ance-elsewhere') is Ance
    assert len(queries) == 4


def test_another_checkpoint_below_our_name_keeps_its_class(maps, tmp_path):
    queries, _, _ = maps
    plugin.register()
    plugin.claim('repbert-demo')
    assert chosen(queries, 'repbert-demo') is RepBertQueryEncoder
    other = checkpoint(tmp_path / 'pyserini_repbert/ance', None)
    plugin.claim(other)
    assert chosen(queries, other) is Ance


@pytest.fixture
def exported(tmp_path):
    folder = tmp_path / 'exported'
    folder.mkdir()
    (folder / 'index').write_bytes(b'vectors')
    (folder / 'docid').write_text('a\nb\n')
    return folder


def test_installed_index_is_found_again(maps, exported, tmp_path):
    target = plugin.install_index(exported, 'demo.repbert')
    assert target == plugin.install_index(exported, 'demo.repbert')
    dense = maps[2]
    entry = dict(dense['demo.repbert'])
    # where Pyserini looks before it downloads: the file name without .tar.gz, a dot, the MD5
    assert target == tmp_path / 'cache/indexes' / f'{entry["filename"].removesuffix(".tar.gz")}.{entry["md5"]}'
    assert (target / 'index').read_bytes() == b'vectors'
    assert entry['documents'] == 2
    dense.clear()
    plugin.register()
    assert dense == {'demo.repbert': entry}


def test_index_that_cannot_be_installed(maps, exported):
    with pytest.raises(InputError, match='cannot name an index'):
        plugin.install_index(exported, 'a/b')
    with pytest.raises(MismatchError, match="another index 'msmarco'"):
        plugin.install_index(exported, 'msmarco')
    (exported / 'docid').unlink()
    with pytest.raises(InputError, match="has no file 'docid'"):
        plugin.install_index(exported, 'demo.repbert')


@pytest.mark.jvm
def test_an_installed_index_is_found_by_pyserini_itself(exported, tmp_path, monkeypatch):
    """With the tables of the installed version, which in 2.x take no assignment."""
    from pyserini_repbert.lucene.compat import import_pyserini, prebuilt_tables

    monkeypatch.setenv('PYSERINI_CACHE', str(tmp_path / 'pyserini'))
    folder = plugin.install_index(exported, 'demo.own-index')
    assert plugin.install_index(exported, 'demo.own-index') == folder
    assert prebuilt_tables()['dense']['demo.own-index']['documents'] == 2
    util = import_pyserini('pyserini.util')
    assert util.check_downloaded('demo.own-index')
    assert util.download_prebuilt_index('demo.own-index', verbose=False) == str(folder)
    with pytest.raises(MismatchError, match="another index 'msmarco-v1-passage'"):
        plugin.install_index(exported, 'msmarco-v1-passage')
