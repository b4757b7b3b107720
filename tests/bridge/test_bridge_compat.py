"""Imports of Pyserini: one virtual machine for all tests of this process."""

import os
import sys

import pytest

from pyserini_repbert.errors import MismatchError, MissingDependencyError, UnknownNameError
from pyserini_repbert.pyserini_bridge import compat


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


def test_modules_are_listed_without_importing_pyserini():
    loaded = {name for name in sys.modules if name.startswith('pyserini.')}
    names = compat.runnable_modules()
    assert 'pyserini.search.faiss' in names
    assert 'pyserini.search.lucene' in names
    assert names == sorted(names)
    assert {name for name in sys.modules if name.startswith('pyserini.')} == loaded
    assert 'pyserini.search.faiss' in compat.suggestion('pyserini.serach.faiss')


def test_without_pyserini(monkeypatch):
    def missing(name):
        raise compat.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(compat.importlib.metadata, 'version', missing)
    with pytest.raises(MissingDependencyError, match='pip install pyserini'):
        compat.import_pyserini()


@pytest.mark.jvm
def test_import_errors_are_ours(monkeypatch):
    with pytest.raises(UnknownNameError, match=r"has no module 'pyserini\.nothing'"):
        compat.import_pyserini('pyserini.nothing')

    def broken(error):
        def importing(name):
            raise error

        monkeypatch.setattr(compat.importlib, 'import_module', importing)

    broken(ModuleNotFoundError("No module named 'openai'", name='openai'))
    with pytest.raises(MissingDependencyError, match='pip install openai'):
        compat.import_pyserini('pyserini.encode')
    broken(RuntimeError('client needs a key'))
    with pytest.raises(MismatchError, match='RuntimeError: client needs a key'):
        compat.import_pyserini('pyserini.encode')


@pytest.mark.jvm
@pytest.mark.slow
def test_encoders_import_without_a_key(monkeypatch):
    monkeypatch.delenv('OPENAI_API_KEY', raising=False)
    queries, documents = compat.encoder_maps()
    assert 'ance' in queries
    assert 'ance' in documents
    assert 'OPENAI_API_KEY' not in os.environ
