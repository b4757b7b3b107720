"""Bundles whose vectors are stored in fewer bytes, and the record of what they lose."""

import json
from dataclasses import replace

import numpy as np
import pytest
from folders import tree
from vector_bundles import DIMENSION, RowEncoder, clustered, write_bundle

from pyserini_repbert.commands import command, encode, index
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.encode.parts import finish_parts
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.index import DenseBundle
from pyserini_repbert.index.check import check_index
from pyserini_repbert.index.manifest import read_manifest
from pyserini_repbert.index.overlap import measure_overlap
from pyserini_repbert.index.quantized import Int8Vectors, quantize
from pyserini_repbert.index.records import DenseSettings, Overlap
from pyserini_repbert.indexes.dense.on_ray import SearchShards
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.pipeline.ray_parts import EncodeParts
from pyserini_repbert.search import DenseSearcher
from pyserini_repbert.search.exact import ArrayVectors, ExactIndex

VECTORS = clustered(1000)
# What a float32 search has of the vectors in int8.
IN_INT8 = np.asarray(quantize(VECTORS))


@pytest.fixture(scope='module')
def bundle(tmp_path_factory):
    """A bundle of the vectors in int8, in shards of 400."""
    folder = tmp_path_factory.mktemp('int8') / 'index'
    return write_bundle(folder, VECTORS, dtype='int8', store_text=True)


def expected_hits(query, k):
    scores = IN_INT8 @ query
    order = np.lexsort((np.array([f'd{row}' for row in range(len(scores))]), -scores))[:k]
    return [(f'd{row}', scores[row]) for row in order]


def test_a_bundle_in_int8_holds_numbers_and_scales(bundle):
    opened = DenseBundle(bundle)
    assert opened.settings.dtype == 'int8'
    assert [len(shard.docids) for shard in opened.shards] == [400, 400, 200]
    for shard in opened.shards:
        assert isinstance(shard.vectors, Int8Vectors)
        assert np.load(shard.folder / 'vectors.npy').dtype == np.int8
        assert np.load(shard.folder / 'scales.npy').dtype == np.float32
        # the copy of the model's vectors is gone
        assert not (shard.folder / 'whole.npy').exists()
    rows = np.array([999, 0, 400])
    np.testing.assert_array_equal(opened.vectors(rows), IN_INT8[rows])
    assert check_index(bundle).endswith(f"1000 passages x {DIMENSION} int8, encoder 'rows'")


def test_search_is_that_of_the_stored_values(bundle):
    searcher = DenseSearcher(bundle, RowEncoder(VECTORS))
    runs = searcher.batch_search(VECTORS[:40], [str(row) for row in range(40)], 30)
    for row in range(40):
        alone = searcher.search(VECTORS[row], 30)
        for hits in (alone, runs[str(row)]):
            expected = expected_hits(VECTORS[row], 30)
            assert [hit.docid for hit in hits] == [docid for docid, _ in expected]
            np.testing.assert_allclose(
                [hit.score for hit in hits], [score for _, score in expected], rtol=1e-5
            )
    assert searcher.search('7', 1)[0].text is not None


@pytest.mark.parametrize('k', [10, 250])
def test_large_queries_lose_no_hits(k):
    """Whole numbers times a query's values overflow, the scores do not."""
    random = np.random.default_rng(0)
    stored = quantize((random.standard_normal((500, 128)) * 1e-3).astype(np.float32))
    queries = (random.standard_normal((3, 128)) * 2e36).astype(np.float32)
    scores = np.asarray(stored, np.float64) @ queries.T.astype(np.float64)
    tops = ExactIndex(ArrayVectors(stored)).search(queries, k)
    for query, top in enumerate(tops):
        assert set(top.rows.tolist()) == set(np.argsort(-scores[:, query])[:k].tolist())


def test_the_manifest_says_what_is_lost(bundle):
    overlaps = []
    for start in (0, 400, 800):
        part = VECTORS[start : min(start + 400, 1000)]
        overlaps.append(measure_overlap(part, quantize(part), lambda vectors: vectors))
    manifest = read_manifest(bundle, DenseSettings)
    assert [shard.overlap for shard in manifest.shards] == overlaps
    # by the numbers of passages
    at_10 = 0.4 * overlaps[0].at_10 + 0.4 * overlaps[1].at_10 + 0.2 * overlaps[2].at_10
    assert manifest.overlap.at_10 == pytest.approx(at_10)
    assert manifest.overlap.queries == 300
    assert 0.5 < manifest.overlap.at_10 < 1
    stored = json.loads((bundle / 'manifest.json').read_text())['shards'][0]['overlap']
    assert stored == vars(overlaps[0])


def test_whole_vectors_in_float32_lose_nothing_and_say_nothing(tmp_path):
    folder = write_bundle(tmp_path / 'whole', VECTORS[:10])
    assert read_manifest(folder, DenseSettings).overlap is None
    assert 'overlap' not in (folder / 'manifest.json').read_text()
    half = write_bundle(tmp_path / 'half', VECTORS[:10], dtype='float16')
    assert read_manifest(half, DenseSettings).overlap == Overlap(10, 1.0, 1.0)


