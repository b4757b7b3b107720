"""Arrays that no writer makes, in an index whose checksums all fit: refused in one line that names
the file, by `index check` and by whatever reads them.
"""

import contextlib
import hashlib
import json
import shutil
import sqlite3
from dataclasses import replace

import indexes
import numpy as np
import pytest

from pyserini_repbert.checksums import digest
from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.errors import DamagedFileError, PyseriniRepbertError
from pyserini_repbert.index.check import check_index
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.index.faiss_layout import FaissFolder
from pyserini_repbert.index.manifest import MANIFEST, SHARD, read_manifest, write_json
from pyserini_repbert.index.postings import Postings
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.search.dense import VectorSearcher
from pyserini_repbert.search.exact import ExactIndex
from pyserini_repbert.systems.encoders import term_weights_encoder


def change_array(path, change):
    """Let `change` alter an array of a file, in place or as what it returns."""
    array = np.load(path)
    changed = change(array)
    np.save(path, array if changed is None else changed)


def sign(folder, settings):
    """Write the checksums of a bundle's files anew."""
    manifest = read_manifest(folder, settings)
    shards = []
    for record in manifest.shards:
        shard = folder / record.folder
        files = {name: digest(shard / name) for name in record.files}
        shards.append(replace(record, files=files))
        write_json(shard / SHARD, shards[-1])
    write_json(folder / MANIFEST, replace(manifest, shards=tuple(shards)), is_signed=True)


def put(position, value):
    def change(array):
        array[position] = value

    return change


def read_terms(folder):
    """Read a bundle of term weights in each way there is."""
    bundle = TermWeightsBundle(folder)
    rows = np.arange(len(bundle))
    for read in (
        lambda: bundle.weights_of(rows, np.array([3, 9, 255, 256, 299])),
        lambda: list(Postings(bundle)) if bundle.settings.layout == 'blocks' else None,
        lambda: [bundle.vector(row) for row in rows.tolist()],
    ):
        with contextlib.suppress(PyseriniRepbertError):
            read()
    return Postings(bundle)


# file: what is done to it, and what is said of it
OF_TERMS = {
    'offsets fall': ('offsets', put(1, 100), r'offsets.npy is damaged, its places do not ascend'),
    'offsets are negative': ('offsets', put(0, -4), r'offsets.npy is damaged, its places do not'),
    'offsets go too far': ('offsets', put(-1, 2**40), r'offsets.npy is damaged|terms.npy holds'),
    'offsets of one row': ('offsets', lambda array: array[:1], r'offsets.npy holds int64 \(1,\)'),
    'counts of blocks': ('blocks', put((0, 1), 60_000), r'blocks.npy is damaged, its counts'),
    'counts of a row': ('blocks', put((0, -1), 3), r'blocks.npy is damaged, its counts'),
    'a first count': ('blocks', put((0, 0), 1), r'blocks.npy is damaged, its counts'),
    'a term beyond the vocabulary': (
        'terms',
        put(3, 255),
        r'terms.npy is damaged, it has term 511',
    ),
    'a scale of NaN': ('scales', put((0, 1), np.nan), r'scales.npy is damaged, a value'),
    'an infinite scale': (
        'scales',
        put((1, 0), np.inf),
        r'scales.npy is damaged, a value of row 1',
    ),
    'another type': ('terms', lambda array: array.astype(np.int64), 'terms.npy holds int64'),
}


@pytest.mark.parametrize('kind', OF_TERMS)
def test_a_bundle_of_term_weights(kind, tmp_path):
    name, change, message = OF_TERMS[kind]
    folder = indexes.epic(tmp_path / 'index')
    change_array(folder / 'shard-00000' / f'{name}.npy', change)
    sign(folder, TermWeightsBundle.settings_kind)
    with pytest.raises(DamagedFileError, match=message):
        check_index(folder)
    with pytest.raises(DamagedFileError, match=message):
        read_terms(folder)


def test_terms_that_do_not_ascend_are_found_by_a_check(tmp_path):
    folder = indexes.epic(tmp_path / 'index')
    change_array(folder / 'shard-00000' / 'terms.npy', put(0, 200))
    sign(folder, TermWeightsBundle.settings_kind)
    with pytest.raises(DamagedFileError, match='the terms of a row do not ascend'):
        check_index(folder)
    read_terms(folder)


@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf])
def test_a_weight_that_is_not_finite(value, tmp_path):
    settings = replace(indexes.EPIC, weights='float16')
    folder = indexes.epic(tmp_path / 'index', settings)
    change_array(folder / 'shard-00000' / 'weights.npy', put(0, value))
    sign(folder, TermWeightsBundle.settings_kind)
    message = r'weights.npy is damaged, a weight is not finite'
    with pytest.raises(DamagedFileError, match=message):
        check_index(folder)
    with pytest.raises(DamagedFileError, match=message):
        TermWeightsBundle(folder).weights_of(np.array([0]), np.array([0]))
    with pytest.raises(DamagedFileError, match=message):
        Postings(TermWeightsBundle(folder))


class OneVector:
    """An encoder of queries of dimension 3."""

    dimension = 3
    weights_sha256 = '0' * 64
    config_sha256 = indexes.MODEL['config_sha256']
    tokenizer_sha256 = indexes.MODEL['tokenizer_sha256']
    name = 'tiny'
    pooling = 'mean'

    def encode(self, query):
        return np.ones(3, np.float32)


