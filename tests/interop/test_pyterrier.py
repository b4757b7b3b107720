"""PyTerrier's interface: the same scores as our own, frames in and frames out."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import pyserini_repbert.interop.pyterrier as ours
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.errors import InputError
from pyserini_repbert.formats.passages import Passage
from pyserini_repbert.fusion import fuse, interleave
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.rerank import CedrReranker, DuoBertReranker, EpicReranker, MonoBertReranker
from pyserini_repbert.search import RepBertSearcher

pt = pytest.importorskip('pyterrier')
pd = pytest.importorskip('pandas')

QUERIES = {'q1': 'cat sat mat', 'q2': 'red fish sea', 'ä3': 'old tree'}
TOPICS = pd.DataFrame(list(QUERIES.items()), columns=['qid', 'query'])
HITS = ['qid', 'query', 'docno', 'score', 'rank']


@pytest.fixture
def bundle(tiny_checkpoint, corpus_file, tmp_path):
    corpus = open_corpus(corpus_file(30))
    encode_corpus(corpus, RepBertDocumentEncoder(tiny_checkpoint()), tmp_path / 'dense', store_text=True, shard_size=13)
    return tmp_path / 'dense'


@pytest.fixture
def cross_encoder(tiny_checkpoint):
    def make(system):
        import torch
        from safetensors.torch import save_file

        from pyserini_repbert.models.bert import BertConfig
        from pyserini_repbert.models.cross_encoder import CrossEncoder

        ranking = {'system': system, 'max_query_length': 8, 'max_length': 48}
        folder = tiny_checkpoint(system, ranking=ranking, type_vocab_size=3 if system == 'duobert' else 2)
        values = json.loads((folder / 'config.json').read_text(encoding='utf-8'))
        torch.manual_seed(0)
        save_file(CrossEncoder(BertConfig.from_dict(values), 2).state_dict(), folder / 'model.safetensors')
        return folder

    return make


@pytest.fixture
def candidates(bundle):
    retriever = ours.RepBertRetriever(bundle, num_results=7)
    return (retriever >> ours.PassageText(retriever))(TOPICS)


def frame_of(hits):
    """{qid: [(docno, score)]} in the order of rank."""
    ordered = hits.sort_values(['qid', 'rank'], kind='stable')
    return {qid: list(zip(own['docno'], own['score'], strict=True)) for qid, own in ordered.groupby('qid')}


def pairs(run):
    return {qid: [(hit.docid, hit.score) for hit in hits] for qid, hits in run.items()}


def test_importing_the_package_leaves_pyterrier_alone():
    code = 'import sys, pyserini_repbert, pyserini_repbert.interop.pyterrier; print("pyterrier" in sys.modules)'
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == 'False'


def test_a_missing_package_names_the_extra():
    code = (
        'import sys; sys.modules["pyterrier"] = None\n'
        'try:\n    from pyserini_repbert.interop.pyterrier import MonoBert\n'
        'except Exception as error:\n    print(type(error).__name__, error)'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith('MissingDependencyError ')
    assert "pip install 'pyserini-repbert[pyterrier]'" in done.stdout
    assert done.stdout.count('\n') == 1


def test_repbert_gives_its_own_searchers_hits(bundle):
    found = ours.RepBertRetriever(bundle, num_results=5)(TOPICS.assign(user='u'))
    assert list(found.columns) == ['qid', 'query', 'user', 'docno', 'score', 'rank']
    assert frame_of(found) == pairs(RepBertSearcher(bundle).batch_search(list(QUERIES.values()), list(QUERIES), k=5))
    assert found['qid'].tolist() == [qid for qid in QUERIES for _ in range(5)]
    assert found['rank'].tolist() == list(range(5)) * 3
    assert found['query'].tolist() == [query for query in QUERIES.values() for _ in range(5)]


def test_more_hits_than_passages_and_an_open_searcher(bundle):
    searcher = RepBertSearcher(bundle)
    assert len(ours.RepBertRetriever(searcher)(TOPICS)) == 3 * 30
    with pytest.raises(InputError, match='leave it out'):
        ours.RepBertRetriever(searcher, 'repbert')


def test_a_cutoff_is_fused_and_never_loosened(bundle):
    retriever = ours.RepBertRetriever(bundle, num_results=20)
    assert (retriever % 4).compile().num_results == 4
    assert (retriever % 50).compile().num_results == 20
    pd.testing.assert_frame_equal((retriever % 4).compile()(TOPICS), (retriever % 4)(TOPICS))


def test_text_by_docno_from_every_place(bundle, tmp_path):
    frame = pd.DataFrame({'docno': ['d3', 'd0', 'd3', 'nothing']}, index=[5, 5, 1, 0])
    known = {passage.docid: passage.text for passage in open_corpus(tmp_path / 'corpus.jsonl')}
    for source in (
        ours.PassageText(bundle),
        ours.PassageText(corpus=tmp_path / 'corpus.jsonl'),
        ours.PassageText(ours.RepBertRetriever(bundle)),
    ):
        out = source(frame)
        assert out['text'].tolist() == [known['d3'], known['d0'], known['d3'], None]
        assert out.index.tolist() == [5, 5, 1, 0]
    assert list(frame.columns) == ['docno']
    with pytest.raises(InputError, match='one place'):
        ours.PassageText(bundle, corpus=tmp_path / 'corpus.jsonl')


def together(reranker, frame):
    """Our own reranker's answer to all queries at once: batches of the model may decide over the last digit."""
    groups = [(key, rows.sort_values('rank')) for key, rows in frame.groupby(['qid', 'query'], sort=False)]
    lists = [list(map(Candidate, rows['docno'], rows['score'], rows['text'])) for _, rows in groups]
    found = reranker.rerank_many([query for (_, query), _ in groups], lists)
    return pairs({qid: hits for ((qid, _), _), hits in zip(groups, found, strict=True)})


