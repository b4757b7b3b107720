"""GAR, LADR and MMR over small indexes: by hand where numbers are few, else against a plain search.

`test_adaptive_as_others.py` compares them with PyTerrier's.
"""

from contextlib import closing

import numpy as np
import pytest
from graphs import documents_of, neighbours, open_with_graph

from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.extensions.neighbours.building import build_neighbours
from pyserini_repbert.extensions.neighbours.ladr import LadrReranker
from pyserini_repbert.extensions.neighbours.reranking import AdaptiveReranker, _Exploration
from pyserini_repbert.indexes.kind import SearchOptions, kind_of
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.pipeline import Pipeline, PipelineSpec, open_pipeline
from pyserini_repbert.pipeline.pipeline import run_pipeline
from pyserini_repbert.ranking import Query, Ranking
from pyserini_repbert.rerank import DuoBertReranker, MonoBertReranker
from pyserini_repbert.systems.mmr.reranker import MmrReranker, cosines, mmr_order
from pyserini_repbert.trace import Notes

N = 40
NEIGHBOURS = 4
TOPIC = Query('q', 'red cat ate the fish')


@pytest.fixture
def folder(tiny_checkpoint, corpus_file, tmp_path):
    """A bundle of 40 passages with their texts."""
    encoder = RepBertDocumentEncoder(tiny_checkpoint())
    encode_corpus(open_corpus(corpus_file(N)), encoder, tmp_path / 'dense', store_text=True)
    return tmp_path / 'dense'


@pytest.fixture
def index(folder):
    """The bundle, open, with the graph of its passages."""
    with open_with_graph(folder, NEIGHBOURS) as opened:
        yield opened


@pytest.fixture
def documents(index):
    return documents_of(index)


@pytest.fixture
def dense(index):
    """The dense search of all passages."""
    return index.searcher(Machine())


@pytest.fixture
def mono(cross_encoder_folder):
    return MonoBertReranker(cross_encoder_folder('monobert'))


def seeds(n):
    """A run of the first passages, with falling scores."""
    docids = [f'd{number}' for number in range(n)]
    return {'q': Ranking(docids, [float(n - rank) for rank in range(n)])}


def test_the_graph_has_the_nearest_of_each_passage(documents, dense):
    for docid in ('d0', 'd7', f'd{N - 1}'):
        nearest = [hit.docid for hit in dense.more_like(docid, NEIGHBOURS)]
        assert neighbours(documents, [docid], NEIGHBOURS) == [tuple(nearest)]
        assert neighbours(documents, [docid], 2) == [tuple(nearest[:2])]
    assert neighbours(documents, ['unknown', 'd1'], 1)[0] == ()
    assert neighbours(documents, [], 1) == []


def test_more_neighbours_than_the_graph_has(documents):
    with pytest.raises(InputError, match='5 neighbours .* has 4'):
        neighbours(documents, ['d0'], 5)


def test_an_exploration_by_hand():
    """Of the run a, b, c; x and y are neighbours of b, which is better than a."""
    exploration = _Exploration('abc', budget=4)
    assert exploration.next_batch() == ['a', 'b', 'c']
    exploration.add(Ranking('bac', (3.0, 2.0, 1.0)), [['x', 'y', 'a'], ['y', 'z'], ['w']])
    # One is left of the budget: x and y have b's score, and x was found first.
    assert exploration.next_batch() == ['x']
    exploration.add(Ranking('x', (9.0,)), [['z']])
    assert exploration.next_batch() == []
    assert exploration.scores == {'b': 3.0, 'a': 2.0, 'c': 1.0, 'x': 9.0}


def test_run_and_frontier_take_turns():
    docids = [f'r{number}' for number in range(40)]
    exploration = _Exploration(docids, budget=40)
    assert exploration.next_batch() == docids[:16]
    found = [[f'n{number}'] for number in range(16)]
    exploration.add(Ranking(docids[:16], [16.0 - rank for rank in range(16)]), found)
    assert exploration.next_batch() == [f'n{number}' for number in range(16)]
    exploration.add(Ranking([f'n{number}' for number in range(16)], [0.0] * 16), [()] * 16)
    # What is left of the budget.
    assert exploration.next_batch() == docids[16:24]