@pytest.mark.parametrize('dtype', ['float32', 'float16', 'int8'])
@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf])
def test_a_vector_that_is_not_finite(value, dtype, tmp_path):
    folder = indexes.dense(tmp_path / 'index', replace(indexes.DENSE, dtype=dtype))
    name = 'scales' if dtype == 'int8' else 'vectors'
    change_array(folder / 'shard-00001' / f'{name}.npy', put(1, value))
    sign(folder, DenseBundle.settings_kind)
    with pytest.raises(DamagedFileError, match=rf'{name}.npy is damaged, a value of row 1 is not'):
        check_index(folder)
    searcher = VectorSearcher(DenseBundle(folder), OneVector())
    for k in (1, 5):
        with pytest.raises(DamagedFileError, match=f'index {folder} has a vector that is not'):
            searcher.search('cat', k)
    with pytest.raises(DamagedFileError, match='`index check` names it'):
        ExactIndex(DenseBundle(folder)).search(
            np.ones((1, 3), np.float32), 1, np.array([False, False, False, True, False])
        )


def test_vectors_whose_products_overflow(tmp_path):
    folder = indexes.dense(tmp_path / 'index')
    change_array(folder / 'shard-00000' / 'vectors.npy', put(0, 3e38))
    sign(folder, DenseBundle.settings_kind)
    with pytest.raises(DamagedFileError, match='or gives a score that is not'):
        VectorSearcher(DenseBundle(folder), OneVector()).search('cat', 2)


def test_a_faiss_folder_with_a_vector_that_is_no_number(tmp_path):
    import faiss

    folder = indexes.faiss(tmp_path / 'index')
    index = faiss.IndexFlatIP(3)
    index.add(np.array([[np.inf, 0, 0], *np.eye(3), [1, 1, 1]], np.float32))
    faiss.write_index(index, str(folder / 'index'))
    (folder / 'sha256sums').unlink()
    with pytest.raises(DamagedFileError, match='gives a score that is not finite'):
        FaissFolder(folder).search(np.ones(3, np.float32), 2)


# Collections


@pytest.fixture
def open_collection(tmp_path, tiny_checkpoint, tiny_epic):
    """A collection of three documents with a learned sparse model."""
    collection = Collection.open(
        tmp_path / 'mine',
        encoder=str(tiny_checkpoint()),
        sparse=term_weights_encoder(str(tiny_epic())),
        passage_tokens=10,
        overlap=3,
    )
    with collection:
        collection.sync([('a', 'the cat sat on the mat.'), ('b', 'a dog ate.'), ('c', 'red fish')])
        yield collection


def sign_collection(folder):
    """Write the checksums of a collection's one shard anew, and all that follows from them."""
    (shard,) = (folder / 'shards').iterdir()
    record = json.loads((shard / 'shard.json').read_text())
    record['files'] = {name: digest(shard / name) for name in record['files']}
    content = json.dumps(record, indent=1, sort_keys=True) + '\n'
    (shard / 'shard.json').write_text(content)
    name = hashlib.sha256(content.encode()).hexdigest()[:16]
    shard.rename(shard.with_name(name))
    (manifest,) = (folder / 'generations').glob('*1.json')
    text = manifest.read_text().replace(shard.name, name)
    manifest.write_text(text)
    with sqlite3.connect(folder / 'collection.sqlite') as connection:
        connection.execute('UPDATE shards SET name = ?', [name])
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        connection.execute('UPDATE generations SET manifest_sha256 = ?', [sha256])
    connection.close()


OF_SHARDS = {
    'a vector of NaN': ('vectors', put((0, 0), np.nan), 'a value of row 0', 'a vector'),
    'an infinite vector': ('vectors', put((2, 3), np.inf), 'a value of row 2', 'a vector'),
    'documents': ('documents', put(0, 2**30), 'is another passage', 'document numbers from'),
    'negative documents': ('documents', put(0, -1), 'is another passage', 'document numbers from'),
    'offsets': ('offsets', put(1, 900), 'its places do not ascend', 'its places do not ascend'),
    'terms': ('terms', put(0, 65_535), 'it has term 65535', 'it has term 65535'),
    'weights': ('weights', put(0, np.nan), 'weights.npy is damaged', 'weights.npy is damaged'),
}


@pytest.mark.parametrize('kind', OF_SHARDS)
def test_a_shard_of_a_collection(kind, open_collection):
    name, change, by_check, by_search = OF_SHARDS[kind]
    folder = open_collection.folder
    open_collection.close()
    (shard,) = (folder / 'shards').iterdir()
    change_array(shard / f'{name}.npy', change)
    sign_collection(folder)
    with pytest.raises(DamagedFileError, match=by_check):
        check_collection(folder)
    with pytest.raises(DamagedFileError, match=by_search):
        open_collection.search('cat')


def test_a_record_of_too_many_rows(open_collection, tmp_path):
    """Memory is taken only for rows that a file has."""
    folder = open_collection.folder
    open_collection.close()
    (shard,) = (folder / 'shards').iterdir()
    record = json.loads((shard / 'shard.json').read_text())
    rows = 2**45
    (shard / 'shard.json').write_text(json.dumps({**record, 'rows': rows}, sort_keys=True))
    (manifest,) = (folder / 'generations').glob('*1.json')
    values = json.loads(manifest.read_text())
    values['shards'][0] |= {'rows': rows, 'dead': [[0, 1]]}
    manifest.write_text(json.dumps(values))
    sign_collection(folder)
    shutil.rmtree(tmp_path / 'tiny')
    with pytest.raises(DamagedFileError, match=r'documents.npy holds int32 \(3,\), expected'):
        open_collection.search('cat')
