"""The search that `adapt` offers is stored as a folder, and is the search that was judged."""

from dataclasses import replace

import numpy as np
import pytest
from judgments import FixedRanker, turned_topics

from pyserini_repbert.adapt.learning import adapt
from pyserini_repbert.adapt.offering import collection_rankings, offered_search
from pyserini_repbert.fusion.fusing import fuse_runs
from pyserini_repbert.pipeline.resolving import resolve
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.search.adapted_folder import learned_fusion, read_adapted, write_adapted

NAMES = ['tiny', 'fixed']
N_TOPICS = 20


@pytest.fixture
def judged(searcher):
    return turned_topics(searcher, N_TOPICS)


def ranked_at(judged, rank):
    """A ranker that has the relevant passage of each topic at this rank, from 0."""
    rankings = {}
    for topic in judged.topics:
        docids = [f'd{number}' for number in range(200, 240)]
        docids.insert(rank, f'd{topic.qid}')
        rankings[topic.qid] = Ranking(docids, np.linspace(1, 0, len(docids)).tolist())
    return FixedRanker(rankings)


def test_a_map_that_is_truly_better_wins(searcher):
    """The present search finds almost nothing."""
    judged = turned_topics(searcher, 60)
    estimate = adapt(searcher, [], judged.topics, judged.qrels).estimate()
    assert (estimate.now, estimate.winner) == ('tiny', 'with the query map')
    assert estimate.is_convincing
    assert 0 < estimate.low < estimate.gain < estimate.high


def test_what_is_truly_worse_does_not_win(searcher, judged):
    """The present search is right about all topics; no map and no fusion can be better."""
    right = ranked_at(judged, 0)
    now = right.with_settings(name='now')
    wrong = ranked_at(judged, 30)
    estimate = adapt(searcher, [wrong], judged.topics, judged.qrels, now=now).estimate()
    assert (estimate.now, estimate.winner) == ('now', 'now')
    assert estimate.before == 1.0
    assert estimate.gain < 0
    assert not estimate.is_convincing


def test_a_ranking_alone_wins_where_the_usual_fusion_spoils_it(searcher, judged):
    """Interleaving puts a wrong passage first. What was learned is no better than the right
    ranking alone: of equal ways, the first wins.
    """
    learnt = adapt(searcher, [ranked_at(judged, 0)], judged.topics, judged.qrels)
    estimate = learnt.estimate()
    assert (estimate.now, estimate.winner) == ('interleave tiny+fixed', 'fixed')
    assert estimate.is_convincing
    assert estimate.after == 1.0
    offered = offered_search(learnt, NAMES)
    assert offered.rankings == (1,)
    assert offered.query_map is None
    assert collection_rankings(offered, ['tiny', 'bm25']) == ('bm25',)


def store(folder, offered, sparse=('bm25@lucene',)):
    """Write what is offered for an index beside a sparse one."""
    write_adapted(
        folder,
        offered.query_map,
        index='dense',
        encoder='minilm',
        encoder_weights='',
        sparse=sparse,
        depth=1000,
        estimate={},
        sparse_first=offered.rankings[0] != 0,
        **offered.fusion,
    )


def test_each_untuned_way_is_stored_as_it_was_judged(searcher, judged, tmp_path):
    """Read from its folder, a way ranks as in the comparison."""
    sparse = ranked_at(judged, 3)
    learnt = adapt(searcher, [sparse], judged.topics, judged.qrels)
    runs = {
        'tiny': searcher.rank(judged.topics, None, 1000),
        'fixed': sparse.rank(judged.topics, None, 1000),
    }
    qids = [topic.qid for topic in judged.topics]
    fused_ways = [name for name, way in learnt.untuned.ways.items() if len(way.fusion.order) == 2]
    assert len(fused_ways) == 9
    for number, name in enumerate(fused_ways):
        best = {name: np.ones(N_TOPICS), learnt.untuned.now: np.zeros(N_TOPICS)}
        if name == learnt.untuned.now:
            continue
        untuned = replace(learnt.untuned, values=best)
        offered = offered_search(replace(learnt, untuned=untuned), NAMES)
        folder = tmp_path / str(number)
        store(folder, offered)
        adapted = read_adapted(folder)
        order = [runs[NAMES[position]] for position in offered.rankings]
        expected = learnt.untuned.ways[name].fusion.fused(runs, qids, 10)
        assert fuse_runs(order, learned_fusion(adapted), 10) == expected
        spec = resolve(PipelineSpec(adapted=str(folder), index='moved')).spec
        assert fuse_runs(order, spec.fusion_settings, 10) == expected
        assert spec.sparse_first == (offered.rankings[0] == 1)
        # The first version always has a map.
        assert (adapted.version, adapted.query_map) == (2, None)
