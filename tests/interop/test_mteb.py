"""mteb's own evaluation over a task of a few passages, and its scores against those of our own
interface.
"""

import json
from dataclasses import dataclass

import pytest

pytest.importorskip('mteb', minversion='2')

import mteb
from datasets import Dataset
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.retrieval_dataset_loaders import RetrievalSplitData
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models import CrossEncoderProtocol, SearchProtocol
from mteb.results.task_result import TaskError, TaskResult

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.evaluate.measures import evaluate, parse_measures
from pyserini_repbert.fusion import interleave
from pyserini_repbert.interop.mteb import (
    DenseSearch,
    HybridSearch,
    RepBertEncoder,
    RerankerCrossEncoder,
    SparseSearch,
)
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.search import DenseSearcher
from tests.rerank.many import rerank_many

DOCIDS = ['d1', 'd2', 'd3', 'd4']
TITLES = ['', 'red', '', '']
TEXTS = ['the cat sat on the mat', 'dog ran', 'a small bird in the tree', 'the old sun']
JOINED = ['the cat sat on the mat', 'red dog ran', 'a small bird in the tree', 'the old sun']
QUERIES = {'q1': 'cat mat', 'q2': 'red dog', 'q3': 'bird tree'}
RELEVANT = {'q1': {'d1': 1}, 'q2': {'d2': 1}, 'q3': {'d3': 1}}
CANDIDATES = {'q1': ['d4', 'd1'], 'q2': ['d1', 'd2', 'd3'], 'q3': ['d3', 'd4']}


class _Task(AbsTaskRetrieval):
    """Its data are in memory."""

    candidates = None

    def load_data(self, *args, **kwargs):
        corpus = Dataset.from_dict({'id': DOCIDS, 'title': TITLES, 'text': TEXTS})
        queries = Dataset.from_dict({'id': list(QUERIES), 'text': list(QUERIES.values())})
        data = RetrievalSplitData(
            corpus=corpus, queries=queries, relevant_docs=RELEVANT, top_ranked=self.candidates
        )
        self.dataset = {'default': {'test': data}}
        self.data_loaded = True


def _metadata(name, kind):
    unknown = (
        'domains task_subtypes license annotations_creators dialect sample_creation '
        'bibtex_citation reference'
    )
    return TaskMetadata(
        name=name,
        description='Four passages.',
        dataset={'path': 'local/tiny', 'revision': '1'},
        type=kind,
        category='t2t',
        modalities=['text'],
        eval_splits=['test'],
        eval_langs=['eng-Latn'],
        main_score='ndcg_at_10',
        date=('2020-01-01', '2020-12-31'),
        **dict.fromkeys(unknown.split()),
    )


class TinyRetrieval(_Task):
    metadata = _metadata('TinyRetrieval', 'Retrieval')


class TinyReranking(_Task):
    metadata = _metadata('TinyReranking', 'Reranking')
    candidates = CANDIDATES


@pytest.fixture(autouse=True)
def _offline(monkeypatch, tmp_path):
    monkeypatch.setenv('HF_HUB_OFFLINE', '1')
    monkeypatch.setenv('MTEB_CACHE', str(tmp_path / 'mteb'))


@dataclass(frozen=True)
class Evaluation:
    """mteb's measures, and the rankings that it wrote: {qid: {docid: score}}."""

    measures: dict
    rankings: dict


def _evaluate(model, task, folder):
    result = mteb.evaluate(
        model,
        task,
        cache=None,
        co2_tracker=False,
        prediction_folder=folder,
        show_progress_bar=False,
    )
    (file,) = folder.rglob('*predictions.json')
    written = json.loads(file.read_text(encoding='utf-8'))
    return Evaluation(result.task_results[0].scores['test'][0], written['default']['test'])


def _own_searcher(checkpoint, folder):
    encode_corpus(list(map(Passage, DOCIDS, JOINED)), RepBertDocumentEncoder(checkpoint), folder)
    return DenseSearcher(folder)


def _scores(hits):
    return {hit.docid: hit.score for hit in hits}


def test_dense(tiny_checkpoint, tmp_path):
    checkpoint = tiny_checkpoint()
    model = DenseSearch(checkpoint)
    assert isinstance(model, SearchProtocol)
    evaluation = _evaluate(model, TinyRetrieval(), tmp_path / 'predictions')
    searcher = _own_searcher(checkpoint, tmp_path / 'own')
    relevant_first = 0
    for qid, query in QUERIES.items():
        hits = searcher.search(query, 1000)
        assert evaluation.rankings[qid] == _scores(hits)
        relevant_first += RELEVANT[qid].get(hits[0].docid, 0)
    expected = relevant_first / len(QUERIES)
    assert evaluation.measures['ndcg_at_1'] == pytest.approx(expected, abs=1e-5)


class WholeDemo(_Task):
    metadata = _metadata('WholeDemo', 'Retrieval')

    def load_data(self, *args, **kwargs):
        passages = list(open_corpus('demo'))
        topics = load_topics('demo')
        corpus = {
            'id': [passage.docid for passage in passages],
            'title': [''] * len(passages),
            'text': [passage.text for passage in passages],
        }
        queries = {'id': [topic.qid for topic in topics], 'text': [topic.text for topic in topics]}
        data = RetrievalSplitData(
            corpus=Dataset.from_dict(corpus),
            queries=Dataset.from_dict(queries),
            relevant_docs=load_qrels('demo'),
            top_ranked=None,
        )
        self.dataset = {'default': {'test': data}}
        self.data_loaded = True