def test_adaptive_reranking_scores_as_the_reranker_does(documents, dense, mono):
    """What is reached from three passages has the reranker's own scores, best first."""
    adaptive = AdaptiveReranker(mono.with_settings(reads=10), n_neighbours=3)
    adaptive = adaptive.with_settings(documents=documents)
    notes = Notes()
    run = {'q': dense.with_stored_texts('', seeds(3)['q'])}
    ranking = adaptive.rank([TOPIC], run, None, notes)['q']
    assert len(ranking) == 10
    assert {'d0', 'd1', 'd2'} < set(ranking.docids)
    assert list(ranking.scores) == sorted(ranking.scores, reverse=True)
    given = dense.with_stored_texts('', Ranking(ranking.docids, [0.0] * 10))
    (scores,) = mono.score_lists([TOPIC.text], [given])
    assert ranking.scores == pytest.approx(scores.tolist(), abs=1e-5)
    assert (notes.cost.queries, notes.cost.inferences, notes.cost.candidates) == (1, 10, 10)


def test_what_the_budget_leaves_stays_below(documents, dense, mono):
    adaptive = AdaptiveReranker(mono.with_settings(reads=4), n_neighbours=3)
    adaptive = adaptive.with_settings(documents=documents)
    run = {'q': dense.with_stored_texts('', seeds(9)['q'])}
    ranking = adaptive.rank([TOPIC], run, None)['q']
    assert sorted(ranking.docids[:4]) == ['d0', 'd1', 'd2', 'd3']
    assert ranking.docids[4:] == ('d4', 'd5', 'd6', 'd7', 'd8')
    kept = adaptive.with_settings(drop_rest=True).rank([TOPIC], run, None)['q']
    assert kept.docids == ranking.docids[:4]


@pytest.mark.parametrize('method', ['proactive', 'adaptive'])
def test_ladr_scores_as_dense_search_does(documents, dense, method):
    ladr = LadrReranker(method=method).with_settings(
        documents=documents, n_neighbours=2, reads=2, drop_rest=True
    )
    ranking = ladr.rank([TOPIC], seeds(5), None)['q']
    exact = dense.rank([TOPIC], None, N)['q']
    score_of = dict(zip(exact.docids, exact.scores, strict=True))
    expected = [score_of[docid] for docid in ranking.docids]
    assert ranking.scores == pytest.approx(expected, abs=1e-5)
    reached = {'d0', 'd1'}
    for docids in neighbours(documents, ['d0', 'd1'], 2):
        reached |= set(docids)
    if method == 'proactive':
        assert set(ranking.docids) == reached
    else:
        assert set(ranking.docids) > reached


def test_adaptive_ladr_ends_where_the_neighbours_of_the_best_are_scored(documents):
    ladr = LadrReranker(method='adaptive', depth=5).with_settings(
        documents=documents, n_neighbours=4, drop_rest=True
    )
    ranking = ladr.rank([TOPIC], seeds(2), None)['q']
    assert len(ranking) < N
    for docids in neighbours(documents, ranking.docids[:5], 4):
        assert set(docids) <= set(ranking.docids)


def test_depth_is_of_adaptive_ladr():
    with pytest.raises(InputError, match="'depth' is for LADR's method 'adaptive'"):
        LadrReranker(depth=5)


def test_mmr_by_hand():
    """b is like a: after a, b has .5 * .8 - .5 * .9 = -.05, and c half of -.3, or of 0."""
    relevance = np.array([1.0, 0.8, 0.0])
    similarity = np.array([[1.0, 0.9, 0.3], [0.9, 1.0, 0.2], [0.3, 0.2, 1.0]])
    assert mmr_order(relevance, similarity, 0.5) == [0, 1, 2]
    similarity[0, 2] = similarity[2, 0] = 0.0
    assert mmr_order(relevance, similarity, 0.5) == [0, 2, 1]
    assert mmr_order(relevance, similarity, 0.0) == [0, 1, 2]
    # Relevance counts nothing: of equal candidates, the first is taken.
    assert mmr_order(relevance, similarity, 1.0) == [0, 2, 1]


def test_cosines_of_documents_without_a_vector():
    vectors = {'a': np.array([3.0, 4.0], np.float32), 'b': np.array([0.0, 0.0], np.float32)}
    np.testing.assert_allclose(cosines(vectors, 'abc'), [[1, 0, 0], [0, 0, 0], [0, 0, 0]])
    assert cosines({}, 'ab').tolist() == [[0, 0], [0, 0]]


def test_mmr_of_an_index(documents, dense):
    run = dense.rank([TOPIC], None, 12)
    keeps = MmrReranker(diversify=0.0).with_settings(documents=documents, reads=8)
    assert keeps.rank([TOPIC], run, None)['q'].docids == run['q'].docids
    mmr = MmrReranker(diversify=0.7).with_settings(documents=documents, reads=8)
    ranking = mmr.rank([TOPIC], run, None)['q']
    assert ranking.docids[0] == run['q'].docids[0]
    assert ranking.docids[:8] != run['q'].docids[:8]
    assert sorted(ranking.docids[:8]) == sorted(run['q'].docids[:8])
    assert ranking.docids[8:] == run['q'].docids[8:]
    assert ranking.scores[:8] == (8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0)
    assert mmr.rank([TOPIC], {'q': Ranking()}, None)['q'].docids == ()


