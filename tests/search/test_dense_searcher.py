import json
import math
import shutil

import numpy as np
import pytest
from folders import change_model

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder, encode_corpus
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.index import DenseBundle, FaissFolder, export_faiss
from pyserini_repbert.index.sample import mean_vector, sample_positions
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.search import DenseSearcher


@pytest.fixture
def checkpoint(tiny_checkpoint):
    return tiny_checkpoint()


@pytest.fixture
def index(checkpoint, corpus_file, tmp_path):
    folder = tmp_path / 'index'
    encode_corpus(
        open_corpus(corpus_file(40)),
        RepBertDocumentEncoder(checkpoint),
        folder,
        shard_size=16,
        store_text=True,
    )
    return folder


def test_hits_are_the_greatest_inner_products(index, checkpoint, corpus_file):
    searcher = DenseSearcher(index)
    passages = list(open_corpus(corpus_file(40)))
    vectors = RepBertDocumentEncoder(checkpoint).encode([passage.text for passage in passages])
    scores = vectors @ RepBertQueryEncoder(checkpoint).encode('the red cat')
    hits = searcher.search('the red cat', 7)
    assert [hit.docid for hit in hits] == [passages[row].docid for row in np.argsort(-scores)[:7]]
    np.testing.assert_allclose([hit.score for hit in hits], np.sort(scores)[::-1][:7], rtol=1e-5)
    assert searcher.texts([hits[0].docid]) == [passages[np.argmax(scores)].text]
    assert len(searcher) == 40 and len(searcher.search('cat')) == 10
    assert len(searcher.search('cat', k=1000)) == 40


def test_a_ranking_knows_the_mean_score_of_any_passage(index, checkpoint, tmp_path):
    searcher = DenseSearcher(index)
    vectors = DenseBundle(index).vectors(np.arange(40))
    query = searcher.encode(['the red cat'])
    (ranking,) = searcher.of_vectors(query, 5)
    products = vectors @ query[0]
    assert ranking.background.score == pytest.approx(float(np.mean(products)), rel=1e-5)
    # The best of forty products is some deviations better than their mean by chance.
    chance = 1.25 * math.sqrt(2 * math.log(40)) * float(np.std(products))
    assert ranking.background.chance == pytest.approx(chance, rel=1e-4)
    # Neither its depth nor what is made of its hits changes that.
    for other in (
        searcher.of_vectors(query, 1)[0],
        ranking[:2],
        ranking.without(ranking.docids[0]),
    ):
        assert other.background == ranking.background
    assert ranking.with_texts({}).without_texts().background == ranking.background
    # The vectors of a FAISS folder are not at hand.
    export_faiss(DenseBundle(index), tmp_path / 'faiss')
    (unknown,) = DenseSearcher(tmp_path / 'faiss', checkpoint).of_vectors(query, 5)
    assert not unknown.background.is_known and unknown == ranking


def test_the_sample_of_many_vectors_is_spread_over_all():
    positions = sample_positions(1000)
    assert len(positions) == len(set(positions.tolist())) == 256
    assert (positions[0], positions[-1]) == (0, 999)
    assert np.diff(positions).max() <= 4
    assert sample_positions(3).tolist() == [0, 1, 2]
    assert sample_positions(0).tolist() == []
    assert mean_vector(np.empty((0, 2), np.float32)).tolist() == [0, 0]


def test_batches_give_what_single_queries_give(index):
    searcher = DenseSearcher(index)
    queries = ['the cat', 'a dog ran', 'zzz', 'the cat']
    found = searcher.batch_search(queries, ['q1', 'q2', 'q3', 'q4'], 5, threads=2)
    assert list(found) == ['q1', 'q2', 'q3', 'q4']
    for query, hits in zip(queries, found.values(), strict=True):
        alone = searcher.search(query, 5)
        assert [hit.docid for hit in hits] == [hit.docid for hit in alone]
        np.testing.assert_allclose(
            [hit.score for hit in hits], [hit.score for hit in alone], rtol=1e-5
        )
    vectors = searcher.encode(queries)
    assert searcher.batch_search(vectors, list('abcd'), 5)['b'][0].docid == found['q2'][0].docid
    assert searcher.search(vectors[1], 5)[0].docid == found['q2'][0].docid
    assert searcher.batch_search([], [], 5) == {}


