"""A tiny index with its passages, and tiny rerankers."""

import asyncio
import inspect

import pytest

from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.rerank import DuoBertReranker, MonoBertReranker
from pyserini_repbert.search import DenseSearcher


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run the asynchronous tests that other projects have for their plugins."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def bundle(tiny_checkpoint, corpus_file, tmp_path):
    """make(store_text=True) -> a dense bundle of 12 passages."""

    def make(store_text=True):
        folder = tmp_path / 'bundle'
        encoder = RepBertDocumentEncoder(tiny_checkpoint())
        encode_corpus(open_corpus(corpus_file(12)), encoder, folder, store_text=store_text)
        return folder

    return make


@pytest.fixture
def dense(tiny_checkpoint, corpus_file, tmp_path):
    """A dense bundle of 30 passages in three shards."""
    corpus = open_corpus(corpus_file(30))
    encode_corpus(
        corpus,
        RepBertDocumentEncoder(tiny_checkpoint()),
        tmp_path / 'dense',
        store_text=True,
        shard_size=13,
    )
    return tmp_path / 'dense'


@pytest.fixture
def candidates(dense):
    """A frame of seven hits for each of three queries, with text."""
    from pyterrier_world import TOPICS

    import pyserini_repbert.interop.pyterrier as ours

    retriever = ours.RepBertRetriever(dense, num_results=7)
    return (retriever >> ours.PassageText(retriever))(TOPICS)


@pytest.fixture
def searcher(bundle):
    """Exact search of it."""
    return DenseSearcher(bundle())


@pytest.fixture
def mono(cross_encoder_folder):
    """A monoBERT with random weights."""
    return MonoBertReranker(cross_encoder_folder('monobert'))


@pytest.fixture
def duo(cross_encoder_folder):
    """A duoBERT with random weights."""
    return DuoBertReranker(cross_encoder_folder('duobert'))


@pytest.fixture
def scores():
    """{docid: score} of hits."""
    return lambda hits: {hit.docid: hit.score for hit in hits}