def test_a_reranker_that_compares_takes_no_neighbours(cross_encoder_folder, mono):
    duo = DuoBertReranker(cross_encoder_folder('duobert'))
    with pytest.raises(InputError, match="compares the candidates .* leave 'neighbours' out"):
        AdaptiveReranker(duo)
    with pytest.raises(InputError, match="leave 'weight' or 'neighbours' out"):
        AdaptiveReranker(mono.with_settings(score_share=0.5))


@pytest.mark.parametrize('reranker', [MmrReranker(), LadrReranker()])
def test_without_an_index(reranker):
    with pytest.raises(InputError, match='reads the index that is searched'):
        reranker.rank([TOPIC], seeds(2), None)


def test_a_pipeline_of_all_of_them(index, folder, cross_encoder_folder):
    """Each stage finds the texts that the next one reads, though the run did not have them."""
    mono = cross_encoder_folder('monobert')
    duo = cross_encoder_folder('duobert')
    stages = ['ladr@20:adaptive,neighbours=3', f'{mono}@10:neighbours=2', f'{duo}@4', 'mmr@3']
    spec = PipelineSpec.of({'index': str(folder), 'stages': stages})
    opened = open_pipeline(spec)
    hits = opened.pipeline.search(TOPIC.text, 5)
    assert len(hits) == 5
    assert all(hit.text for hit in hits)
    rankers = opened.recorded().rankers
    systems = [identity.get('reranker') for identity in rankers]
    assert systems[1] == 'LadrReranker'
    assert rankers[1]['graph']['neighbours'] == NEIGHBOURS
    # The graph's own checksum is in the record.
    assert len(rankers[1]['graph']['sha256']) == 64


def test_another_graph_is_seen_on_resuming(index, folder, tmp_path):
    """The index is the same; the graph beside it was built anew, with fewer neighbours."""
    stages = ['ladr@20:neighbours=2']

    def run(**more):
        spec = PipelineSpec.of({'index': str(folder), 'stages': stages})
        with closing(open_pipeline(spec).pipeline) as pipeline:
            return run_pipeline(pipeline, [TOPIC], k=5, output=tmp_path / 'run.txt', **more)

    whole = run()
    assert run(resume=True) == whole
    build_neighbours(index, Machine(), 'dense', NEIGHBOURS - 1, overwrite=True)
    with pytest.raises(MismatchError, match='resume with the same settings'):
        run(resume=True)


def test_other_vectors_are_seen_on_resuming(folder, tiny_checkpoint, corpus_file, tmp_path):
    """MMR reads them; a run that it reranks may be the same."""

    def run(**more):
        with closing(kind_of(str(folder)).open(str(folder), SearchOptions())) as index:
            mmr = MmrReranker().with_settings(documents=documents_of(index), reads=3)
            output = tmp_path / 'run.txt'
            return run_pipeline(Pipeline([mmr]), [TOPIC], seeds(5), output=output, **more)

    whole = run()
    assert run(resume=True) == whole
    other = RepBertDocumentEncoder(tiny_checkpoint('other', seed=1))
    corpus = open_corpus(corpus_file(N))
    encode_corpus(corpus, other, folder, store_text=True, overwrite=True)
    with pytest.raises(MismatchError, match='resume with the same settings'):
        run(resume=True)


def test_an_index_without_texts(tiny_checkpoint, corpus_file, tmp_path, mono):
    """Vectors alone are enough for LADR and MMR; a reranker after them has nothing to read."""
    folder = tmp_path / 'bare'
    encode_corpus(open_corpus(corpus_file(N)), RepBertDocumentEncoder(tiny_checkpoint()), folder)
    spec = PipelineSpec(index=str(folder), stages=['ladr@20:neighbours=3', 'mmr@5'])
    adaptive = AdaptiveReranker(mono.with_settings(reads=9), n_neighbours=3)
    run = {'q': seeds(3)['q'].with_texts({'d0': 'cat', 'd1': 'dog', 'd2': 'fish'})}
    with open_with_graph(folder, NEIGHBOURS) as bare:
        assert len(open_pipeline(spec).pipeline.search(TOPIC.text, 5)) == 5
        adaptive = adaptive.with_settings(documents=documents_of(bare))
        said = 'has no text, and .* stores none'
        with pytest.raises(InputError, match=said):
            adaptive.rank([TOPIC], run, None)
