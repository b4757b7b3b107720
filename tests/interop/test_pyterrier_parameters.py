"""Parameters that PyTerrier sets: a transformer is then as one that was made with them."""

import pytest
from pyterrier_world import TOPICS, frame_hits, pd, pt

import pyserini_repbert.interop.pyterrier as ours
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.errors import InputError, UnknownNameError
from pyserini_repbert.names.corpora import open_corpus

QRELS = pd.DataFrame([['q1', 'd1', 1], ['q2', 'd4', 1], ['ä3', 'd7', 1]])
QRELS.columns = ['qid', 'docno', 'label']


@pytest.fixture
def two(dense, tiny_checkpoint, corpus_file, tmp_path):
    """Retrievers of the same passages by two encoders."""
    encoder = RepBertDocumentEncoder(tiny_checkpoint('other', seed=1))
    encode_corpus(open_corpus(corpus_file(30)), encoder, tmp_path / 'second')
    return [ours.RepBertRetriever(dense), ours.RepBertRetriever(tmp_path / 'second')]


def test_a_set_weight_changes_the_fusion(two):
    hybrid = ours.HybridRetriever(two, method='interpolation', alpha=0.9)
    before = frame_hits(hybrid(TOPICS))
    hybrid.set_parameter('alpha', 0.1)
    expected = ours.HybridRetriever(two, method='interpolation', alpha=0.1)
    assert frame_hits(hybrid(TOPICS)) == frame_hits(expected(TOPICS)) != before


def test_a_grid_scan_gives_the_maps_of_fresh_objects(two):
    hybrid = ours.HybridRetriever(two, method='interpolation')
    grid = {hybrid: {'alpha': [0.0, 0.5, 1.0]}}
    measured = pt.GridScan(hybrid, grid, TOPICS, QRELS, ['map'])
    fresh = [ours.HybridRetriever(two, method='interpolation', alpha=a) for a in (0.0, 0.5, 1.0)]
    expected = pt.Experiment(fresh, TOPICS, QRELS, ['map'])
    assert measured['map'].tolist() == expected['map'].tolist()
    assert measured['map'].nunique() == 3


def test_a_fusion_reads_its_parts_when_it_searches(two, dense):
    first, second = two
    makers = [
        lambda: ours.HybridRetriever(two, provenance=True),
        lambda: ours.Interleave(*two),
        lambda: ours.HybridRetriever([first, ours.HybridRetriever([second])]),
    ]
    made = [make() for make in makers]
    before = [frame_hits(fusion(TOPICS)) for fusion in made]
    first.set_parameter('index', second.index)
    second.set_parameter('index', dense)
    for fusion, make, hits in zip(made, makers, before, strict=True):
        pd.testing.assert_frame_equal(fusion(TOPICS), make()(TOPICS))
        assert frame_hits(fusion(TOPICS)) != hits


def test_a_grid_scan_over_a_part_gives_the_maps_of_fresh_objects(two, dense):
    first, second = two
    indexes = [second.index, dense]
    hybrid = ours.HybridRetriever(two, 'rrf')
    measured = pt.GridScan(hybrid, {second: {'index': indexes}}, TOPICS, QRELS, ['map'])
    fresh = []
    for index in indexes:
        fresh.append(ours.HybridRetriever([first, ours.RepBertRetriever(index)], 'rrf'))
    expected = pt.Experiment(fresh, TOPICS, QRELS, ['map'])
    assert measured['map'].tolist() == expected['map'].tolist()
    assert measured['map'].nunique() == 2


@pytest.mark.parametrize(
    'make',
    [
        lambda parts: ours.HybridRetriever(parts, provenance=True),
        lambda parts: ours.Interleave(*parts),
    ],
)
def test_parts_that_came_to_one_name_are_refused(make, two, dense):
    fusion = make(two)
    two[1].set_parameter('index', dense)
    with pytest.raises(InputError, match='tiny'):
        fusion(TOPICS)


def test_a_name_that_is_no_parameter_is_refused(dense):
    retriever = ours.RepBertRetriever(dense)
    with pytest.raises(UnknownNameError, match="no parameter 'num_result'.*num_results"):
        retriever.set_parameter('num_result', 3)
    with pytest.raises(UnknownNameError):
        retriever.get_parameter('ranked_by')


def test_a_value_that_is_refused_changes_nothing(dense):
    retriever = ours.RepBertRetriever(dense, num_results=3)
    before = frame_hits(retriever(TOPICS))
    with pytest.raises(Exception, match='no-such-folder'):
        retriever.set_parameter('encoder', 'no-such-folder')
    assert frame_hits(retriever(TOPICS)) == before
    assert retriever.get_parameter('encoder') is None


def test_a_cut_retriever_stays_cut(dense):
    cut = ours.RepBertRetriever(dense).fuse_rank_cutoff(2)
    cut.set_parameter('threads', 2)
    assert all(len(hits) == 2 for hits in frame_hits(cut(TOPICS)).values())
    assert cut.num_results == cut.get_parameter('num_results') == 2


def test_settings_of_a_reranker_are_parameters(candidates, cross_encoder_folder):
    folder = cross_encoder_folder('duobert')
    reranker = ours.Rerank(folder, method='sum')
    assert reranker.get_parameter('method') == 'sum'
    reranker.set_parameter('method', 'binary')
    expected = ours.Rerank(folder, method='binary')
    assert frame_hits(reranker(candidates)) == frame_hits(expected(candidates))
    assigned = ours.Rerank(folder)
    assigned.method = 'binary'
    assert frame_hits(assigned(candidates)) == frame_hits(expected(candidates))
    with pytest.raises(InputError, match='no-such-method'):
        assigned.method = 'no-such-method'
    assert assigned.get_parameter('method') == 'binary'


def test_a_grid_scan_measures_each_value(dense):
    retriever = ours.RepBertRetriever(dense)
    measured = pt.GridScan(
        retriever, {retriever: {'num_results': [1, 12]}}, TOPICS, QRELS, [pt.measures.NumRet]
    )
    assert measured['NumRet'].tolist() == [3, 36]


DOCUMENTS = [{'docno': f'd{number}', 'text': 'red cat'} for number in range(3)]


def test_a_set_parameter_of_an_indexer_holds(tiny_checkpoint, tmp_path):
    indexer = ours.RepBertIndexer(tmp_path / 'made', tiny_checkpoint())
    indexer.set_parameter('shard_size', 2)
    indexer.set_parameter('on_error', 'skip')
    index = indexer.index([*DOCUMENTS, {'docno': 'd9'}])
    assert indexer.get_parameter('shard_size') == 2
    assert len(list(index.glob('shard-*'))) == 2


def test_a_value_that_an_indexer_refuses_changes_nothing(tmp_path):
    for kind in (ours.RepBertIndexer, ours.EpicIndexer):
        indexer = kind(tmp_path / 'made', 'some-encoder')
        before = dict(vars(indexer))
        with pytest.raises(InputError, match='nonsense'):
            indexer.set_parameter('on_error', 'nonsense')
        assert vars(indexer) == before
        assert indexer.get_parameter('on_error') == 'refuse'
