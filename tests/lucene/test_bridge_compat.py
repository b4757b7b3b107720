"""Imports of Pyserini: one virtual machine for all tests of this process."""

import os
import sys

import pytest

from pyserini_repbert.lucene import compat


def test_placeholder_key_lives_as_long_as_the_import(monkeypatch):
    monkeypatch.delenv('OPENAI_API_KEY', raising=False)
    with compat.placeholder_openai_key():
        assert os.environ['OPENAI_API_KEY']
    assert 'OPENAI_API_KEY' not in os.environ
    monkeypatch.setenv('OPENAI_API_KEY', 'mine')
    with compat.placeholder_openai_key():
        assert os.environ['OPENAI_API_KEY'] == 'mine'
    assert os.environ['OPENAI_API_KEY'] == 'mine'
    monkeypatch.setenv('OPENAI_API_KEY', '')
    with pytest.raises(KeyError), compat.placeholder_openai_key():
        raise KeyError
    assert os.environ['OPENAI_API_KEY'] == ''


@pytest.mark.jvm
def test_modules_are_listed_without_importing_pyserini():
    loaded = {name for name in sys.modules if name.startswith('pyserini.')}
    names = compat.runnable_modules()
    assert 'pyserini.search.faiss' in names
    assert 'pyserini.search.lucene' in names
    assert names == sorted(names)
    assert {name for name in sys.modules if name.startswith('pyserini.')} == loaded
    assert 'pyserini.search.faiss' in compat.suggestion('pyserini.serach.faiss')


@pytest.mark.jvm
def test_registries_of_the_installed_version(tmp_path, monkeypatch):
    """What the version really has: each table, and the names of topics and judgments with the place of their files."""
    monkeypatch.setenv('PYSERINI_CACHE', str(tmp_path))
    prebuilt = compat.prebuilt_tables()
    assert compat.packed_size(prebuilt['sparse']['msmarco-v1-passage']) == 2_170_758_745
    assert 'msmarco-v1-passage.unicoil' in prebuilt['impact']
    search = compat.import_pyserini('pyserini.search._base')
    for kind in ('topics', 'qrels'):
        assert 'dl19-passage' in compat.named_files(search, kind)
        place = compat.place_of(search, kind, 'dl19-passage')
        assert place.name == f'{kind}.dl19-passage.txt'
        assert place.is_absolute()


@pytest.mark.jvm
@pytest.mark.slow
def test_encoders_import_without_a_key(monkeypatch):
    monkeypatch.delenv('OPENAI_API_KEY', raising=False)
    queries, documents = compat.encoder_maps()
    assert 'ance' in queries
    assert 'ance' in documents
    assert 'OPENAI_API_KEY' not in os.environ
