"""PyTerrier's interface: the same scores as our own, frames in and frames out."""

from dataclasses import dataclass

import pytest
from pyterrier_world import HITS, QUERIES, TOPICS, frame_hits, run_hits

import pyserini_repbert.interop.pyterrier as ours
from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion import fuse
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.ranking import Ranker, Ranking, topics_of
from pyserini_repbert.search import DenseSearcher

pt = pytest.importorskip('pyterrier')
pd = pytest.importorskip('pandas')


def test_repbert_gives_its_own_searchers_hits(dense):
    frame = ours.RepBertRetriever(dense, num_results=5)(TOPICS)
    searcher = DenseSearcher(dense)
    run = searcher.batch_search(list(QUERIES.values()), list(QUERIES), k=5)
    assert frame_hits(frame) == run_hits(run)


def test_a_result_frame_keeps_the_columns_of_the_queries(dense):
    frame = ours.RepBertRetriever(dense, num_results=2)(TOPICS.assign(user='u'))
    assert list(frame.columns) == ['qid', 'query', 'user', 'docno', 'score', 'rank']
    assert frame['qid'].tolist() == ['q1', 'q1', 'q2', 'q2', 'ä3', 'ä3']
    assert frame['query'].tolist()[::2] == list(QUERIES.values())
    assert frame['rank'].tolist() == [0, 1] * 3


def test_more_hits_than_passages_and_an_open_searcher(dense):
    searcher = DenseSearcher(dense)
    assert len(ours.Retriever(searcher)(TOPICS)) == 3 * 30


def test_a_cutoff_is_fused_and_never_loosened(dense):
    retriever = ours.RepBertRetriever(dense, num_results=20)
    assert (retriever % 4).compile().num_results == 4
    assert (retriever % 50).compile().num_results == 20
    pd.testing.assert_frame_equal((retriever % 4).compile()(TOPICS), (retriever % 4)(TOPICS))


@pytest.mark.parametrize('source', ['index', 'corpus', 'retriever'])
def test_text_by_docno(source, dense, tmp_path):
    corpus = tmp_path / 'corpus.jsonl'
    transformer = {
        'index': lambda: ours.PassageText(dense),
        'corpus': lambda: ours.PassageText(corpus=corpus),
        'retriever': lambda: ours.PassageText(ours.RepBertRetriever(dense)),
    }[source]()
    frame = pd.DataFrame({'docno': ['d3', 'd0', 'd3', 'nothing']}, index=[5, 5, 1, 0])
    out = transformer(frame)
    text_of = {passage.docid: passage.text for passage in open_corpus(corpus)}
    assert out['text'].tolist() == [text_of['d3'], text_of['d0'], text_of['d3'], None]
    assert out.index.tolist() == [5, 5, 1, 0]
    assert list(frame.columns) == ['docno'], 'what was given is not changed'


def test_texts_come_from_one_place(dense, tmp_path):
    with pytest.raises(InputError, match='give one of the two'):
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


def _results(docnos_by_qid, **columns):
    """A result frame; docnos are letters."""
    rows = []
    for qid, docnos in docnos_by_qid.items():
        for rank, docno in enumerate(docnos):
            rows.append((qid, docno, float(-rank), rank))
    frame = pd.DataFrame(rows, columns=['qid', 'docno', 'score', 'rank'])
    return frame.assign(query='cat', **columns)


@pytest.fixture
def three_systems():
    """Transformers that give rankings of their own; the first one's rows are not in order."""
    first = _results({'1': 'abc', '2': 'x'}, text='first', only='here').iloc[::-1]
    second = _results({'1': 'bd'}, text='second')
    third = _results({'1': 'e', '3': 'z'}, text='third')
    return [pt.Transformer.from_df(frame) for frame in (first, second, third)]


@pytest.fixture
def interleaved(three_systems):
    """Their fusion for three topics."""
    topics = pd.DataFrame({'qid': ['1', '2', '3'], 'query': 'cat'})
    return ours.Interleave(*three_systems, names=['bm25', 'repbert', '3'])(topics)


@pytest.fixture
def interleaved_first(interleaved):
    """The hits of the first topic, by rank."""
    return interleaved[interleaved['qid'] == '1'].sort_values('rank')


def test_interleave_alternates(interleaved_first):
    assert interleaved_first['docno'].tolist() == ['a', 'b', 'e', 'd', 'c']
    assert interleaved_first['score'].tolist() == [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]


def test_interleave_keeps_the_columns_of_the_first_system_that_has_a_hit(interleaved_first):
    texts = ['first', 'first', 'third', 'second', 'first']
    assert interleaved_first['text'].tolist() == texts
    assert 'only' not in interleaved_first


