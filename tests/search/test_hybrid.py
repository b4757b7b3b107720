from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass

import pytest

from pyserini_repbert.errors import InputError
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.search import HybridSearcher


@dataclass
class Fixed:
    """A searcher that gives the same docids for every query, the first with the greatest score."""

    docids: str
    asked: int = 0

    def batch_search(self, queries, qids, k=10, threads=1):
        self.asked = k
        scored = [Candidate(docid, float(len(self.docids) - rank)) for rank, docid in enumerate(self.docids)]
        return dict.fromkeys(qids, scored[:k])


def _docids(hits):
    return ''.join(hit.docid for hit in hits)


def test_interleaving_as_in_the_paper():
    assert _docids(HybridSearcher(Fixed('acd'), Fixed('bac')).search('q')) == 'abcd'
    assert _docids(HybridSearcher(Fixed('acd'), Fixed('bac'), sparse_first=True).search('q')) == 'bacd'
    assert _docids(HybridSearcher(Fixed('ab'), [Fixed('xy'), Fixed('a1')]).search('q')) == 'axby1'


def test_scores_decrease_and_k_cuts():
    hits = HybridSearcher(Fixed('abc'), Fixed('def')).search('q', k=4)
    assert _docids(hits) == 'adbe'
    assert all(first.score > second.score for first, second in itertools.pairwise(hits))


def test_each_searcher_is_asked_for_enough():
    dense, sparse = Fixed('abc'), Fixed('def')
    HybridSearcher(dense, sparse).search('q')
    assert dense.asked == sparse.asked == 1000
    HybridSearcher(dense, sparse).search('q', 7, 3)
    assert dense.asked == sparse.asked == 7


def test_rrf_and_pyserinis_interpolation():
    assert _docids(HybridSearcher(Fixed('abc'), Fixed('bcd'), 'rrf').search('q')) == 'bcad'
    # dense a3 b2 c1, sparse b3 c2 d1; what a ranking lacks has its lowest score: a 3+.1, b 2+.3, c 1+.2, d 1+.1
    hits = HybridSearcher(Fixed('abc'), Fixed('bcd'), 'interpolation').search('q', 10, 10, 0.1)
    assert [(hit.docid, pytest.approx(hit.score)) for hit in hits] == [('a', 3.1), ('b', 2.3), ('c', 1.2), ('d', 1.1)]
    # weights swapped: a .3+1, b .2+3, c .1+2, d .1+1
    swapped = HybridSearcher(Fixed('abc'), Fixed('bcd'), 'interpolation').search('q', 10, 10, 0.1, False, True)
    assert _docids(swapped) == 'bcad'
    # normalised to [-.5, .5]: a .5-.05, b 0+.05, c -.5+0, d -.5-.05
    normal = HybridSearcher(Fixed('abc'), Fixed('bcd'), 'interpolation').search('q', 10, 10, 0.1, True)
    assert [pytest.approx(hit.score) for hit in normal] == [0.45, 0.05, -0.5, -0.55]


@pytest.mark.parametrize('normalization', [False, True])
def test_equals_pyserinis_hybrid_formula(normalization):
    """One hit in a ranking, no hit in a ranking: defined, where Pyserini divides by zero."""
    hybrid = HybridSearcher(Fixed('a'), Fixed(''), 'interpolation')
    assert _docids(hybrid.search('q', normalization=normalization)) == 'a'


def test_batches_keep_the_order_of_qids_and_missing_queries():
    class Forgetful(Fixed):
        def batch_search(self, queries, qids, k=10, threads=1):
            return {qid: hits for qid, hits in super().batch_search(queries, qids, k).items() if qid != '1'}

    found = HybridSearcher(Fixed('ab'), Forgetful('cd')).batch_search(['x', 'y'], ['2', '1'])
    assert list(found) == ['2', '1'] and _docids(found['2']) == 'acbd' and _docids(found['1']) == 'ab'


def test_searchers_work_at_the_same_time():
    meeting = threading.Barrier(2, timeout=10)

    class Waiting(Fixed):
        def batch_search(self, queries, qids, k=10, threads=1):
            meeting.wait()
            return super().batch_search(queries, qids, k)

    assert _docids(HybridSearcher(Waiting('a'), Waiting('b')).search('q')) == 'ab'


def test_wrong_settings():
    with pytest.raises(InputError, match="'sum' is unknown"):
        HybridSearcher(Fixed('a'), Fixed('b'), 'sum')
    with pytest.raises(InputError, match='exactly one'):
        HybridSearcher(Fixed('a'), [Fixed('b'), Fixed('c')], 'interpolation')
    with pytest.raises(InputError, match='at least one'):
        HybridSearcher(Fixed('a'), [])