def test_ties_go_by_docid_also_at_the_cut(checkpoint, tmp_path):
    names = ['b', 'a10', 'c', 'a9', 'a']
    passages = [Passage('z', 'the sun'), *(Passage(name, 'the cat sat') for name in names)]
    encode_corpus(passages, RepBertDocumentEncoder(checkpoint), tmp_path / 'index')
    export_faiss(DenseBundle(tmp_path / 'index'), tmp_path / 'faiss')
    query = DenseBundle(tmp_path / 'index').shards[0].vectors[1].copy()
    for searcher in (
        DenseSearcher(tmp_path / 'index'),
        DenseSearcher(tmp_path / 'faiss', checkpoint),
    ):
        for k in (1, 2, 3, 5, 6):
            assert [hit.docid for hit in searcher.search(query, k)] == [*sorted(names), 'z'][:k]


@pytest.mark.parametrize('docids', [['b', 'a'], ['a', 'b'], ['z', 'b', 'a', 'y'], ['c', 'b', 'a']])
def test_small_ties_go_by_docid(docids, checkpoint, tmp_path):
    """Two tie, at the end of the list and within it."""
    passages = [
        Passage(docid, 'the cat sat' if docid in 'ab' else f'the {docid} sun moon')
        for docid in docids
    ]
    encode_corpus(
        passages, RepBertDocumentEncoder(checkpoint), tmp_path / 'index', token_budget=1
    )  # equal texts tie
    vectors = DenseBundle(tmp_path / 'index').shards[0].vectors
    searcher = DenseSearcher(tmp_path / 'index')
    for query in (vectors[docids.index('a')].copy(), -vectors[docids.index('a')]):
        hits = searcher.search(query, len(docids))
        tied = [hit for hit in hits if hit.docid in 'ab']
        assert tied[0].score == tied[1].score
        assert [hit.docid for hit in tied] == ['a', 'b']
    assert [hit.docid for hit in searcher.search(vectors[docids.index('a')].copy(), 1)] == ['a']


def test_a_faiss_folder_names_no_encoder(index, checkpoint, tmp_path, caplog):
    export_faiss(DenseBundle(index), tmp_path / 'faiss')
    DenseSearcher(index, checkpoint)
    assert not caplog.records
    DenseSearcher(tmp_path / 'faiss', checkpoint)
    (record,) = caplog.records
    assert 'faiss does not name its encoder' in record.getMessage()
    assert str(checkpoint) in record.getMessage()


def test_faiss_gives_the_same_answers(index, checkpoint, tmp_path):
    done = []
    export_faiss(DenseBundle(index), tmp_path / 'faiss', done.append)
    assert sum(done) == 40
    ours = DenseSearcher(index)
    theirs = DenseSearcher(tmp_path / 'faiss', checkpoint)
    assert len(theirs) == 40 and theirs.texts(['d1']) == [None]
    for k in (1, 10, 100):
        for query in ('the cat sat', 'zzz', 'moon'):
            left = ours.search(query, k)
            right = theirs.search(query, k)
            assert [hit.docid for hit in left] == [hit.docid for hit in right]
            np.testing.assert_allclose(
                [hit.score for hit in left], [hit.score for hit in right], rtol=1e-5, atol=1e-5
            )
    with pytest.raises(InputError, match='faiss exists already: overwrite it'):
        export_faiss(DenseBundle(index), tmp_path / 'faiss')
    export_faiss(DenseBundle(index), tmp_path / 'faiss', overwrite=True)
    assert len(FaissFolder(tmp_path / 'faiss')) == 40
    with pytest.raises(InputError, match='is not a FAISS index'):
        export_faiss(DenseBundle(index), index, overwrite=True)


def test_faiss_folders_are_checked(index, checkpoint, tmp_path):
    export_faiss(DenseBundle(index), tmp_path / 'faiss')
    with pytest.raises(InputError, match='does not name its encoder'):
        DenseSearcher(tmp_path / 'faiss')
    (tmp_path / 'faiss' / 'docid').write_text('d0\n')
    with pytest.raises(DamagedFileError, match='faiss/docid is damaged'):
        DenseSearcher(tmp_path / 'faiss', checkpoint)
    (tmp_path / 'faiss' / 'sha256sums').unlink()
    with pytest.raises(DamagedFileError, match='40 vectors but 1 docids'):
        FaissFolder(tmp_path / 'faiss')
    (tmp_path / 'faiss' / 'index').write_bytes(b'nonsense')
    with pytest.raises(DamagedFileError, match='is not a FAISS index'):
        DenseSearcher(tmp_path / 'faiss', checkpoint)