def test_monobert_gives_its_own_scores_and_keeps_columns(candidates, cross_encoder):
    folder = cross_encoder('monobert')
    shuffled = candidates.assign(note=candidates['docno']).sample(frac=1, random_state=1)
    before = shuffled.copy()
    found = ours.MonoBert(folder, token_budget=64)(shuffled)
    assert frame_of(found) == together(MonoBertReranker(folder, token_budget=64), shuffled)
    assert frame_of(ours.MonoBert(folder)(candidates)) == together(MonoBertReranker(folder), candidates)
    assert (found['note'] == found['docno']).all()
    pd.testing.assert_frame_equal(shuffled, before)


def test_equal_scores_keep_the_order_of_the_stage_before(cross_encoder):
    frame = pd.DataFrame(
        {'qid': '1', 'query': 'cat', 'docno': ['a', 'b', 'c'], 'text': 'dog ran', 'rank': [2, 0, 1], 'score': 0.0}
    )
    monobert = ours.MonoBert(cross_encoder('monobert'))
    assert monobert(frame)['docno'].tolist() == ['b', 'c', 'a']
    assert monobert(frame.drop(columns=['rank', 'score']))['docno'].tolist() == ['a', 'b', 'c']
    with pytest.raises(InputError, match="'c' has no text"):
        monobert(frame.assign(text=['cat', 'cat', None]))
    with pytest.raises(InputError, match="'a' comes twice"):
        monobert(frame.assign(docno='a'))


