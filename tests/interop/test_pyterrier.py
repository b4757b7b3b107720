"""PyTerrier's interface: the same scores as our own, frames in and frames out."""

import pytest
from pyterrier_world import HITS, QUERIES, TOPICS, frame_of, pairs

import pyserini_repbert.interop.pyterrier as ours
from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion import fuse, interleave
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.ranking import Ranker, Ranking, topics_of
from pyserini_repbert.search import RepBertSearcher

pt = pytest.importorskip('pyterrier')
pd = pytest.importorskip('pandas')


def test_repbert_gives_its_own_searchers_hits(dense):
    found = ours.RepBertRetriever(dense, num_results=5)(TOPICS.assign(user='u'))
    assert list(found.columns) == ['qid', 'query', 'user', 'docno', 'score', 'rank']
    assert frame_of(found) == pairs(
        RepBertSearcher(dense).batch_search(list(QUERIES.values()), list(QUERIES), k=5)
    )
    assert found['qid'].tolist() == [qid for qid in QUERIES for _ in range(5)]
    assert found['rank'].tolist() == list(range(5)) * 3
    assert found['query'].tolist() == [query for query in QUERIES.values() for _ in range(5)]


def test_more_hits_than_passages_and_an_open_searcher(dense):
    searcher = RepBertSearcher(dense)
    assert len(ours.Retriever(searcher)(TOPICS)) == 3 * 30


def test_a_cutoff_is_fused_and_never_loosened(dense):
    retriever = ours.RepBertRetriever(dense, num_results=20)
    assert (retriever % 4).compile().num_results == 4
    assert (retriever % 50).compile().num_results == 20
    pd.testing.assert_frame_equal((retriever % 4).compile()(TOPICS), (retriever % 4)(TOPICS))


def test_text_by_docno_from_every_place(dense, tmp_path):
    frame = pd.DataFrame({'docno': ['d3', 'd0', 'd3', 'nothing']}, index=[5, 5, 1, 0])
    known = {passage.docid: passage.text for passage in open_corpus(tmp_path / 'corpus.jsonl')}
    for source in (
        ours.PassageText(dense),
        ours.PassageText(corpus=tmp_path / 'corpus.jsonl'),
        ours.PassageText(ours.RepBertRetriever(dense)),
    ):
        out = source(frame)
        assert out['text'].tolist() == [known['d3'], known['d0'], known['d3'], None]
        assert out.index.tolist() == [5, 5, 1, 0]
    assert list(frame.columns) == ['docno']
    with pytest.raises(InputError, match='one place'):
        ours.PassageText(dense, corpus=tmp_path / 'corpus.jsonl')


def test_an_indexer_writes_what_our_own_encoding_writes(dense, tiny_checkpoint, tmp_path):
    checkpoint = tiny_checkpoint('again')
    passages = list(open_corpus(tmp_path / 'corpus.jsonl'))
    documents = ({'docno': passage.docid, 'text': passage.text} for passage in passages)
    indexer = ours.RepBertIndexer(tmp_path / 'made', checkpoint, shard_size=13)
    assert pt.inspect.indexer_inputs(indexer) == [['docno', 'text']]
    index = indexer.index(documents)
    for shard in sorted((dense).glob('shard-*')):
        for file in ('vectors.npy', 'docids.txt', 'texts.jsonl'):
            assert (index / shard.name / file).read_bytes() == (shard / file).read_bytes()
    pd.testing.assert_frame_equal(
        ours.RepBertRetriever(index)(TOPICS), ours.RepBertRetriever(dense)(TOPICS)
    )


def results(*lists, **columns):
    rows = [
        (qid, docno, float(-rank), rank)
        for qid, docnos in lists
        for rank, docno in enumerate(docnos)
    ]
    return pd.DataFrame(rows, columns=['qid', 'docno', 'score', 'rank']).assign(
        query='cat', **columns
    )