def test_a_stopped_run_goes_on_to_the_same_bytes(tmp_path):
    class Stopping(RowEncoder):
        def embed(self, texts, **_):
            if '500' in texts:
                raise KeyboardInterrupt
            return super().embed(texts)

    settings = {'dtype': 'int8', 'shard_size': 400}
    passages = [(f'd{row}', str(row)) for row in range(1000)]
    once = tmp_path / 'once'
    encode_corpus(passages, RowEncoder(VECTORS), once, **settings)
    stopped = tmp_path / 'stopped'
    with pytest.raises(KeyboardInterrupt):
        encode_corpus(passages, Stopping(VECTORS), stopped, **settings)
    encode_corpus(passages, RowEncoder(VECTORS), stopped, resume=True, **settings)
    assert tree(stopped) == tree(once)


def test_vectors_that_are_not_finite_are_refused(tmp_path):
    vectors = np.eye(16, dtype=np.float32)
    vectors[3, 2] = np.inf
    with pytest.raises(DamagedFileError, match="'d3' is not finite in int8"):
        write_bundle(tmp_path / 'index', vectors, dtype='int8')
    assert not (tmp_path / 'index').exists()


def index_files(folder):
    """The files of an index, without the record of a command."""
    return {path: content for path, content in tree(folder).items() if 'record' not in path}


@pytest.fixture
def call(capsys):
    """call(command, *arguments) -> what it printed; it must succeed."""

    def run(main, *arguments):
        status = command.run(main, [str(argument) for argument in arguments])
        printed = capsys.readouterr()
        assert status == 0, printed.err
        return printed.out

    return run


def test_the_command_says_what_is_lost(tiny_checkpoint, corpus_file, tmp_path, call):
    checkpoint = tiny_checkpoint()
    arguments = ['--corpus', corpus_file(11), '--encoder', checkpoint, '--quiet']
    arguments += ['--store', 'int8', '--truncate-dim', '6', '--shard-size', '4']
    printed = call(encode.main, *arguments, '--output', tmp_path / 'once').splitlines()
    assert printed[0].endswith('11 passages x 6 int8 in 3 shards')
    whole = RepBertDocumentEncoder(checkpoint)
    texts = [passage.text for passage in open_corpus(corpus_file(11))]
    vectors = whole.encode(texts)
    stored = quantize(vectors[:, :6])
    np.testing.assert_array_equal(DenseBundle(tmp_path / 'once').vectors(np.arange(11)), stored)
    overlap = read_manifest(tmp_path / 'once', DenseSettings).overlap
    assert printed[1] == (
        f'  {overlap.at_10:.4f} of the best 10 hits of float32 stay, {overlap.at_100:.4f} of the '
        'best 100 (11 passages as queries)'
    )
    assert '6 int8' in call(index.main, 'check', '--index', tmp_path / 'once')

    # in parts, each shard says the same
    for part in ('0/2', '1/2'):
        printed = call(
            encode.main, *arguments, '--output', tmp_path / 'parts', '--shard', part
        ).splitlines()
        assert f'part {part} is done' in printed[0]
    call(encode.main, '--output', tmp_path / 'parts', '--finish', '--quiet')
    assert index_files(tmp_path / 'parts') == index_files(tmp_path / 'once')


def test_machines_of_a_cluster_make_and_search_the_same(tiny_checkpoint, corpus_file, tmp_path):
    """The tasks of workers, without workers."""
    encoder = RepBertDocumentEncoder(tiny_checkpoint()).truncated(6)
    settings = {'dtype': 'int8', 'shard_size': 4}
    corpus = open_corpus(corpus_file(11))
    once = encode_corpus(corpus, encoder, tmp_path / 'once', **settings)
    task = EncodeParts(
        output=str(tmp_path / 'parts'),
        parts=2,
        corpus=str(corpus_file(11)),
        corpus_format='auto',
        fields=(),
        on_error='refuse',
        encoder=encoder.name,
        settings=once.settings,
    )
    encode_part = task.open(1)
    assert [encode_part(number) for number in range(2)] == [7, 4]
    finish_parts(tmp_path / 'parts', DenseSettings)
    assert tree(tmp_path / 'parts') == tree(tmp_path / 'once')

    bundle = DenseBundle(tmp_path / 'once')
    queries = bundle.vectors(np.arange(3))
    part = replace(once, shards=once.shards[1:], count=7)
    tops = SearchShards(str(bundle.folder), part).open(1)((queries, 2))
    for top, query in zip(tops, queries, strict=True):
        scores = bundle.vectors(np.arange(4, 11)) @ query
        np.testing.assert_allclose(top.scores, np.sort(scores)[::-1][:2], rtol=1e-5)


def test_weights_of_terms_are_not_stored_in_int8(tmp_path, capsys, monkeypatch):
    from pyserini_repbert.systems.sparse_encoder import folder

    monkeypatch.setattr(folder, 'is_sparse_folder', lambda name: True)
    arguments = ['--corpus', 'c.tsv', '--encoder', 'splade', '--output', str(tmp_path / 'index')]
    assert command.run(encode.main, [*arguments, '--store', 'int8']) == 2
    assert 'index sparse --weights uint8' in capsys.readouterr().err
