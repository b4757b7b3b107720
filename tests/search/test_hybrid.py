import importlib.util
import itertools
import runpy
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from folders import HANGS
from hypothesis import given, strategies as st

from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion import Fusion, FusionSettings, fuse
from pyserini_repbert.ranking import Candidate, Query, Ranking
from pyserini_repbert.search import HybridSearcher
from pyserini_repbert.search.hybrid import PYSERINI, as_ranker


@dataclass
class Fixed:
    """A searcher that gives the same docids for every query, the first with the greatest score."""

    docids: str
    asked: int = 0

    def batch_search(self, queries, qids, k=10, threads=1):
        self.asked = k
        scored = [
            Candidate(docid, float(len(self.docids) - rank))
            for rank, docid in enumerate(self.docids)
        ]
        return dict.fromkeys(qids, scored[:k])


class Scored:
    """A searcher that gives these (docid, score) for every query, best first."""

    def __init__(self, hits):
        self.hits = [
            Candidate(docid, float(score))
            for docid, score in sorted(hits, key=lambda hit: (-hit[1], hit[0]))
        ]

    def search(self, query, k=10):
        return self.hits[:k]

    def batch_search(self, queries, qids, k=10, threads=1):
        return dict.fromkeys(qids, self.hits[:k])


def _docids(hits):
    return ''.join(hit.docid for hit in hits)


def test_interleaving_as_in_the_paper():
    assert _docids(HybridSearcher(Fixed('acd'), Fixed('bac')).search('q')) == 'abcd'
    assert (
        _docids(HybridSearcher(Fixed('acd'), Fixed('bac'), sparse_first=True).search('q')) == 'bacd'
    )
    assert _docids(HybridSearcher(Fixed('ab'), [Fixed('xy'), Fixed('a1')]).search('q')) == 'axby1'


def test_a_depth_is_what_is_asked_and_fused():
    dense = Fixed('abcd')
    sparse = Fixed('dcba')
    hybrid = HybridSearcher(dense, sparse, depth=2)
    assert _docids(hybrid.search('q', k=9)) == 'adbc'
    assert dense.asked == sparse.asked == 2
    HybridSearcher(dense, sparse).search('q', k=1200)
    assert dense.asked == sparse.asked == 1200


def test_ten_hits_are_given_unless_more_are_asked_for():
    hybrid = HybridSearcher(Fixed('abcdefghijkl'), Fixed('mnopqrstuvwx'))
    assert len(hybrid.search('q')) == 10
    assert len(hybrid.batch_search(['q'], ['0'])['0']) == 10


@given(
    *[
        st.lists(
            st.tuples(st.sampled_from('abcdef'), st.integers(-9, 9)), unique_by=lambda hit: hit[0]
        )
    ]
    * 2
)
def test_one_formula_wherever_it_is_asked_for(dense, sparse):
    """HybridSearcher, the searchers of the search command, and `fuse`, which the fusion command
    applies.
    """
    first = Scored(dense)
    second = Scored(sparse)
    runs = [
        {'0': Ranking([hit.docid for hit in own.hits], [hit.score for hit in own.hits])}
        for own in (first, second)
    ]
    for method, settings in (
        ('interleave', {}),
        ('rrf', {'rrf_k': 7.0}),
        ('interpolation', {'alpha': 0.3}),
    ):
        expected = fuse(runs, method, 4, **settings)['0']
        searched = HybridSearcher(first, second, method, **settings).search('q', k=4)
        assert searched == list(expected)
        fusion = FusionSettings(method).changed(**settings)
        commanded = Fusion([as_ranker(first), as_ranker(second)], fusion)
        assert commanded.rank([Query('0', 'q')], None, 4) == {'0': expected}


@pytest.fixture
def theirs(monkeypatch):
    """The HybridSearcher of the installed Pyserini, run from its file; what it imports would
    start a JVM.
    """
    for name, kinds in (
        ('faiss', {'FaissSearcher': object, 'DenseSearchResult': Candidate}),
        ('lucene', {'LuceneSearcher': object}),
    ):
        module = ModuleType(f'pyserini.search.{name}')
        vars(module).update(kinds)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    (folder,) = importlib.util.find_spec('pyserini').submodule_search_locations
    return runpy.run_path(str(Path(folder) / 'search' / 'hybrid' / '_searcher.py'))[
        'HybridSearcher'
    ]


@pytest.mark.jvm
def test_pyserinis_formula_is_that_of_pyserinis_searcher(theirs):
    """On rankings with several different scores each: it divides by their range."""
    first = Scored([('a', 3), ('b', 2.5), ('c', -1)])
    second = Scored([('b', 13), ('d', 9.5), ('c', 9)])
    ours = HybridSearcher(first, second, PYSERINI, sparse_first=True)
    for settings in itertools.product((5,), (3, 9), (0.1, 1.7), (False, True), (False, True)):
        expected = theirs(first, second).search('q', *settings)
        hits = ours.search('q', *settings)
        assert [hit.docid for hit in hits] == [hit.docid for hit in expected]
        assert [hit.score for hit in hits] == pytest.approx(
            [hit.score for hit in expected], abs=1e-12
        )
    assert ours.batch_search(['q'], ['7'])['7'] == ours.search('q', alpha=0.1)


def test_pyserinis_formula_by_hand():
    """a 3 + .1, b 2 + .3, c 1 + .2, d 1 + .1: what a ranking lacks has its lowest score."""
    hits = HybridSearcher(Fixed('abc'), Fixed('bcd'), PYSERINI).search('q', 10, 10)
    assert [(hit.docid, pytest.approx(hit.score)) for hit in hits] == [
        ('a', 3.1),
        ('b', 2.3),
        ('c', 1.2),
        ('d', 1.1),
    ]
    one = HybridSearcher(Fixed('a'), Fixed(''), PYSERINI).search(
        'q', normalization=True
    )  # Pyserini divides by zero
    assert [(hit.docid, hit.score) for hit in one] == [('a', pytest.approx(-0.05))]
    with pytest.raises(InputError, match='2 sparse searchers were given'):
        HybridSearcher(Fixed('a'), [Fixed('b'), Fixed('c')], PYSERINI)


def test_pyserinis_formula_counts_lower_ranks_in_a_pipeline():
    """a 2 + 20, b 1 + 40; of the first ranks alone, both would have 2 + 40."""
    searcher = HybridSearcher(Fixed('ab'), Fixed('bc'), PYSERINI, alpha=20.0)
    assert searcher.rank([Query('0', 'q')], None, 1)['0'].docids == ('b',)


def test_batches_keep_the_order_of_qids_and_missing_queries():
    class Forgetful(Fixed):
        def batch_search(self, queries, qids, k=10, threads=1):
            return {
                qid: hits
                for qid, hits in super().batch_search(queries, qids, k).items()
                if qid != '1'
            }

    found = HybridSearcher(Fixed('ab'), Forgetful('cd')).batch_search(['x', 'y'], ['2', '1'])
    assert (
        list(found) == ['2', '1'] and _docids(found['2']) == 'acbd' and _docids(found['1']) == 'ab'
    )


def test_searchers_work_at_the_same_time():
    meeting = threading.Barrier(2, timeout=HANGS)

    class Waiting(Fixed):
        def batch_search(self, queries, qids, k=10, threads=1):
            meeting.wait()
            return super().batch_search(queries, qids, k)

    assert _docids(HybridSearcher(Waiting('a'), Waiting('b')).search('q')) == 'ab'
