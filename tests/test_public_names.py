"""The names that others import: adding one is a decision, losing one breaks somebody."""

import ast
import importlib
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

PUBLIC = {
    'pyserini_repbert': 'Candidate Query Ranking register',
    'pyserini_repbert.encode': 'RepBertDocumentEncoder RepBertQueryEncoder document_encoder '
    'encode_corpus query_encoder',
    'pyserini_repbert.search': 'DenseSearcher EpicImpactQueryEncoder EpicImpactSearcher '
    'HybridSearcher RepBertSearcher',
    'pyserini_repbert.fusion': 'Fusion FusionMethod FusionSettings fuse interleave provenance',
    'pyserini_repbert.pipeline': 'Machine Pipeline PipelineSpec StageCost StageSpec open_pipeline '
    'open_reranker '
    'open_texts parse_stage run_pipeline',
    'pyserini_repbert.rerank': 'CedrReranker DuoBertReranker EpicReranker MonoBertReranker '
    'Reranker aggregate',
}


@pytest.mark.parametrize('package', PUBLIC)
def test_public_names(package):
    module = importlib.import_module(package)
    assert sorted(module.__all__) == PUBLIC[package].split()
    assert all(getattr(module, name).__doc__ for name in module.__all__)
    assert dir(module) == sorted(module.__all__)
    with pytest.raises(AttributeError):
        _ = module.nothing


def test_signatures_that_others_call():
    """DESIGN's names, called as written there."""
    import inspect

    from pyserini_repbert.fusion import interleave
    from pyserini_repbert.pipeline import Pipeline
    from pyserini_repbert.ranking import Candidate
    from pyserini_repbert.rerank import (
        CedrReranker,
        DuoBertReranker,
        EpicReranker,
        MonoBertReranker,
        aggregate,
    )
    from pyserini_repbert.search import DenseSearcher, HybridSearcher

    assert Candidate('d') == Candidate('d', 0.0, None)
    assert list(inspect.signature(DenseSearcher).parameters)[:2] == ['index_dir', 'query_encoder']
    assert list(inspect.signature(DenseSearcher.search).parameters)[1:3] == ['query', 'k']
    assert list(inspect.signature(DenseSearcher.batch_search).parameters)[1:5] == [
        'queries',
        'qids',
        'k',
        'threads',
    ]
    assert list(inspect.signature(aggregate).parameters) == ['p', 'method', 'samples', 'seed']
    assert list(inspect.signature(Pipeline).parameters) == ['stages', 'texts', 'drop_rest']
    assert list(inspect.signature(Pipeline.rank).parameters)[1:] == ['topics', 'run', 'k', 'trace']
    assert list(inspect.signature(Pipeline.search).parameters)[1:] == ['query', 'k']
    assert list(inspect.signature(Pipeline.batch_search).parameters)[1:5] == [
        'queries',
        'qids',
        'k',
        'threads',
    ]
    assert list(inspect.signature(HybridSearcher).parameters)[:3] == [
        'dense_searcher',
        'sparse_searchers',
        'method',
    ]
    theirs = ['query', 'k0', 'k', 'alpha', 'normalization', 'weight_on_dense']
    assert list(inspect.signature(HybridSearcher.search).parameters)[1:] == theirs
    assert list(inspect.signature(interleave).parameters) == ['rankings', 'k']
    for reranker in (MonoBertReranker, DuoBertReranker, EpicReranker, CedrReranker):
        assert list(inspect.signature(reranker).parameters)[:2] == ['model', 'device']
        assert list(inspect.signature(reranker.rerank).parameters)[1:] == [
            'query',
            'candidates',
            'k',
        ]


@pytest.mark.parametrize('package', PUBLIC)
def test_importing_is_light(package):
    heavy = ('torch', 'pyserini', 'jnius', 'faiss', 'numpy')
    code = f'import sys, {package}; print([name for name in {heavy} if name in sys.modules])'
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == '[]'


def test_no_module_takes_a_public_name_of_a_package():
    """Public names are for other projects: some lie in packages above the one that names them."""
    modules = sorted((ROOT / 'pyserini_repbert').rglob('*.py'))
    public = {}
    for path in modules:
        if 'lazily(__name__' in path.read_text():
            package = '.'.join(path.parent.relative_to(ROOT).parts)
            public[package] = importlib.import_module(package).__all__
    taken = []
    for path in modules:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                names = public.get(node.module or '', ())
                taken += [f'{path}: {own.name}' for own in node.names if own.name in names]
    assert len(public) > len(PUBLIC) and taken == []


@pytest.mark.parametrize(
    'path', sorted(path for room in ('benchmarks', 'tools') for path in (ROOT / room).glob('*.py'))
)
def test_scripts_import_what_is_there(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or '').startswith('pyserini_repbert'):
            names = dir(importlib.import_module(node.module))
            assert all(
                own.name in names or find_spec(f'{node.module}.{own.name}') for own in node.names
            ), node.module
