"""What a reranker reads of documents with several passages, and which of them decided."""

import numpy as np
import pytest

from pyserini_repbert.errors import InputError
from pyserini_repbert.ranking import Candidate, Excerpt, Ranking
from pyserini_repbert.rerank.base import _Passages
from pyserini_repbert.rerank.cross_encoder import checked_length


def excerpt(number, text):
    return Excerpt(number, 0, len(text), text, '')


@pytest.fixture
def documents():
    """A document of three passages, one of none, and one of one."""
    three = (excerpt(4, 'four'), excerpt(0, 'nought'), excerpt(7, 'seven'))
    return Ranking.of(
        [
            Candidate('a', 3.0, 'four', three),
            Candidate('b', 2.0, 'only text'),
            Candidate('c', 1.0, 'one', (excerpt(0, 'one'),)),
        ]
    )


def test_the_passages_that_are_read(documents):
    passages = _Passages.of(documents, 2)
    assert passages.ranking.docids == ('a#0', 'a#1', 'b#0', 'c#0')
    assert passages.ranking.texts == ('four', 'nought', 'only text', 'one')
    assert passages.starts.tolist() == [0, 2, 3]


def test_the_best_passage_of_each_document_comes_first(documents):
    passages = _Passages.of(documents, 3)
    best = passages.best(np.array([0.1, 0.3, 0.9, 0.5, 0.4]))
    assert best.tolist() == [2, 3, 4]
    ranking = passages.put_first(documents, best)
    assert ranking.docids == ('a', 'b', 'c')
    assert [passage.number for passage in ranking[0].excerpts] == [7, 4, 0]
    assert ranking.texts == ('seven', '', 'one')


def test_the_lengths_that_a_model_reads():
    assert [checked_length('m', length, 5) for length in (1, 5)] == [1, 5]
    for length in (0, 6):
        with pytest.raises(InputError, match=f"length {length} was given, 'm' reads 5 tokens"):
            checked_length('m', length, 5)