@pytest.mark.parametrize('method', ['sum', 'binary', 'min', 'max', 'sample'])
def test_duobert_by_every_aggregation(candidates, cross_encoder, method):
    settings = {'samples': 3, 'seed': 7} if method == 'sample' else {}
    folder = cross_encoder('duobert')
    own = DuoBertReranker(folder, method=method, **settings)
    found = ours.DuoBert(folder, method, **settings)(candidates)
    assert frame_of(found) == together(own, candidates)
    with_matrix = ours.DuoBert(folder, method, matrix=True, **settings)(candidates)
    pd.testing.assert_frame_equal(with_matrix.drop(columns='duobert_p'), found)
    for (_, query), rows in with_matrix.groupby(['qid', 'query']):
        matrix = np.stack(rows.sort_values('rank')['duobert_p'].tolist())
        assert matrix.shape == (7, 7)
        assert np.isnan(np.diag(matrix)).all()
        assert (~np.isnan(matrix)).sum() == own.inferences(7)
        if method == 'sum':
            assert np.nansum(matrix, axis=1) == pytest.approx(rows['score'].to_numpy())
        texts = rows['text'].tolist()
        if method == 'max':  # p of one pair, from a model call of its own
            ranking = Ranking(['i', 'j'], [0, 0], texts[:2])
            difference = own.pair_differences([query], [ranking])[0][0, 1]
            assert matrix[0, 1] == pytest.approx(1 / (1 + np.exp(-difference)), abs=1e-6)


def test_cedr_gives_its_own_scores(candidates, tiny_cedr):
    folder = tiny_cedr('knrm')
    assert frame_of(ours.Cedr(folder)(candidates)) == together(CedrReranker(folder), candidates)


def test_epic_from_an_index_and_on_the_fly(candidates, tiny_epic, tmp_path):
    folder, documents = tiny_epic(), tmp_path / 'corpus.jsonl'
    passages = [{'docno': passage.docid, 'text': passage.text} for passage in open_corpus(documents)]
    index = ours.EpicIndexer(tmp_path / 'epic-index', folder, prune=5).index(iter(passages))
    found = ours.Epic(folder, index)(candidates.drop(columns='text'))
    assert frame_of(found) == together(EpicReranker(folder, index=index), candidates)
    assert frame_of(ours.Epic(folder)(candidates)) == together(EpicReranker(folder), candidates)
    with pytest.raises(pt.validate.InputValidationError):
        ours.Epic(folder)(candidates.drop(columns='text'))


def test_an_indexer_writes_what_our_own_encoding_writes(bundle, tiny_checkpoint, tmp_path):
    checkpoint = tiny_checkpoint('again')
    passages = list(open_corpus(tmp_path / 'corpus.jsonl'))
    documents = ({'docno': passage.docid, 'text': passage.text} for passage in passages)
    indexer = ours.RepBertIndexer(tmp_path / 'made', checkpoint, shard_size=13)
    assert pt.inspect.indexer_inputs(indexer) == [['docno', 'text']]
    index = indexer.index(documents)
    for shard in sorted((bundle).glob('shard-*')):
        for file in ('vectors.npy', 'docids.txt', 'texts.jsonl'):
            assert (index / shard.name / file).read_bytes() == (shard / file).read_bytes()
    pd.testing.assert_frame_equal(ours.RepBertRetriever(index)(TOPICS), ours.RepBertRetriever(bundle)(TOPICS))


@pytest.mark.parametrize(
    ('documents', 'message'),
    [
        ([{'docno': 'a', 'text': 'cat'}, {'docno': 'a', 'text': 'dog'}], "document 2: docid 'a' was used before"),
        ([{'docno': 'a', 'body': 'cat'}], "document 1: there is no field 'text'"),
        ([{'docno': 'a b', 'text': 'cat'}], 'document 1: docid'),
        ([], 'no passages'),
    ],
)
def test_documents_that_cannot_be_indexed(documents, message, tiny_checkpoint, tmp_path):
    with pytest.raises(InputError, match=message):
        ours.RepBertIndexer(tmp_path / 'made', tiny_checkpoint()).index(documents)
    assert not (tmp_path / 'made').exists()


def results(*lists, **columns):
    rows = [(qid, docno, float(-rank), rank) for qid, docnos in lists for rank, docno in enumerate(docnos)]
    return pd.DataFrame(rows, columns=['qid', 'docno', 'score', 'rank']).assign(query='cat', **columns)


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
    cut = (ours.Interleave(*parts) % 2).compile()
    assert cut.num_results == 2
    assert cut(topics)['docno'].tolist() == (ours.Interleave(*parts) % 2)(topics)['docno'].tolist()
    for refused in ([], ['a', 'a', 'b'], ['a']):
        with pytest.raises(InputError, match='name of its own'):
            ours.Interleave(*parts, names=refused)