def test_another_encoder_is_refused(index, tiny_checkpoint):
    with pytest.raises(MismatchError, match='other weights'):
        DenseSearcher(index, tiny_checkpoint('other', seed=5))
    with pytest.raises(
        MismatchError, match='index has dimension 16, encoder .* gives 8: pass the encoder'
    ):
        DenseSearcher(index, tiny_checkpoint('small', hidden_size=8))


@pytest.mark.parametrize('part', ['configuration', 'tokenizer'])
def test_a_checkpoint_that_changed_under_the_same_weights_is_refused(index, checkpoint, part):
    change_model(checkpoint, part)
    with pytest.raises(
        MismatchError, match=f'was built with other {part} than encoder .*: restore its files'
    ):
        DenseSearcher(index)


def test_names_and_versions_in_a_config_may_change(index, checkpoint):
    path = checkpoint / 'config.json'
    path.write_text(
        json.dumps(
            json.loads(path.read_text()) | {'transformers_version': '9', '_name_or_path': 'x'}
        )
    )
    assert len(DenseSearcher(index).search('cat', 3)) == 3


@pytest.mark.parametrize(
    'damage', ['byte', 'missing', 'shape', 'lines', 'manifest', 'version', 'count']
)
def test_a_damaged_index_is_an_error(index, damage):
    shard = index / 'shard-00001'
    manifest = json.loads((index / 'manifest.json').read_text())
    if damage == 'byte':
        content = bytearray((shard / 'vectors.npy').read_bytes())
        content[-1] ^= 1
        (shard / 'vectors.npy').write_bytes(content)
    elif damage == 'missing':
        (shard / 'docids.txt').unlink()
    elif damage == 'shape':
        shutil.copyfile(index / 'shard-00002' / 'vectors.npy', shard / 'vectors.npy')
    elif damage == 'lines':
        (shard / 'docids.txt').write_text('d1\n')
    elif damage == 'manifest':
        (index / 'manifest.json').write_text('{"settings": ')
    else:
        manifest |= {'format_version': 99} if damage == 'version' else {'count': 41}
        (index / 'manifest.json').write_text(json.dumps(manifest))
    with pytest.raises(DamagedFileError) as error:
        DenseSearcher(index)
    assert '\n' not in str(error.value)
    if damage == 'shape':
        with pytest.raises(DamagedFileError):
            DenseBundle(index, verify=False)
    if damage == 'lines':  # opening reads no docids
        with pytest.raises(DamagedFileError):
            DenseBundle(index, verify=False).rows(['d1'])


def test_damage_after_a_first_look_is_noticed(index):
    DenseSearcher(index)
    content = bytearray((index / 'shard-00000' / 'texts.jsonl').read_bytes())
    content[10] ^= 1
    (index / 'shard-00000' / 'texts.jsonl').write_bytes(content)
    with pytest.raises(DamagedFileError, match='sha256'):
        DenseSearcher(index)


def test_bad_calls_are_errors(index, tmp_path):
    searcher = DenseSearcher(index)
    with pytest.raises(InputError, match='k=0'):
        searcher.search('cat', 0)
    with pytest.raises(MismatchError, match=r'shape \(1, 3\) were given, index .* takes'):
        searcher.search(np.ones(3, np.float32))
    with pytest.raises(InputError, match='not finite'):
        searcher.search(np.full(searcher.dimension, np.nan, np.float32))
    for threads in (0, 100_000):
        with pytest.raises(InputError, match=f'threads={threads}'):
            searcher.batch_search(['a'], ['1'], threads=threads)
    for other in (('1', 'cat'), None, 3):
        with pytest.raises(InputError, match='a text was expected'):
            searcher.batch_search([other], ['1'])
    with pytest.raises(MismatchError, match=r'shape \(2, 3\)'):
        searcher.batch_search(np.ones((2, 3), np.float32), ['1', '2'])
    with pytest.raises(InputError, match="qid '1' was given twice"):
        searcher.batch_search(['a', 'b'], ['1', '1'])
    with pytest.raises(InputError, match='not an index folder'):
        DenseSearcher(tmp_path / 'nowhere')
    with pytest.raises(InputError, match='cuda:77'):
        DenseSearcher(index, device='cuda:77')


def test_queries_are_encoded_together(index, monkeypatch):
    searcher = DenseSearcher(index)
    calls = []

    def encode_batch(queries):
        calls.append(list(queries))
        return np.ones((len(queries), searcher.dimension), np.float32)

    monkeypatch.setattr(searcher.query_encoder, 'encode_batch', encode_batch)
    assert searcher.encode(['a cat', 'a dog']).tolist() == [[1.0] * searcher.dimension] * 2
    assert calls == [['a cat', 'a dog']]