@pytest.mark.slow
def test_dense_on_the_demo_has_the_figures_of_evaluate(tmp_path):
    evaluation = _evaluate(DenseSearch('repbert-demo'), WholeDemo(), tmp_path / 'predictions')
    encode_corpus(open_corpus('demo'), RepBertDocumentEncoder('repbert-demo'), tmp_path / 'dense')
    run = DenseSearcher(tmp_path / 'dense').rank(load_topics('demo'))
    measures = parse_measures(['nDCG@10', 'RR@10', 'R@100'])
    own = evaluate(run, load_qrels('demo'), measures).means
    print(own)
    names = ('ndcg_at_10', 'mrr_at_10', 'recall_at_100')
    expected = [evaluation.measures[name] for name in names]
    assert list(own.values()) == pytest.approx(expected, abs=1e-5)


def test_dense_among_candidates(tiny_checkpoint, tmp_path):
    checkpoint = tiny_checkpoint()
    evaluation = _evaluate(DenseSearch(checkpoint), TinyReranking(), tmp_path / 'predictions')
    searcher = _own_searcher(checkpoint, tmp_path / 'own')
    for qid, query in QUERIES.items():
        candidates = [hit for hit in searcher.search(query, 4) if hit.docid in CANDIDATES[qid]]
        assert evaluation.rankings[qid] == _scores(candidates)


@pytest.fixture
def lucene(tmp_path):
    """Lucene's search of the passages."""
    from pyserini_repbert.index.lucene import build_lucene_index
    from pyserini_repbert.lucene.searcher import LuceneSparseSearcher

    build_lucene_index(list(map(Passage, DOCIDS, JOINED)), tmp_path / 'lucene')
    return LuceneSparseSearcher(tmp_path / 'lucene')


@pytest.mark.jvm
def test_sparse(lucene, tmp_path):
    model = SparseSearch()
    assert isinstance(model, SearchProtocol)
    evaluation = _evaluate(model, TinyRetrieval(), tmp_path / 'predictions')
    for qid, query in QUERIES.items():
        assert evaluation.rankings[qid] == _scores(lucene.search(query, 1000))
    # Each query has its words in its passage only.
    assert evaluation.measures['ndcg_at_10'] == pytest.approx(1.0)


@pytest.mark.jvm
def test_hybrid(lucene, tiny_checkpoint, tmp_path):
    checkpoint = tiny_checkpoint()
    model = HybridSearch(DenseSearch(checkpoint), SparseSearch(), sparse_first=True)
    assert isinstance(model, SearchProtocol)
    dense = _own_searcher(checkpoint, tmp_path / 'own')
    whole = _evaluate(model, TinyRetrieval(), tmp_path / 'whole')
    among = _evaluate(model, TinyReranking(), tmp_path / 'among')
    # Interleaving begins with the sparse ranking, whose first hit is relevant.
    assert whole.measures['mrr_at_10'] == pytest.approx(1.0)
    for qid, query in QUERIES.items():
        sparse_docids = [hit.docid for hit in lucene.search(query, 4)]
        dense_docids = [hit.docid for hit in dense.search(query, 4)]
        assert list(whole.rankings[qid]) == interleave([sparse_docids, dense_docids])
        sparse_among = [docid for docid in sparse_docids if docid in CANDIDATES[qid]]
        dense_among = [docid for docid in dense_docids if docid in CANDIDATES[qid]]
        assert list(among.rankings[qid]) == interleave([sparse_among, dense_among])


def test_each_model_has_a_revision_of_its_own(tiny_checkpoint):
    dense = DenseSearch(tiny_checkpoint())
    models = [dense, SparseSearch(), HybridSearch(dense, SparseSearch())]
    assert len({model.mteb_model_meta.revision for model in models}) == 3


@pytest.mark.parametrize('system', ['mono', 'duo'])
def test_reranker(system, request, tmp_path):
    reranker = request.getfixturevalue(system)
    model = RerankerCrossEncoder(reranker)
    assert isinstance(model, CrossEncoderProtocol)
    assert not isinstance(model, SearchProtocol)
    evaluation = _evaluate(model, TinyReranking(), tmp_path / 'predictions')
    text_of = dict(zip(DOCIDS, JOINED, strict=True))
    lists = []
    for docids in CANDIDATES.values():
        lists.append([Candidate(docid, text=text_of[docid]) for docid in docids])
    reranked = rerank_many(reranker, list(QUERIES.values()), lists)
    for qid, hits in zip(QUERIES, reranked, strict=True):
        assert evaluation.rankings[qid] == _scores(hits)


def test_each_model_has_its_type(tiny_checkpoint, mono):
    checkpoint = tiny_checkpoint()
    dense = DenseSearch(checkpoint)
    sparse = SparseSearch()
    models = [dense, sparse, HybridSearch(dense, sparse), RerankerCrossEncoder(mono)]
    types = [model.mteb_model_meta.model_type for model in models]
    assert types == [['dense'], ['sparse'], ['hybrid'], ['cross-encoder']]


@pytest.mark.parametrize('model_class', [RepBertEncoder, DenseSearch])
def test_mtebs_own_check_of_a_model_passes(model_class, tiny_checkpoint):
    results = mteb.mock_run(model_class(tiny_checkpoint()))
    assert any(isinstance(result, TaskResult) for _, result in results.items())
    assert results.all_passed, results.to_markdown()


def test_mtebs_own_check_of_a_reranker_passes_where_there_are_candidates(mono):
    results = mteb.mock_run(RerankerCrossEncoder(mono))
    reranked = {name: result for name, result in results.items() if 'Reranking' in name}
    passed = [name for name, result in reranked.items() if isinstance(result, TaskResult)]
    assert {'MockRerankingTask', 'MockInstructionReranking'} <= set(passed)
    assert not any(isinstance(result, TaskError) for result in reranked.values())
