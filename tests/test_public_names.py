"""The names that others import: adding one is a decision, losing one breaks somebody."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

PUBLIC = {
    'pyserini_repbert': ['Candidate', 'Query', 'Ranking', 'register'],
    'pyserini_repbert.encode': ['RepBertDocumentEncoder', 'RepBertQueryEncoder', 'encode_corpus'],
    'pyserini_repbert.search': ['HybridSearcher', 'RepBertSearcher'],
    'pyserini_repbert.fusion': ['FusionMethod', 'fuse', 'interleave', 'provenance'],
    'pyserini_repbert.rerank': [
        'CedrReranker',
        'DuoBertReranker',
        'EpicReranker',
        'MonoBertReranker',
        'Reranker',
        'aggregate',
    ],
}


@pytest.mark.parametrize('package', PUBLIC)
def test_public_names(package):
    module = importlib.import_module(package)
    assert sorted(module.__all__) == PUBLIC[package]
    assert all(getattr(module, name).__doc__ for name in module.__all__)
    assert dir(module) == sorted(module.__all__)
    with pytest.raises(AttributeError):
        _ = module.nothing


def test_signatures_that_others_call():
    """DESIGN's names, called as written there."""
    import inspect

    from pyserini_repbert.pipeline import Pipeline
    from pyserini_repbert.ranking import Candidate
    from pyserini_repbert.rerank import aggregate
    from pyserini_repbert.search import RepBertSearcher

    assert Candidate('d') == Candidate('d', 0.0, None)
    assert list(inspect.signature(RepBertSearcher).parameters)[:2] == ['index_dir', 'query_encoder']
    assert list(inspect.signature(RepBertSearcher.search).parameters)[1:3] == ['query', 'k']
    assert list(inspect.signature(RepBertSearcher.batch_search).parameters)[1:5] == ['queries', 'qids', 'k', 'threads']
    assert list(inspect.signature(aggregate).parameters) == ['p', 'method', 'samples', 'seed']
    assert Pipeline.__doc__


@pytest.mark.parametrize('package', PUBLIC)
def test_importing_is_light(package):
    heavy = ('torch', 'pyserini', 'jnius', 'faiss', 'numpy')
    code = f'import sys, {package}; print([name for name in {heavy} if name in sys.modules])'
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == '[]'