class Stub:
    """A searcher with given rankings."""

    def __init__(self, docids):
        self.docids = docids

    def rankings(self, queries, qids, k, threads=1):
        return {
            qid: Ranking(self.docids[:k], [1 / (place + 1) for place in range(len(self.docids[:k]))]) for qid in qids
        }

    def texts(self, docids):
        return [f'text of {docid}' for docid in docids]


@pytest.mark.parametrize('method', ['interleave', 'rrf', 'interpolation'])
def test_a_hybrid_retriever_fuses_as_our_own_fusion(bundle, method):
    repbert, sparse = ours.RepBertRetriever(bundle), ours.LuceneRetriever(Stub([f'd{n}' for n in range(9)]))
    hybrid = ours.HybridRetriever([sparse, repbert], method, num_results=12, provenance=True)
    found = hybrid(TOPICS)
    runs = [Stub([f'd{n}' for n in range(9)]).rankings(None, list(QUERIES), 12)]
    runs.append(RepBertSearcher(bundle).rankings(list(QUERIES.values()), list(QUERIES), 1000))
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


def test_hybrid_settings_that_cannot_be(bundle):
    repbert = ours.RepBertRetriever(bundle)
    with pytest.raises(InputError, match='exactly two'):
        ours.HybridRetriever([repbert], 'interpolation')
    with pytest.raises(InputError, match='names that differ'):
        ours.HybridRetriever([repbert, repbert], provenance=True)
    hybrid = ours.HybridRetriever([repbert, ours.LuceneRetriever(Stub(['d1']))])
    with pytest.raises(InputError, match='retrievers themselves'):
        ours.HybridRetriever([hybrid, repbert])


