"""mteb's own evaluation over a task of a few passages, and its scores against those of our own
interface.
"""

import json

import numpy as np
import pytest

pytest.importorskip('mteb', minversion='2')

import mteb
from datasets import Dataset
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.retrieval_dataset_loaders import RetrievalSplitData
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models import CrossEncoderProtocol, SearchProtocol

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.evaluate.measures import evaluate, parse_measures
from pyserini_repbert.fusion import interleave
from pyserini_repbert.interop.mteb import (
    DenseSearch,
    HybridSearch,
    RerankerCrossEncoder,
    SparseSearch,
)
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.search import RepBertSearcher
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


def _evaluated(model, task, folder):
    """mteb's measures, and the rankings that it wrote."""
    result = mteb.evaluate(
        model,
        task,
        cache=None,
        co2_tracker=False,
        prediction_folder=folder,
        show_progress_bar=False,
    )
    (file,) = folder.rglob('*predictions.json')
    found = json.loads(file.read_text(encoding='utf-8'))
    return result.task_results[0].scores['test'][0], found['default']['test']


def _own_searcher(checkpoint, folder):
    encode_corpus(list(map(Passage, DOCIDS, JOINED)), RepBertDocumentEncoder(checkpoint), folder)
    return RepBertSearcher(folder)


def _scores(hits):
    return {hit.docid: hit.score for hit in hits}


def test_dense(tiny_checkpoint, tmp_path):
    checkpoint = tiny_checkpoint()
    model = DenseSearch(checkpoint)
    assert isinstance(model, SearchProtocol)
    measures, found = _evaluated(model, TinyRetrieval(), tmp_path / 'predictions')
    own = _own_searcher(checkpoint, tmp_path / 'own').batch_search(
        list(QUERIES.values()), list(QUERIES), 1000
    )
    assert found == {qid: _scores(hits) for qid, hits in own.items()}
    first = [RELEVANT[qid].get(hits[0].docid, 0) for qid, hits in own.items()]
    assert measures['ndcg_at_1'] == pytest.approx(np.mean(first), abs=1e-5)


class WholeDemo(_Task):
    metadata = _metadata('WholeDemo', 'Retrieval')

    def load_data(self, *args, **kwargs):
        passages = list(open_corpus('demo'))
        topics = load_topics('demo')
        texts = {'id': [own.docid for own in passages], 'text': [own.text for own in passages]}
        corpus = Dataset.from_dict({**texts, 'title': [''] * len(passages)})
        queries = Dataset.from_dict(
            {'id': [own.qid for own in topics], 'text': [own.text for own in topics]}
        )
        data = RetrievalSplitData(
            corpus=corpus, queries=queries, relevant_docs=load_qrels('demo'), top_ranked=None
        )
        self.dataset = {'default': {'test': data}}
        self.data_loaded = True


@pytest.mark.slow
def test_dense_on_the_demo_has_the_figures_of_evaluate(tmp_path):
    measures, _ = _evaluated(DenseSearch('repbert-demo'), WholeDemo(), tmp_path / 'predictions')
    encode_corpus(open_corpus('demo'), RepBertDocumentEncoder('repbert-demo'), tmp_path / 'dense')
    topics = load_topics('demo')
    run = RepBertSearcher(tmp_path / 'dense').rank(topics)
    own = evaluate(run, load_qrels('demo'), parse_measures(['nDCG@10', 'RR@10', 'R@100'])).means
    print(own)
    assert list(own.values()) == pytest.approx(
        [measures[name] for name in ('ndcg_at_10', 'mrr_at_10', 'recall_at_100')], abs=1e-5
    )


def test_dense_among_candidates(tiny_checkpoint, tmp_path):
    checkpoint = tiny_checkpoint()
    _, found = _evaluated(DenseSearch(checkpoint), TinyReranking(), tmp_path / 'predictions')
    own = _own_searcher(checkpoint, tmp_path / 'own')
    for qid, query in QUERIES.items():
        every = _scores(own.search(query, 4))
        assert found[qid] == {
            docid: score for docid, score in every.items() if docid in CANDIDATES[qid]
        }


@pytest.mark.jvm
def test_sparse_and_hybrid(tiny_checkpoint, tmp_path):
    from pyserini_repbert.index.lucene import build_lucene_index
    from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
    from pyserini_repbert.names.corpora import open_corpus

    rows = ''.join(f'{docid}\t{text}\n' for docid, text in zip(DOCIDS, JOINED, strict=True))
    (tmp_path / 'corpus.tsv').write_text(rows, encoding='utf-8')
    build_lucene_index(open_corpus(tmp_path / 'corpus.tsv'), tmp_path / 'lucene')
    lucene = LuceneSparseSearcher(tmp_path / 'lucene')
    sparse = SparseSearch()
    assert isinstance(sparse, SearchProtocol)
    measures, found = _evaluated(sparse, TinyRetrieval(), tmp_path / 'sparse')
    assert found == {qid: _scores(lucene.search(query, 1000)) for qid, query in QUERIES.items()}
    assert measures['ndcg_at_10'] == pytest.approx(1.0), (
        'each query has its words in its passage only'
    )

    checkpoint = tiny_checkpoint()
    hybrid = HybridSearch(DenseSearch(checkpoint), sparse, sparse_first=True)
    assert isinstance(hybrid, SearchProtocol)
    dense = _own_searcher(checkpoint, tmp_path / 'own')
    measures, found = _evaluated(hybrid, TinyRetrieval(), tmp_path / 'hybrid')
    _, among = _evaluated(hybrid, TinyReranking(), tmp_path / 'among')
    assert measures['mrr_at_10'] == pytest.approx(1.0), (
        'interleaving begins with the sparse ranking'
    )
    for qid, query in QUERIES.items():
        rankings = [
            [hit.docid for hit in searcher.search(query, 4)] for searcher in (lucene, dense)
        ]
        assert list(found[qid]) == interleave(rankings)
        kept = [[docid for docid in ranking if docid in CANDIDATES[qid]] for ranking in rankings]
        assert list(among[qid]) == interleave(kept)
    revisions = {model.mteb_model_meta.revision for model in (sparse, hybrid, hybrid.dense)}
    assert len(revisions) == 3


@pytest.mark.parametrize('system', ['mono', 'duo'])
def test_reranker(system, request, tmp_path):
    reranker = request.getfixturevalue(system)
    model = RerankerCrossEncoder(reranker)
    assert isinstance(model, CrossEncoderProtocol) and not isinstance(model, SearchProtocol)
    _, found = _evaluated(model, TinyReranking(), tmp_path / 'predictions')
    texts = dict(zip(DOCIDS, JOINED, strict=True))
    lists = [
        [Candidate(docid, text=texts[docid]) for docid in docids] for docids in CANDIDATES.values()
    ]
    own = rerank_many(reranker, list(QUERIES.values()), lists)
    assert found == {qid: _scores(hits) for qid, hits in zip(QUERIES, own, strict=True)}
