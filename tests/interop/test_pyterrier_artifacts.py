"""Bundles as artifacts of PyTerrier, FLEX indexes as bundles, and an experiment with a
regression's figures.
"""

import os
import time
from pathlib import Path

import pytest

import pyserini_repbert.interop.pyterrier as ours
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.ranking import topics_of
from pyserini_repbert.search import DenseSearcher

pt = pytest.importorskip('pyterrier')
pd = pytest.importorskip('pandas')

from pyserini_repbert.interop.pyterrier.artifacts import bundle_metadata  # noqa: E402 - PyTerrier is there

TOPICS = pd.DataFrame([('1', 'red cat'), ('2', 'the old sea')], columns=['qid', 'query'])
VASWANI = Path(os.environ.get('DATA', Path(__file__).parents[3] / 'shared/data')) / 'vaswani'


def test_a_dense_bundle_is_recognised(bundle):
    folder = bundle()
    assert bundle_metadata(str(folder), os.listdir(folder)) == {
        'type': 'dense_index',
        'format': 'pyserini_repbert',
        'package_hint': 'pyserini-repbert[pyterrier]',
    }


def test_another_folder_is_no_bundle(tmp_path):
    assert bundle_metadata(str(tmp_path), os.listdir(tmp_path)) is None


def test_a_dense_bundle_is_searched(bundle):
    folder = bundle()
    before = sorted(os.listdir(folder))
    artifact = ours.DenseArtifact(str(folder))
    retriever = artifact.retriever(num_results=3)
    frame = (retriever >> ours.PassageText(artifact.path))(TOPICS)
    hits = DenseSearcher(folder).search('red cat', 3)
    first = frame[frame['qid'] == '1']
    assert first['docno'].tolist() == [hit.docid for hit in hits]
    assert first['score'].tolist() == [hit.score for hit in hits]
    assert frame['text'].str.len().min() > 0
    assert sorted(os.listdir(folder)) == before, 'nothing is added to the folder'


def test_an_epic_bundle_is_recognised_and_reranks(tiny_epic, tmp_path):
    indexer = ours.EpicIndexer(tmp_path / 'epic-index', tiny_epic())
    index = indexer.index([{'docno': 'a', 'text': 'red cat'}])
    assert bundle_metadata(str(index), os.listdir(index))['type'] == 'epic_index'
    reranker = ours.EpicArtifact(str(index)).reranker(tmp_path / 'epic')
    reranked = reranker(TOPICS[:1].assign(docno='a', rank=0, score=0.0))
    assert reranked['score'].iloc[0] > 0


def test_pyterrier_loads_bundles_by_itself(bundle):
    """Through the entry points, which only an installed package has."""
    from importlib.metadata import entry_points

    names = [point.name for point in entry_points(group='pyterrier.artifact')]
    if 'dense_index.pyserini_repbert' not in names:
        pytest.skip(
            '!!!! the package is not installed here with its entry points: make test-interop '
            'installs it'
        )
    artifact = pt.Artifact.load(str(bundle()))
    assert isinstance(artifact, ours.DenseArtifact)
    assert len(artifact.retriever(num_results=2)(TOPICS)) == 4


@pytest.mark.slow
@pytest.mark.jvm
def test_an_experiment_on_vaswani_has_the_regressions_figures(tmp_path):
    """regressions/vaswani.yaml, in PyTerrier, and what its frames cost beside our own searches."""
    if not VASWANI.is_dir():
        pytest.skip(
            f'!!!! THE EXPERIMENT ON VASWANI WAS NOT RUN: {VASWANI} is not here (DATA=FOLDER '
            f'names another)'
        )
    from pyserini_repbert.index.lucene import build_lucene_index
    from pyserini_repbert.names.corpora import open_corpus
    from pyserini_repbert.names.topics import load_qrels, load_topics

    corpus = VASWANI / 'doc-text.trec.gz'
    build_lucene_index(open_corpus(corpus), tmp_path / 'sparse')
    encode_corpus(open_corpus(corpus), RepBertDocumentEncoder('repbert-demo'), tmp_path / 'dense')
    topics = pd.DataFrame(
        [(topic.qid, topic.text) for topic in load_topics(VASWANI / 'query-text.trec')],
        columns=['qid', 'query'],
    )
    judgments = []
    for qid, grades in load_qrels(VASWANI / 'qrels').items():
        for docno, label in grades.items():
            judgments.append((qid, docno, label))
    qrels = pd.DataFrame(judgments, columns=['qid', 'docno', 'label'])
    bm25 = ours.LuceneRetriever('bm25', tmp_path / 'sparse')
    dense = ours.RepBertRetriever(tmp_path / 'dense')
    systems = {'bm25': bm25, 'repbert': dense, 'both': ours.HybridRetriever([dense, bm25])}
    systems['other'] = ours.Interleave(bm25, dense)
    table = pt.Experiment(
        [*systems.values()], topics, qrels, ['map', 'ndcg_cut_10'], names=[*systems]
    )
    found = {row.name: (row.map, row.ndcg_cut_10) for row in table.itertuples(index=False)}
    expected = {
        'bm25': (0.2856, 0.4368),
        'repbert': (0.2787, 0.4327),
        'both': (0.3046, 0.4570),
        'other': (0.3078, 0.4570),
    }
    for name, figures in expected.items():
        assert found[name] == pytest.approx(figures, abs=0.0015), name
    queries = topics['query'].tolist()
    asked = topics_of(queries, topics['qid'].tolist())
    searcher = dense.ranker
    alone = min(_seconds(lambda: searcher.rank(asked)) for _ in range(3))
    framed = min(_seconds(lambda: dense(topics)) for _ in range(3))
    print(f'{len(queries)} queries x 1000 hits: {alone:.2f} s alone, {framed:.2f} s in PyTerrier')
    assert framed < 1.1 * alone


def _seconds(work):
    start = time.process_time()  # a busy machine has other work to do in between
    work()
    return time.process_time() - start
