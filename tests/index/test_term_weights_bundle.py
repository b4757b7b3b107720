"""The bundle of term weights: what is read is what was written, and scores are inner products."""

import numpy as np
import pytest

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode.sharding import BundleEncoding, build_bundle
from pyserini_repbert.errors import DamagedFileError, MismatchError
from pyserini_repbert.index.records import TermWeightsSettings
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.index.term_weights_writer import TermWeightsShardWriter, quantised
from pyserini_repbert.models.term_vectors import NO_TERMS, TermVector, TermVectors, complete

ATOL = {'float16': 1e-3, 'uint8': 5e-3}


def settings(vocabulary, weights='float16', prune=50, texts=False, shard_size=7):
    layout = 'blocks' if prune else 'all'
    return TermWeightsSettings(
        'tiny',
        '0' * 64,
        'official',
        vocabulary,
        '1' * 64,
        20,
        prune,
        weights,
        'float32',
        shard_size,
        texts,
        layout,
    )


def random_vectors(n, vocabulary, most=60, seed=0):
    """Of different lengths, some empty, some with all their terms close together."""
    random = np.random.default_rng(seed)
    vectors = []
    for row in range(n):
        span = vocabulary if row % 3 else min(vocabulary, 300)
        count = int(random.integers(0, min(most, span) + 1)) if row % 5 else 0
        terms = np.sort(random.choice(span, count, replace=False)).astype(np.int64)
        vectors.append(TermVector(terms, random.uniform(-0.2, 2, count).astype(np.float32)))
    return vectors


def build(folder, vectors, made):
    passages = [Passage(f'd{row}', f'text {row}') for row in range(len(vectors))]

    def encode(together):
        some = [vectors[int(passage.docid[1:])] for passage in together]
        if made.layout == 'blocks':
            return TermVectors.of(some)
        return complete(
            np.stack([vector.weights_of(np.arange(made.vocabulary)) for vector in some])
        )

    build_bundle(passages, folder, BundleEncoding(made, TermWeightsShardWriter, encode, 4))
    return TermWeightsBundle(folder)


@pytest.mark.parametrize('weights', ['float16', 'uint8'])
@pytest.mark.parametrize(
    ('vocabulary', 'prune'), [(40, 50), (300, 50), (30522, 50), (70001, 50), (300, 0)]
)
def test_reading_gives_what_was_written(tmp_path, weights, vocabulary, prune):
    vectors = random_vectors(30, vocabulary)
    bundle = build(tmp_path / 'index', vectors, settings(vocabulary, weights, prune))
    assert len(bundle) == 30 and len(bundle.shards) == 5
    random = np.random.default_rng(1)
    rows = random.permutation(30)
    terms = np.unique(
        np.concatenate(
            [random.integers(0, vocabulary, 20), vectors[1].terms[:5], vectors[4].terms[-5:]]
        )
    )
    expected = np.stack([vectors[row].weights_of(terms) for row in rows])
    np.testing.assert_allclose(bundle.weights_of(rows, terms), expected, atol=ATOL[weights])
    query = TermVector(terms, random.random(len(terms)).astype(np.float32))
    np.testing.assert_allclose(
        bundle.score(rows, query), expected @ query.weights, atol=30 * ATOL[weights]
    )
    for row in (0, 1, 13, 29):
        vector = bundle.vector(row)
        if prune:
            np.testing.assert_array_equal(vector.terms, vectors[row].terms)
            np.testing.assert_allclose(vector.weights, vectors[row].weights, atol=ATOL[weights])
        else:
            assert len(vector) == vocabulary
    lengths = []
    for _, block in bundle.vectors(4):
        lengths += [len(vector) for vector in block]
    assert lengths == [len(bundle.vector(row)) for row in range(30)]


@pytest.mark.parametrize('shard_size', [1, 7, 300])
def test_blocks_of_all_lengths_and_terms_at_every_place_are_found(tmp_path, shard_size):
    random = np.random.default_rng(0)
    vectors = []
    for count in [*range(60), 255, 256, 3]:
        terms = np.sort(random.choice(256, count, replace=False)).astype(np.int64) + 256
        vectors.append(
            TermVector(terms, random.random(count).astype(np.float16).astype(np.float32))
        )
    bundle = build(tmp_path / 'index', vectors, settings(600, prune=256, shard_size=shard_size))
    rows = np.arange(len(vectors))
    terms = np.arange(200, 600)
    expected = np.stack([vector.weights_of(terms) for vector in vectors])
    np.testing.assert_array_equal(bundle.weights_of(rows, terms), expected)


def test_empty_query_and_terms_outside_every_vector_score_zero(tmp_path):
    bundle = build(tmp_path / 'index', [TermVector.summed([1], [1.0]), NO_TERMS], settings(300))
    assert bundle.score(np.asarray([1, 0]), NO_TERMS).tolist() == [0, 0]
    assert bundle.score(
        np.asarray([1, 0]), TermVector.summed([0, 2, 299], [5.0, 1.0, 1.0])
    ).tolist() == [0, 0]
    assert (
        bundle.score(np.asarray([], dtype=np.int64), TermVector.summed([1], [1.0])).tolist() == []
    )
    assert bundle.score(np.asarray([0, 0]), TermVector.summed([1], [2.0])).tolist() == [2, 2]