def test_empty_frames_and_what_inspection_sees(bundle, candidates, cross_encoder, tiny_cedr, tiny_epic):
    repbert = ours.RepBertRetriever(bundle, num_results=3)
    stub = ours.LuceneRetriever(Stub(['d1']))
    hybrid = ours.HybridRetriever([repbert, stub], provenance=True)
    ranks = ['rank_tiny', 'rank_sparse']
    seen = [
        (repbert, TOPICS, HITS),
        (stub, TOPICS, HITS),
        (hybrid, TOPICS, ['qid', 'query', 'docno', 'score', *ranks, 'rank']),
        (ours.Interleave(repbert, stub), TOPICS, ['qid', 'query', 'docno', 'score', *ranks, 'rank']),
        (ours.MonoBert(cross_encoder('monobert')), candidates, ['qid', 'query', 'docno', 'text', 'score', 'rank']),
        (
            ours.DuoBert(cross_encoder('duobert'), matrix=True),
            candidates,
            ['qid', 'query', 'docno', 'text', 'score', 'duobert_p', 'rank'],
        ),
        (ours.Cedr(tiny_cedr('knrm')), candidates, ['qid', 'query', 'docno', 'text', 'score', 'rank']),
        (ours.Epic(tiny_epic()), candidates, ['qid', 'query', 'docno', 'text', 'score', 'rank']),
        (ours.PassageText(bundle), candidates.drop(columns='text'), [*HITS, 'text']),
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


def test_a_pipeline_in_an_experiment_without_java(bundle, cross_encoder):
    repbert = ours.RepBertRetriever(bundle, num_results=10)
    pipeline = repbert % 5 >> ours.PassageText(bundle) >> ours.MonoBert(cross_encoder('monobert'))
    best = repbert(TOPICS).query('rank == 0')
    qrels = pd.DataFrame({'qid': best['qid'], 'docno': best['docno'], 'label': 1})
    table = pt.Experiment([repbert, pipeline], TOPICS, qrels, ['recip_rank'], names=['repbert', 'mono'], batch_size=2)
    assert table['recip_rank'].tolist()[0] == 1
    assert not pt.java.started()


@pytest.mark.parametrize('dtype', ['float32', 'float16'])
def test_a_dense_bundle_as_a_flex_index(dtype, tiny_checkpoint, tmp_path):
    """More docids than npids looks at before it chooses how to write them (256), of several forms."""
    pytest.importorskip('npids')
    docids = [*(f'd{n}' for n in range(300)), 'ä-1', '0007', '7', 'x' * 40, *(f'{n}' for n in range(500, 540))]
    passages = [Passage(docid, f'cat {docid}') for docid in docids]
    encode_corpus(passages, RepBertDocumentEncoder(tiny_checkpoint()), tmp_path / 'in', dtype=dtype, shard_size=200)
    bundle = DenseBundle(tmp_path / 'in')
    ours.export_flex(bundle, tmp_path / 'flex')
    ours.export_flex(bundle, tmp_path / 'again')
    for file in ('vecs.f4', 'docnos.npids', 'pt_meta.json'):
        assert (tmp_path / 'flex' / file).read_bytes() == (tmp_path / 'again' / file).read_bytes()
    stored = np.concatenate([vectors for _, vectors in bundle.blocks(100)]).astype(np.float32)
    vectors = np.fromfile(tmp_path / 'flex' / 'vecs.f4', dtype=np.float32)
    assert (vectors.reshape(stored.shape) == stored).all()
    with pytest.raises(InputError, match='exists'):
        ours.export_flex(bundle, tmp_path / 'flex')
    pyterrier_dr = pytest.importorskip('pyterrier_dr')
    index = pyterrier_dr.FlexIndex(str(tmp_path / 'flex'), verbose=False)
    assert [item['docno'] for item in index.get_corpus_iter()] == docids
    searcher = RepBertSearcher(tmp_path / 'in')
    topics = TOPICS.assign(query_vec=list(searcher.encode(list(QUERIES.values()))))
    theirs = index.np_retriever(num_results=len(docids))(topics)
    own = searcher.batch_search(list(QUERIES.values()), list(QUERIES), k=500)
    for qid, hits in own.items():
        found = theirs[theirs['qid'] == qid]
        scores = dict(zip(found['docno'], found['score'], strict=True))
        assert scores == pytest.approx({hit.docid: hit.score for hit in hits}, rel=1e-5)


@pytest.mark.jvm
def test_lucene_gives_its_own_searchers_hits(bundle, tmp_path):
    from pyserini_repbert.index.lucene import build_lucene_index
    from pyserini_repbert.pyserini_bridge import LuceneSparseSearcher

    build_lucene_index(open_corpus(tmp_path / 'corpus.jsonl'), tmp_path / 'lucene')
    for spec in (str(tmp_path / 'lucene'), f'bm25+rm3@{tmp_path / "lucene"}'):
        retriever = ours.LuceneRetriever(spec, num_results=6, threads=2)
        own = retriever.stage.searchers[0].batch_search(list(QUERIES.values()), list(QUERIES), k=6)
        assert frame_of(retriever(TOPICS)) == {qid: hits for qid, hits in pairs(own).items() if hits}
        assert frame_of((retriever % 2).compile()(TOPICS)) == frame_of((retriever % 2)(TOPICS))
    assert retriever.name == 'bm25+rm3'
    bm25 = ours.LuceneRetriever('bm25', tmp_path / 'lucene')
    expected = LuceneSparseSearcher(tmp_path / 'lucene').batch_search(list(QUERIES.values()), list(QUERIES), k=1000)
    assert frame_of(bm25(TOPICS)) == {qid: hits for qid, hits in pairs(expected).items() if hits}
    assert len(bm25(TOPICS.assign(query='zebra'))) == 0
    assert list(ours.PassageText(bm25)(bm25(TOPICS)).columns) == [*HITS, 'text']
    hybrid = ours.HybridRetriever([ours.RepBertRetriever(bundle), bm25], num_results=4, provenance=True)
    assert {'rank_tiny', 'rank_bm25'} < set(hybrid(TOPICS).columns)
