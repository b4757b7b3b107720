"""The teacher of the demo's rerankers: the cosine, and BM25 beside it."""

import pytest

from pyserini_repbert.ranking import NO_HITS, Ranking


@pytest.fixture
def tool(imported):
    return imported('demo_commands', 'demo_docstrings', 'demo_material', 'demo_candidates')


def test_bm25_counts_in_units_of_its_best_hit(tool):
    cosines = Ranking(['a', 'b', 'c'], [0.6, 0.5, 0.4])
    taught = tool.with_lexical(cosines, Ranking(['c', 'b'], [20.0, 10.0]))
    assert taught.docids == ('a', 'c', 'b')
    # a is not among BM25's hits: 0.9 of the last one
    assert taught.scores == pytest.approx([0.6 + 0.3 * 0.45, 0.4 + 0.3, 0.5 + 0.3 * 0.5])


def test_a_query_without_hits_keeps_the_cosine(tool):
    cosines = Ranking(['a', 'b'], [0.6, 0.5])
    assert tool.with_lexical(cosines, NO_HITS) == cosines