def test_interleave_says_where_hits_come_from(interleaved_first):
    ranks = interleaved_first.astype(object)
    assert ranks['rank_bm25'].tolist() == [0, 1, pd.NA, pd.NA, 2]
    assert ranks['rank_repbert'].tolist() == [pd.NA, 0, pd.NA, 1, pd.NA]
    assert ranks['rank_3'].tolist() == [pd.NA, pd.NA, 0, pd.NA, pd.NA]


def test_interleave_has_the_queries_of_all_systems(interleaved):
    assert set(interleaved['qid']) == {'1', '2', '3'}


@pytest.mark.parametrize('names', [[], ['a', 'a', 'b'], ['a']])
def test_interleave_needs_a_name_for_each_system(names, three_systems):
    with pytest.raises(InputError, match='a different name for each'):
        ours.Interleave(*three_systems, names=names)


class FixedRanker(Ranker):
    """A searcher that gives every query the same hits."""

    name = 'sparse'

    def __init__(self, docids):
        self.docids = docids

    def _rank(self, topics, run, k, trace):
        scores = [1 / rank for rank in range(1, len(self.docids) + 1)]
        return {topic.qid: Ranking(self.docids, scores) for topic in topics}

    def texts(self, docids):
        return [f'text of {docid}' for docid in docids]


SPARSE = FixedRanker([f'd{number}' for number in range(9)])


def _hybrid(dense, **settings):
    """The fixed ranking and RepBERT's."""
    retrievers = [ours.Retriever(SPARSE), ours.RepBertRetriever(dense)]
    return ours.HybridRetriever(retrievers, num_results=12, provenance=True, **settings)


@pytest.mark.parametrize(
    ('method', 'depth'), [('interleave', 12), ('rrf', 1000), ('interpolation', 1000)]
)
def test_a_hybrid_retriever_fuses_as_our_own_fusion(method, depth, dense):
    frame = _hybrid(dense, method=method)(TOPICS)
    topics = topics_of(list(QUERIES.values()), list(QUERIES))
    runs = [SPARSE.rank(topics), DenseSearcher(dense).rank(topics, None, depth)]
    assert frame_hits(frame) == run_hits(fuse(runs, method, 12))


def test_a_hybrid_retriever_says_where_hits_come_from(dense):
    frame = _hybrid(dense)(TOPICS)
    hits = DenseSearcher(dense).search(QUERIES['q1'], 12)
    docids = [hit.docid for hit in hits]
    for row in frame[frame['qid'] == 'q1'].itertuples():
        if pd.isna(row.rank_sparse):
            assert row.docno not in SPARSE.docids
        else:
            assert row.docno == SPARSE.docids[row.rank_sparse]
        if pd.isna(row.rank_tiny):
            assert row.docno not in docids
        else:
            assert row.docno == docids[row.rank_tiny]


def test_a_cutoff_does_not_change_what_a_hybrid_fuses(dense):
    hybrid = _hybrid(dense)
    pd.testing.assert_frame_equal((hybrid % 3).compile()(TOPICS), (hybrid % 3)(TOPICS))


def test_an_own_ranker_gives_texts(dense):
    sparse = ours.Retriever(SPARSE)
    texts = ours.PassageText(sparse)(sparse(TOPICS))['text']
    assert texts.iloc[0] == 'text of d0'


RANKS = ['rank_tiny', 'rank_sparse']
TEXT_HITS = ['qid', 'query', 'docno', 'text', 'score', 'rank']


@dataclass(frozen=True)
class Case:
    """A transformer, a frame that it takes, and the columns that it gives."""

    transformer: object
    frame: object
    columns: list


@pytest.fixture
def cases(dense, candidates, cross_encoder_folder, tiny_cedr, tiny_epic):
    repbert = ours.RepBertRetriever(dense, num_results=3)
    sparse = ours.Retriever(SPARSE)
    hybrid = ours.HybridRetriever([repbert, sparse], provenance=True)
    duobert = ours.Rerank(cross_encoder_folder('duobert'), matrix=True)
    fused = ['qid', 'query', 'docno', 'score', *RANKS, 'rank']
    with_pairs = ['qid', 'query', 'docno', 'text', 'score', 'duobert_p', 'rank']
    return [
        Case(repbert, TOPICS, HITS),
        Case(sparse, TOPICS, HITS),
        Case(hybrid, TOPICS, fused),
        Case(ours.Interleave(repbert, sparse), TOPICS, fused),
        Case(ours.Rerank(cross_encoder_folder('monobert')), candidates, TEXT_HITS),
        Case(duobert, candidates, with_pairs),
        Case(ours.Rerank(tiny_cedr('knrm')), candidates, TEXT_HITS),
        Case(ours.Rerank(tiny_epic()), candidates, TEXT_HITS),
        Case(ours.PassageText(dense), candidates.drop(columns='text'), [*HITS, 'text']),
    ]