def test_interleave_alternates_and_says_where_hits_come_from():
    first = results(('1', 'abc'), ('2', 'x'), text='first', only='here').iloc[::-1]
    second = results(('1', 'bd'), text='second')
    third = results(('1', 'e'), ('3', 'z'), text='third')
    parts = [pt.Transformer.from_df(frame) for frame in (first, second, third)]
    topics = pd.DataFrame({'qid': ['1', '2', '3'], 'query': 'cat'})
    found = ours.Interleave(*parts, names=['bm25', 'repbert', '3'])(topics)
    own = found[found['qid'] == '1'].sort_values('rank')
    assert own['docno'].tolist() == interleave(['abc', 'bd', 'e']) == ['a', 'b', 'e', 'd', 'c']
    assert own['score'].tolist() == [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]
    assert own['text'].tolist() == ['first', 'first', 'third', 'second', 'first']
    assert own['rank_bm25'].astype(object).tolist() == [0, 1, pd.NA, pd.NA, 2]
    assert own['rank_repbert'].astype(object).tolist() == [pd.NA, 0, pd.NA, 1, pd.NA]
    assert own['rank_3'].astype(object).tolist() == [pd.NA, pd.NA, 0, pd.NA, pd.NA]
    assert 'only' not in found
    assert set(found['qid']) == {'1', '2', '3'}
    for refused in ([], ['a', 'a', 'b'], ['a']):
        with pytest.raises(InputError, match='name of its own'):
            ours.Interleave(*parts, names=refused)


class Stub(Ranker):
    """A searcher with given rankings."""

    name = 'sparse'

    def __init__(self, docids):
        self.docids = docids

    def _rank(self, topics, run, k, trace):
        scores = [1 / (place + 1) for place in range(len(self.docids))]
        return {topic.qid: Ranking(self.docids, scores) for topic in topics}

    def texts(self, docids):
        return [f'text of {docid}' for docid in docids]


@pytest.mark.parametrize('method', ['interleave', 'rrf', 'interpolation'])
def test_a_hybrid_retriever_fuses_as_our_own_fusion(dense, method):
    repbert = ours.RepBertRetriever(dense)
    sparse = ours.Retriever(Stub([f'd{n}' for n in range(9)]))
    hybrid = ours.HybridRetriever([sparse, repbert], method, num_results=12, provenance=True)
    found = hybrid(TOPICS)
    topics = topics_of(list(QUERIES.values()), list(QUERIES))
    runs = [Stub([f'd{n}' for n in range(9)]).rank(topics), RepBertSearcher(dense).rank(topics)]
    if method == 'interleave':
        runs[1] = {qid: ranking[:12] for qid, ranking in runs[1].items()}
    assert frame_of(found) == pairs(fuse(runs, method, 12))
    dense = runs[1]['q1'].docids
    for row in found[found['qid'] == 'q1'].itertuples():
        assert pd.isna(row.rank_sparse) or row.docno == f'd{row.rank_sparse}'
        assert pd.isna(row.rank_tiny) == (row.docno not in dense)
        assert pd.isna(row.rank_tiny) or row.docno == dense[row.rank_tiny]
    pd.testing.assert_frame_equal((hybrid % 3).compile()(TOPICS), (hybrid % 3)(TOPICS))
    assert ours.PassageText(sparse)(found)['text'].iloc[0].startswith('text of d')


def test_empty_frames_and_what_inspection_sees(
    dense, candidates, cross_encoder_folder, tiny_cedr, tiny_epic
):
    repbert = ours.RepBertRetriever(dense, num_results=3)
    stub = ours.Retriever(Stub(['d1']))
    hybrid = ours.HybridRetriever([repbert, stub], provenance=True)
    ranks = ['rank_tiny', 'rank_sparse']
    seen = [
        (repbert, TOPICS, HITS),
        (stub, TOPICS, HITS),
        (hybrid, TOPICS, ['qid', 'query', 'docno', 'score', *ranks, 'rank']),
        (
            ours.Interleave(repbert, stub),
            TOPICS,
            ['qid', 'query', 'docno', 'score', *ranks, 'rank'],
        ),
        (
            ours.Rerank(cross_encoder_folder('monobert')),
            candidates,
            ['qid', 'query', 'docno', 'text', 'score', 'rank'],
        ),
        (
            ours.Rerank(cross_encoder_folder('duobert'), matrix=True),
            candidates,
            ['qid', 'query', 'docno', 'text', 'score', 'duobert_p', 'rank'],
        ),
        (
            ours.Rerank(tiny_cedr('knrm')),
            candidates,
            ['qid', 'query', 'docno', 'text', 'score', 'rank'],
        ),
        (ours.Rerank(tiny_epic()), candidates, ['qid', 'query', 'docno', 'text', 'score', 'rank']),
        (ours.PassageText(dense), candidates.drop(columns='text'), [*HITS, 'text']),
    ]
    for transformer, frame, columns in seen:
        assert list(transformer(frame).columns) == columns
        assert pt.inspect.transformer_outputs(transformer, list(frame.columns)) == columns
        empty = transformer(frame.iloc[:0])
        assert (len(empty), list(empty.columns)) == (0, columns)
        assert set(pt.inspect.transformer_inputs(transformer)[0]) <= set(frame.columns)
        assert pt.inspect.transformer_attributes(transformer)
        with pytest.raises(pt.validate.InputValidationError):
            transformer(pd.DataFrame({'nothing': []}))