def test_a_term_beyond_the_vocabulary_is_refused(tmp_path):
    bundle = build(tmp_path / 'index', [TermVector.summed([1], [1.0])], settings(300))
    with pytest.raises(MismatchError, match=r"vocabulary of 300.*'tiny'"):
        bundle.score(np.asarray([0]), TermVector.summed([300], [1.0]))


def test_a_negative_term_is_refused(tmp_path):
    bundle = build(tmp_path / 'index', [TermVector.summed([1], [1.0])], settings(300))
    with pytest.raises(MismatchError, match='term -1 was asked for'):
        bundle.weights_of(np.asarray([0]), np.asarray([5, -1]))


def test_texts_are_stored_when_asked_for(tmp_path):
    bundle = build(tmp_path / 'index', random_vectors(9, 300), settings(300, texts=True))
    assert bundle.texts(['d8', 'x', 'd0']) == ['text 8', None, 'text 0']
    assert [passage.docid for passage in bundle.passages()] == [f'd{row}' for row in range(9)]
    assert build(tmp_path / 'other', random_vectors(2, 300), settings(300)).texts(['d0']) == [None]


@pytest.fixture
def weights_file(tmp_path):
    """A file of the second shard of the bundle in `index`."""
    build(tmp_path / 'index', random_vectors(9, 300), settings(300))
    return tmp_path / 'index' / 'shard-00001' / 'weights.npy'


def test_a_damaged_shard_is_named(weights_file, tmp_path):
    whole = weights_file.read_bytes()
    weights_file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(DamagedFileError, match=r'shard-00001/weights.npy is damaged'):
        TermWeightsBundle(tmp_path / 'index')


def test_a_file_that_was_cut_is_refused_without_its_checksum(weights_file, tmp_path):
    weights_file.write_bytes(weights_file.read_bytes()[:-2])
    with pytest.raises(DamagedFileError, match='build the index again'):
        TermWeightsBundle(tmp_path / 'index', verify=False)


def test_a_missing_file_is_named(weights_file, tmp_path):
    weights_file.unlink()
    with pytest.raises(DamagedFileError, match='missing'):
        TermWeightsBundle(tmp_path / 'index')


def test_quantised_weights_keep_their_ends_and_are_off_by_half_a_step():
    vectors = TermVectors.of(
        [TermVector.summed([0, 1, 2], [1.0, 2.0, 1.3]), NO_TERMS, TermVector.summed([9], [0.7])]
    )
    levels, scales = quantised(vectors)
    assert levels.tolist() == [0, 255, 76, 0]
    np.testing.assert_allclose(scales, [[1, 1 / 255], [0, 0], [0.7, 0]], rtol=1e-6)


def test_weights_that_float16_cannot_hold_are_refused(tmp_path):
    with pytest.raises(DamagedFileError, match="weight of passage 'd1' is not finite in float16"):
        build(
            tmp_path / 'index',
            [TermVector.summed([1], [1.0]), TermVector.summed([2], [1e6])],
            settings(300),
        )
    assert not (tmp_path / 'index' / 'manifest.json').exists()
    assert (
        len(
            build(
                tmp_path / 'other', [TermVector.summed([2], [1e6])], settings(300, 'uint8')
            ).vector(0)
        )
        == 1
    )


@pytest.mark.parametrize(('weights', 'most'), [('float16', 3994), ('uint8', 3100)])
def test_bytes_a_passage_at_1000_terms(tmp_path, weights, most):
    random = np.random.default_rng(0)
    vectors = [
        TermVector(
            np.sort(random.choice(30522, 1000, replace=False)),
            random.random(1000).astype(np.float32),
        )
        for _ in range(100)
    ]
    build(tmp_path / 'index', vectors, settings(30522, weights, 1000, shard_size=100))
    size = sum(path.stat().st_size for path in (tmp_path / 'index').rglob('*') if path.is_file())
    assert size / 100 <= most


@pytest.mark.parametrize(
    ('prune', 'weights', 'names'),
    [
        (50, 'float16', ['blocks.npy', 'offsets.npy', 'terms.npy', 'weights.npy']),
        (50, 'uint8', ['blocks.npy', 'offsets.npy', 'scales.npy', 'terms.npy', 'weights.npy']),
        (0, 'float16', ['weights.npy']),
    ],
)
def test_files_of_a_shard_have_the_names_of_the_format(prune, weights, names, tmp_path):
    build(tmp_path / 'index', random_vectors(5, 300), settings(300, weights, prune))
    arrays = sorted(path.name for path in (tmp_path / 'index/shard-00000').glob('*.npy'))
    assert arrays == names
