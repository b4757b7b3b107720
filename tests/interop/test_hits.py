"""What the wrappers share, and what a user reads where a package is missing."""

import subprocess
import sys

import numpy as np
import pytest

from pyserini_repbert.errors import InputError, MissingDependencyError
from pyserini_repbert.interop.hits import RankedText, hits_with_text, rerank_texts
from pyserini_repbert.pipeline import Pipeline
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank.base import Reranker
from pyserini_repbert.search import DenseSearcher, HybridSearcher

PACKAGES = {
    'rerankers': ('rerankers', 'rerankers'),
    'langchain': ('langchain-core', 'langchain_core'),
    'llama_index': ('llama-index-core', 'llama_index'),
    'mteb': ('mteb', 'mteb'),
}


class Texts:
    def texts(self, docids):
        return [f'text of {docid}' for docid in docids]


class Bare:
    """A searcher like Pyserini's: hits without texts."""

    def search(self, query, k=10):
        return [Candidate('x', 2.0), Candidate('y', 1.0)][:k]

    def batch_search(self, queries, qids, k=10, threads=1):
        return {qid: self.search('', k) for qid in qids}


@pytest.mark.parametrize('module', PACKAGES)
def test_a_missing_package_is_one_line_with_its_extra(module, monkeypatch):
    package, imported = PACKAGES[module]
    monkeypatch.setitem(sys.modules, imported, None)
    for loaded in [name for name in sys.modules if name.startswith(f'{imported}.')]:
        monkeypatch.setitem(sys.modules, loaded, None)
    name = f'pyserini_repbert.interop.{module}'
    monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(MissingDependencyError) as caught:
        __import__(name)
    extra = module.replace('_', '-')
    assert (
        str(caught.value)
        == f"{name} needs the package '{package}': pip install '.[{extra}]' (in the checkout)"
    )


def test_importing_the_package_imports_none_of_them():
    heavy = [imported for _, imported in PACKAGES.values()]
    code = (
        f'import sys, pyserini_repbert.interop; print([name for name in {heavy} if name in '
        f'sys.modules])'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == '[]'


def test_a_searcher_that_stores_texts_gives_them(searcher):
    hits = hits_with_text(searcher, 'the cat', 3)
    assert list(hits.docids) == [hit.docid for hit in searcher.search('the cat', 3)]
    assert list(hits.texts) == searcher.texts(hits.docids)


def test_texts_may_come_from_another_place():
    assert hits_with_text(Bare(), 'q', 2, Texts()).texts == ('text of x', 'text of y')


def test_a_hybrid_gives_the_texts_of_its_parts(searcher):
    hits = hits_with_text(HybridSearcher(searcher, searcher), 'the cat', 3)
    assert list(hits.texts) == searcher.texts(hits.docids)


def test_a_pipeline_gives_the_texts_of_all_its_hits(searcher, mono):
    pipeline = Pipeline([searcher, (mono, 2)])
    hits = hits_with_text(pipeline, 'the cat', 4)  # two that are reranked, and two that are not
    assert list(hits.texts) == searcher.texts(hits.docids)
    assert list(hits.scores) == [hit.score for hit in pipeline.search('the cat', 4)]


def test_a_hit_without_text_is_refused():
    with pytest.raises(InputError, match="passage 'x' has no text"):
        hits_with_text(Bare(), 'q', 2)


def test_an_index_without_texts_needs_another_place(bundle):
    without = DenseSearcher(bundle(store_text=False))
    with pytest.raises(InputError, match='has no text'):
        hits_with_text(without, 'cat', 2)
    assert len(hits_with_text(without, 'cat', 2, Texts())) == 2


class WordCount(Reranker):
    """Scores a text by its number of words."""

    def score_lists(self, queries, lists, on_progress=int):
        return [np.array([len(hit.text.split()) for hit in hits], float) for hits in lists]


THREE_TEXTS = ['the cat', 'a dog ran', 'the mat']


@pytest.mark.parametrize('docids', [['a', 'b', 'c'], ['a', None, 'a']])
def test_reranked_texts_have_their_positions_and_equal_scores_keep_their_order(docids):
    ranked = [RankedText(1, 3.0), RankedText(0, 2.0), RankedText(2, 2.0)]
    assert rerank_texts(WordCount(), 'cat', THREE_TEXTS, docids) == ranked
    assert rerank_texts(WordCount(), 'cat', THREE_TEXTS, docids, k=2) == ranked[:2]


def test_no_texts_are_no_hits():
    assert rerank_texts(WordCount(), 'cat', [], []) == []


def test_texts_of_one_docid_are_ranked_each_by_itself():
    ranked = rerank_texts(WordCount(), 'cat', THREE_TEXTS, ['a', 'b', 'a'])
    assert ranked == rerank_texts(WordCount(), 'cat', THREE_TEXTS, ['a', 'b', 'c'])
