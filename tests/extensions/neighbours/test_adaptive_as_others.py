"""MMR, GAR and LADR rank as pyterrier_dr and pyterrier-adaptive do, over one graph.

Both packages are optional: `pip install pyterrier-dr pyterrier-adaptive`.
"""

import numpy as np
import pytest
from graphs import documents_of, neighbours, open_with_graph

from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.extensions.neighbours.ladr import LadrReranker
from pyserini_repbert.extensions.neighbours.reranking import AdaptiveReranker
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.ranking import Query, Ranking
from pyserini_repbert.rerank import MonoBertReranker
from pyserini_repbert.systems.mmr.reranker import MmrReranker

pt = pytest.importorskip('pyterrier')
pd = pytest.importorskip('pandas')
pyterrier_dr = pytest.importorskip('pyterrier_dr')
pyterrier_adaptive = pytest.importorskip('pyterrier_adaptive')

QUERIES = ['red cat ate fish', 'old sea', 'the small tree on a hat', 'bird ran']
N = 30
NEIGHBOURS = 5


class Graph:
    """Our graph, as pyterrier-adaptive (docids) and pyterrier_dr (rows) ask for it."""

    def __init__(self, documents, docids):
        self._documents = documents
        row_of = {docid: row for row, docid in enumerate(docids)}
        rows = []
        for nearest in neighbours(documents, docids, NEIGHBOURS):
            rows.append([row_of[docid] for docid in nearest])
        self.edges_data = np.array(rows)

    def neighbours(self, docid):
        (docids,) = neighbours(self._documents, [docid], NEIGHBOURS)
        return list(docids)


@pytest.fixture
def dense(tiny_checkpoint, corpus_file, tmp_path):
    """A dense bundle of 30 passages in three shards."""
    corpus = open_corpus(corpus_file(N))
    encoder = RepBertDocumentEncoder(tiny_checkpoint())
    encode_corpus(corpus, encoder, tmp_path / 'dense', store_text=True, shard_size=13)
    return tmp_path / 'dense'


@pytest.fixture
def mono(cross_encoder_folder):
    """A monoBERT with random weights."""
    return MonoBertReranker(cross_encoder_folder('monobert'))


@pytest.fixture
def index(dense):
    with open_with_graph(dense, NEIGHBOURS) as opened:
        yield opened


@pytest.fixture
def documents(index):
    return documents_of(index)


@pytest.fixture
def searcher(index):
    return index.searcher(Machine())


@pytest.fixture
def topics():
    return [Query(str(number), text) for number, text in enumerate(QUERIES)]


def first_run(topics, n):
    """Each query's first stage: n documents, others for each."""
    run = {}
    for number, topic in enumerate(topics):
        docids = [f'd{(7 * number + 11 * rank) % N}' for rank in range(n)]
        run[topic.qid] = Ranking(docids, [float(n - rank) for rank in range(n)])
    return run


def as_frame(topics, run, searcher):
    """A run as PyTerrier has it, with the vectors of queries and documents."""
    rows = []
    for topic in topics:
        (query,) = searcher.encode([topic.text])
        ranking = run[topic.qid]
        vectors = searcher.document_vectors(ranking.docids)
        for rank, hit in enumerate(ranking):
            rows.append(
                (topic.qid, topic.text, query, hit.docid, hit.score, rank, vectors[hit.docid])
            )
    names = ['qid', 'query', 'query_vec', 'docno', 'score', 'rank', 'doc_vec']
    return pd.DataFrame(rows, columns=names)


def ranked(frame):
    """{qid: [docno, …]} of a frame, in the order of its scores."""
    ordered = frame.sort_values(['qid', 'score'], ascending=[True, False], kind='stable')
    return {qid: list(rows['docno']) for qid, rows in ordered.groupby('qid')}


# Not 0: there, theirs gives a document again and again (0 times infinity).
@pytest.mark.parametrize('diversify', [0.1, 0.3, 0.5, 0.9, 1.0])
def test_mmr_ranks_as_pyterrier_drs(documents, searcher, topics, diversify):
    run = searcher.rank(topics, None, 12)
    mmr = MmrReranker(diversify=diversify).with_settings(documents=documents)
    ours = {qid: list(ranking.docids) for qid, ranking in mmr.rank(topics, run, None).items()}
    scorer = pyterrier_dr.MmrScorer(Lambda=1 - diversify, norm_rel=True)
    assert ours == ranked(scorer(as_frame(topics, run, searcher)))


@pytest.mark.parametrize('budget', [5, 16, 20, 28])
def test_gar_ranks_as_pyterrier_adaptives(documents, searcher, topics, mono, budget):
    run = {}
    for qid, ranking in first_run(topics, 12).items():
        run[qid] = searcher.with_stored_texts('', ranking)
    gar = AdaptiveReranker(mono.with_settings(reads=budget), NEIGHBOURS)
    ours = gar.with_settings(documents=documents).rank(topics, run, None)

    def score(frame):
        (query,) = set(frame['query'])
        candidates = Ranking(frame['docno'], [0.0] * len(frame))
        (scores,) = mono.score_lists([query], [searcher.with_stored_texts('', candidates)])
        return frame.assign(score=scores)

    graph = Graph(documents, [f'd{number}' for number in range(N)])
    theirs = pyterrier_adaptive.GAR(
        pt.apply.generic(score), graph, num_results=budget, batch_size=16, backfill=False
    )(as_frame(topics, run, searcher))
    for qid, rows in theirs.groupby('qid'):
        expected = rows.sort_values('score', ascending=False)
        n = len(expected)
        assert list(ours[qid].docids[:n]) == list(expected['docno'])
        assert list(ours[qid].scores[:n]) == pytest.approx(list(expected['score']), abs=1e-5)


@pytest.mark.parametrize(
    ('method', 'depth'), [('proactive', None), ('adaptive', 4), ('adaptive', 9)]
)
def test_ladr_ranks_as_pyterrier_drs(documents, searcher, topics, tmp_path, method, depth):
    run = first_run(topics, 3)
    ladr = LadrReranker(method=method, depth=depth).with_settings(
        documents=documents, n_neighbours=NEIGHBOURS
    )
    ours = ladr.rank(topics, run, None)
    docids = [f'd{number}' for number in range(N)]
    vectors = searcher.document_vectors(docids)
    flex = pyterrier_dr.FlexIndex(str(tmp_path / 'flex'))
    flex.index([{'docno': docid, 'doc_vec': vectors[docid]} for docid in docids])
    graph = Graph(documents, docids)
    if method == 'proactive':
        theirs = flex.ladr_proactive(graph)
    else:
        theirs = flex.ladr_adaptive(graph, depth=depth)
    frame = theirs(as_frame(topics, run, searcher).drop(columns='doc_vec'))
    for qid, rows in frame.groupby('qid'):
        assert len(rows) < N
        assert list(ours[qid].docids) == list(rows.sort_values('rank')['docno'])
        assert list(ours[qid].scores) == pytest.approx(list(rows['score']), abs=1e-5)
