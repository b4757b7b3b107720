"""What the wrappers share, and what a user reads where a package is missing."""

import subprocess
import sys

import pytest

from pyserini_repbert.errors import InputError, MissingDependencyError
from pyserini_repbert.interop.hits import hits_with_text, reranked
from pyserini_repbert.pipeline import Pipeline
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.search import HybridSearcher, RepBertSearcher

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


def test_texts_come_from_who_has_them(searcher, mono):
    found = hits_with_text(searcher, 'the cat', 3)
    assert list(found.docids) == [hit.docid for hit in searcher.search('the cat', 3)]
    assert list(found.texts) == searcher.texts(found.docids)
    assert hits_with_text(Bare(), 'q', 2, Texts()).texts == ('text of x', 'text of y')
    hybrid = hits_with_text(HybridSearcher(searcher, searcher), 'the cat', 3)
    assert list(hybrid.texts) == searcher.texts(hybrid.docids)
    pipeline = Pipeline(
        [searcher, (mono, 2)]
    )  # two that are reranked, with texts, two that are not
    ranked = hits_with_text(pipeline, 'the cat', 4)
    assert list(ranked.texts) == searcher.texts(ranked.docids)
    assert list(ranked.scores) == [hit.score for hit in pipeline.search('the cat', 4)]


def test_a_hit_without_text_is_refused(bundle):
    with pytest.raises(InputError, match="passage 'x' has no text"):
        hits_with_text(Bare(), 'q', 2)
    without = RepBertSearcher(bundle(store_text=False))
    with pytest.raises(InputError, match='has no text'):
        hits_with_text(without, 'cat', 2)
    assert len(hits_with_text(without, 'cat', 2, Texts())) == 2


def test_reranked_places(mono):
    texts = ['the cat', 'a dog ran', 'the cat']
    own = mono.rerank(
        'cat', [Candidate(name, text=text) for name, text in zip('abc', texts, strict=True)]
    )
    expected = [('abc'.index(hit.docid), hit.score) for hit in own]
    assert reranked(mono, 'cat', texts, ['a', 'b', 'c']) == expected
    assert reranked(mono, 'cat', texts, ['a', None, 'a'], k=2) == expected[:2]
    assert [place for place, _ in expected if place != 1] == [0, 2], 'equal scores keep their order'
    assert reranked(mono, 'cat', [], []) == []
    with pytest.raises(InputError, match="'a' comes twice"):
        reranked(mono, 'cat', texts, ['a', 'b', 'a'])