def test_an_empty_frame_gives_one_with_the_same_columns(cases):
    for case in cases:
        assert list(case.transformer(case.frame).columns) == case.columns
        empty = case.transformer(case.frame.iloc[:0])
        assert len(empty) == 0
        assert list(empty.columns) == case.columns


def test_pyterrier_can_inspect_every_transformer(cases):
    for case in cases:
        given = list(case.frame.columns)
        assert pt.inspect.transformer_outputs(case.transformer, given) == case.columns
        assert set(pt.inspect.transformer_inputs(case.transformer)[0]) <= set(given)
        assert pt.inspect.transformer_attributes(case.transformer)


def test_a_frame_without_the_needed_columns_is_refused(cases):
    for case in cases:
        with pytest.raises(pt.validate.InputValidationError):
            case.transformer(pd.DataFrame({'nothing': []}))


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


@pytest.fixture
def lucene(dense, tmp_path):
    """A Lucene index of the passages of `dense`."""
    from pyserini_repbert.index.lucene import build_lucene_index

    build_lucene_index(open_corpus(tmp_path / 'corpus.jsonl'), tmp_path / 'lucene')
    return tmp_path / 'lucene'


@pytest.mark.jvm
def test_lucene_gives_its_own_searchers_hits(lucene):
    from pyserini_repbert.lucene import LuceneSparseSearcher

    bm25 = ours.LuceneRetriever('bm25', lucene)
    searcher = LuceneSparseSearcher(lucene)
    run = searcher.batch_search(list(QUERIES.values()), list(QUERIES), k=1000)
    assert frame_hits(bm25(TOPICS)) == run_hits(run)
    assert len(bm25(TOPICS.assign(query='zebra'))) == 0


@pytest.mark.jvm
def test_lucene_by_folder_or_technique(lucene):
    for spec in (str(lucene), f'bm25+rm3@{lucene}'):
        retriever = ours.LuceneRetriever(spec, num_results=6, threads=2)
        run = retriever.ranker.batch_search(list(QUERIES.values()), list(QUERIES), k=6)
        assert frame_hits(retriever(TOPICS)) == run_hits(run)
        assert frame_hits((retriever % 2).compile()(TOPICS)) == frame_hits((retriever % 2)(TOPICS))
    assert retriever.name == 'bm25+rm3'


@pytest.mark.jvm
def test_lucene_in_another_language(tmp_path):
    """An index without a record is English, unless its language is named."""
    from pyserini_repbert.lucene.indexer import LuceneWriter

    (tmp_path / 'german').mkdir()
    with LuceneWriter(tmp_path / 'german', language='de') as writer:
        writer.add(['{"id": "d1", "contents": "Die Häuser am Fluss"}'])
    query = TOPICS[:1].assign(query='Haus')
    assert len(ours.LuceneRetriever('bm25', tmp_path / 'german')(query)) == 0
    german = ours.LuceneRetriever('bm25', tmp_path / 'german', language='de')
    assert german(query)['docno'].tolist() == ['d1']
    assert german.language == 'de'


@pytest.mark.jvm
def test_lucene_beside_repbert(dense, lucene):
    bm25 = ours.LuceneRetriever('bm25', lucene)
    assert list(ours.PassageText(bm25)(bm25(TOPICS)).columns) == [*HITS, 'text']
    retrievers = [ours.RepBertRetriever(dense), bm25]
    hybrid = ours.HybridRetriever(retrievers, num_results=4, provenance=True)
    assert {'rank_tiny', 'rank_bm25'} < set(hybrid(TOPICS).columns)


@pytest.mark.parametrize('column', ['qid', 'query'])
def test_a_row_without_a_query_is_refused(column, dense):
    topics = TOPICS.astype(object)
    topics.loc[1, column] = None
    with pytest.raises(InputError, match=f"row 1 of the frame has no '{column}'"):
        ours.RepBertRetriever(dense)(topics)


def test_a_qid_with_two_queries_is_refused(dense):
    with pytest.raises(InputError, match="qid '1' has two queries"):
        ours.RepBertRetriever(dense)(pd.DataFrame({'qid': ['1', '1'], 'query': ['a', 'b']}))


def test_a_hit_without_a_query_is_refused():
    from pyserini_repbert.interop.pyterrier.frames import ranked_rows

    hits = _results({'1': 'abcd'}).astype(object)
    hits.loc[3, 'query'] = None
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