def test_a_pipeline_in_an_experiment_without_java(dense, cross_encoder_folder):
    repbert = ours.RepBertRetriever(dense, num_results=10)
    pipeline = (
        repbert % 5 >> ours.PassageText(dense) >> ours.Rerank(cross_encoder_folder('monobert'))
    )
    best = repbert(TOPICS).query('rank == 0')
    qrels = pd.DataFrame({'qid': best['qid'], 'docno': best['docno'], 'label': 1})
    table = pt.Experiment(
        [repbert, pipeline], TOPICS, qrels, ['recip_rank'], names=['repbert', 'mono'], batch_size=2
    )
    assert table['recip_rank'].tolist()[0] == 1
    assert not pt.java.started()


@pytest.mark.jvm
def test_lucene_gives_its_own_searchers_hits(dense, tmp_path):
    from pyserini_repbert.index.lucene import build_lucene_index
    from pyserini_repbert.lucene import LuceneSparseSearcher

    build_lucene_index(open_corpus(tmp_path / 'corpus.jsonl'), tmp_path / 'lucene')
    for spec in (str(tmp_path / 'lucene'), f'bm25+rm3@{tmp_path / "lucene"}'):
        retriever = ours.LuceneRetriever(spec, num_results=6, threads=2)
        own = retriever.ranker.batch_search(list(QUERIES.values()), list(QUERIES), k=6)
        assert frame_of(retriever(TOPICS)) == {
            qid: hits for qid, hits in pairs(own).items() if hits
        }
        assert frame_of((retriever % 2).compile()(TOPICS)) == frame_of((retriever % 2)(TOPICS))
    assert retriever.name == 'bm25+rm3'
    bm25 = ours.LuceneRetriever('bm25', tmp_path / 'lucene')
    expected = LuceneSparseSearcher(tmp_path / 'lucene').batch_search(
        list(QUERIES.values()), list(QUERIES), k=1000
    )
    assert frame_of(bm25(TOPICS)) == {qid: hits for qid, hits in pairs(expected).items() if hits}
    assert len(bm25(TOPICS.assign(query='zebra'))) == 0
    assert list(ours.PassageText(bm25)(bm25(TOPICS)).columns) == [*HITS, 'text']
    hybrid = ours.HybridRetriever(
        [ours.RepBertRetriever(dense), bm25], num_results=4, provenance=True
    )
    assert {'rank_tiny', 'rank_bm25'} < set(hybrid(TOPICS).columns)


def test_rows_without_a_query_and_qids_with_two_are_refused(dense):
    from pyserini_repbert.interop.pyterrier.frames import ranked_rows

    retriever = ours.RepBertRetriever(dense, num_results=2)
    for column in ('qid', 'query'):
        with pytest.raises(InputError, match=f"row 1 of the frame has no '{column}'"):
            retriever(
                TOPICS.astype(object).assign(
                    **{column: [TOPICS[column][0], None, TOPICS[column][2]]}
                )
            )
    with pytest.raises(InputError, match="qid '1' has two queries"):
        retriever(pd.DataFrame({'qid': ['1', '1'], 'query': ['a', 'b']}))
    hits = retriever(TOPICS)
    hits['query'] = hits['query'].astype(object).where(hits.index != 3)
    with pytest.raises(InputError, match="row 3 of the frame has no 'query'"):
        list(ranked_rows(hits, ['qid', 'query']))


def test_empty_fields_of_documents_are_no_words(tmp_path, tiny_checkpoint):
    documents = [
        {'docno': 'a', 'title': None, 'text': 'slugs'},
        {'docno': 'b', 'title': float('nan'), 'text': 'roses'},
    ]
    checkpoint = tiny_checkpoint('encoder')
    ours.RepBertIndexer(tmp_path / 'index', checkpoint, fields=['title', 'text']).index(documents)
    assert DenseBundle(tmp_path / 'index').texts(['a', 'b']) == ['slugs', 'roses']
    with pytest.raises(InputError, match="field 'docno' is empty"):
        ours.RepBertIndexer(tmp_path / 'other', checkpoint).index([{'docno': None, 'text': 'x'}])
