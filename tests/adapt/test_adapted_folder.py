"""The folder that `adapt` writes, and searching with it."""

import re

import numpy as np
import pytest

from pyserini_repbert.checksums import digest
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.pipeline.opening import open_pipeline
from pyserini_repbert.pipeline.resolving import resolve
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.search.adapted_folder import read_adapted, write_adapted


@pytest.fixture
def adapted(searcher, tmp_path):
    """A folder whose map doubles every query vector."""
    folder = tmp_path / 'mine'
    write_adapted(
        folder,
        np.eye(searcher.dimension, dtype=np.float32),
        index=str(tmp_path / 'index'),
        encoder=str(tmp_path / 'tiny'),
        encoder_weights=searcher.query_encoder.weights_sha256,
        sparse=(),
        weights=(1.0,),
        depth=1000,
        estimate={},
    )
    return folder


def test_a_search_takes_its_index_and_its_map_from_the_folder(adapted, searcher):
    hits = open_pipeline(PipelineSpec(adapted=str(adapted))).pipeline.search('the cat', 5)
    plain = searcher.search('the cat', 5)
    assert [hit.docid for hit in hits] == [hit.docid for hit in plain]
    np.testing.assert_allclose(
        [hit.score for hit in hits], [2 * hit.score for hit in plain], rtol=1e-5
    )


def test_the_weights_and_the_reranker_come_from_the_folder(tmp_path):
    write_adapted(
        tmp_path / 'mine',
        np.eye(2, dtype=np.float32),
        index='dense',
        encoder='minilm',
        encoder_weights='',
        sparse=('bm25@lucene',),
        weights=(0.6, 0.4),
        depth=1000,
        estimate={},
        stages=('monobert@10:weight=0.7',),
    )
    asked = PipelineSpec(adapted=str(tmp_path / 'mine'), index='moved', sparse=('bm25@elsewhere',))
    spec = resolve(asked).spec
    assert spec == PipelineSpec(
        adapted=str(tmp_path / 'mine'),
        index='moved',
        encoder='minilm',
        sparse=('bm25@elsewhere',),
        fusion='interpolation',
        weights=(0.6, 0.4),
        normalize='minmax',
        depth=1000,
        stages=('monobert@10:weight=0.7',),
    )


def test_other_sparse_techniques_are_refused(adapted):
    with pytest.raises(MismatchError, match='bm25 were given, .* learned to fuse none'):
        resolve(PipelineSpec(adapted=str(adapted), sparse=('bm25@lucene',)))


def test_another_fusion_is_refused(adapted):
    with pytest.raises(InputError, match='decides how rankings are fused'):
        resolve(PipelineSpec(adapted=str(adapted), fusion='rrf'))


def test_another_encoder_is_refused(adapted, tiny_checkpoint, tmp_path):
    other = tiny_checkpoint('other', seed=1)
    index = tmp_path / 'other-index'
    encode_corpus(open_corpus(tmp_path / 'corpus.jsonl'), RepBertDocumentEncoder(other), index)
    spec = PipelineSpec(adapted=str(adapted), index=str(index), encoder=str(other))
    with pytest.raises(MismatchError, match='other weights: adapt again'):
        open_pipeline(spec)


def test_a_damaged_map_is_refused(adapted):
    (adapted / 'query_map.npy').write_bytes(b'damaged')
    with pytest.raises(DamagedFileError, match='not the map'):
        read_adapted(adapted)


def test_a_damaged_description_is_refused(adapted):
    (adapted / 'adapted.json').write_text('{}')
    with pytest.raises(DamagedFileError, match='is not what `adapt` writes .*: adapt again'):
        read_adapted(adapted)


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (lambda array: array[:-1], r'holds float32 \(15, 16\), expected float32 \(16, 16\)'),
        (lambda array: np.float32(1), r'holds float32 \(\), expected'),
        (lambda array: array.astype(np.float64), r'holds float64'),
        (lambda array: np.where(array == 1, np.nan, array), 'holds values that are not finite'),
        (lambda array: np.array(['x'], object), 'is not an .npy file'),
    ],
)
def test_a_map_that_no_encoder_takes_is_refused(change, message, adapted, searcher):
    """Its checksum fits."""
    path = adapted / 'query_map.npy'
    before = digest(path)
    np.save(path, change(np.load(path)), allow_pickle=True)
    description = adapted / 'adapted.json'
    description.write_text(description.read_text().replace(before, digest(path)))
    with pytest.raises(DamagedFileError, match=rf'query_map.npy {message}.*: adapt again$'):
        open_pipeline(PipelineSpec(adapted=str(adapted)))


@pytest.mark.parametrize(
    ('key', 'value'), [('depth', '0'), ('depth', '9' * 30), ('weights', '[NaN]')]
)
def test_settings_that_no_search_takes_are_refused(key, value, adapted):
    description = adapted / 'adapted.json'
    text = re.sub(rf'"{key}":\s*(\[[^]]*\]|\d+)', f'"{key}": {value}', description.read_text())
    description.write_text(text)
    with pytest.raises(DamagedFileError, match='is not what `adapt` writes'):
        read_adapted(adapted)
