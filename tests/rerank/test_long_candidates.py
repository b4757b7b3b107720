"""Of a long candidate, no more is read than its layout looks at: scores are those of the whole."""

import numpy as np
import pytest

from pyserini_repbert.models import token_ids
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.rerank import (
    CedrReranker,
    DuoBertReranker,
    EpicReranker,
    MonoBertReranker,
)
from pyserini_repbert.rerank.base import Work
from pyserini_repbert.rerank.cross_encoder import TextReranker
from pyserini_repbert.systems.duobert.inputs import TripleLayout
from pyserini_repbert.systems.monobert.inputs import PairLayout

QUERIES = ['cat', 'cat sat ' * 9, 'cat ' * 300, 'mat ' * 19, '']
LENGTHS = (0, 1, 12, 13, 19, 60, 299, 300, 301, 5000)
TEXTS = [*('mat ' * length for length in LENGTHS), 'a' * 3000, 'cat ' * 300]


def check_long_texts(reranker, monkeypatch, n_texts=12):
    """The same scores and counts from whole texts, and from the beginnings of long ones."""
    texts = TEXTS[-n_texts:]
    lists = [Ranking(map(str, range(n_texts)), [0.0] * n_texts, texts)] * len(QUERIES)
    whole = reranker.score_lists(QUERIES, lists)
    cost = reranker.work
    reranker.work = Work()
    monkeypatch.setattr(token_ids, 'SHORTEST_PIECE', 8)
    monkeypatch.setattr(token_ids, '_CHARACTERS_OF_ID', 1)
    for scores, expected in zip(reranker.score_lists(QUERIES, lists), whole, strict=True):
        np.testing.assert_array_equal(scores, expected)
    assert reranker.work == cost
    assert cost.truncated > 0
    if isinstance(reranker, TextReranker):
        assert len(TextReranker._read(reranker, QUERIES, lists)['mat ' * 5000]) < 2000


@pytest.mark.parametrize('layout', list(PairLayout))
def test_monobert(layout, cross_encoder_folder, monkeypatch):
    folder = cross_encoder_folder('monobert')
    check_long_texts(MonoBertReranker(folder, layout=layout), monkeypatch)


@pytest.mark.parametrize('layout', list(TripleLayout))
def test_duobert(layout, cross_encoder_folder, monkeypatch):
    folder = cross_encoder_folder('duobert')
    check_long_texts(DuoBertReranker(folder, layout=layout), monkeypatch, n_texts=5)


def test_cedr(tiny_cedr, monkeypatch):
    check_long_texts(CedrReranker(tiny_cedr('knrm')), monkeypatch)


def test_epic(tiny_epic, monkeypatch):
    check_long_texts(EpicReranker(tiny_epic(), max_length=20), monkeypatch)
