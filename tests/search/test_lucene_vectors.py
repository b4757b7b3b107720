"""Texts and vectors in one Lucene index, against the bundle and the plain index that it is made of."""

from __future__ import annotations

import json

import numpy as np
import pytest
from ann_bundles import DIMENSION, RowEncoder, clustered, write_bundle

from pyserini_repbert.commands import command
from pyserini_repbert.commands.encode import main as encode_command
from pyserini_repbert.commands.index import main as index_command
from pyserini_repbert.commands.search import main as search_command
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.index import DenseBundle
from pyserini_repbert.index.lucene import build_lucene_index
from pyserini_repbert.lucene import compat
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.search.lucene_vectors import LuceneVectorSearcher

COUNT = 300


@pytest.fixture(scope='module')
def vectors():
    return clustered(COUNT, same=[45, 11, 30])  # three that tie


@pytest.fixture(scope='module')
def place(vectors, tmp_path_factory):
    """A bundle, its corpus, a Lucene index of both, and one of the corpus alone."""
    folder = tmp_path_factory.mktemp('vectors')
    write_bundle(folder / 'bundle', vectors, shard_size=128)
    write_corpus(folder / 'corpus.jsonl', range(COUNT))
    corpus = open_corpus(folder / 'corpus.jsonl')
    assert build_lucene_index(corpus, folder / 'both', vectors=DenseBundle(folder / 'bundle')) == COUNT
    build_lucene_index(corpus, folder / 'plain')
    return folder


def write_corpus(path, rows):
    path.write_text(''.join(json.dumps({'id': f'd{row}', 'contents': f'{row} of {row % 7}'}) + '\n' for row in rows))
    return path


@pytest.mark.jvm
def test_the_graph_finds_the_greatest_products(place, vectors):
    searcher = LuceneVectorSearcher(place / 'both', RowEncoder(vectors))
    assert len(searcher) == COUNT
    queries = clustered(12, seed=8)
    found = searcher.batch_search(queries, [str(number) for number in range(12)], k=COUNT, threads=2)
    assert list(found) == [str(number) for number in range(12)]
    products = queries @ vectors.T
    assert products.min() < -1, 'DOT_PRODUCT would clip these'
    for own, hits in zip(products, found.values(), strict=True):
        assert len(hits) == COUNT
        np.testing.assert_allclose([hit.score for hit in hits], np.sort(own)[::-1], rtol=1e-3, atol=2e-5)
    assert [hit.docid for hit in searcher.search('45', 40) if hit.docid in ('d11', 'd30', 'd45')] == [
        'd11',
        'd30',
        'd45',
    ]
    assert searcher.search(queries[0], 5) == found['0'][:5]
    assert searcher.batch_search([], []) == {}
    assert searcher.texts(['d9', 'none']) == ['9 of 2', None]
    searcher.close()


@pytest.mark.jvm
def test_texts_are_indexed_as_without_vectors(place):
    from pyserini_repbert.lucene import LuceneSparseSearcher, SparseSettings

    for settings in (SparseSettings(), SparseSettings(sdm=True), SparseSettings(rm3=True)):
        one, other = (LuceneSparseSearcher(place / name, settings) for name in ('both', 'plain'))
        for query in ('3', '17 4', 'of', '6 of 12'):
            assert one.search(query, 50) == other.search(query, 50)


@pytest.mark.jvm
@pytest.mark.slow
def test_pyserinis_searcher_opens_it(place):
    from pyserini_repbert.lucene import import_pyserini

    theirs = import_pyserini('pyserini.search.lucene')
    assert {hit.docid for hit in theirs.LuceneSearcher(str(place / 'both')).search('17')} == {'d17'}


@pytest.mark.jvm
@pytest.mark.slow
@pytest.mark.skipif(
    not compat.pyserini_version().startswith('1.'),
    reason='Anserini of Pyserini 2.x asks api.github.com before its own HnswDenseSearcher opens a folder',
)
def test_pyserinis_graph_searcher_finds_the_same(place, vectors):
    from pyserini_repbert.lucene import import_pyserini

    dense = import_pyserini('pyserini.search.lucene').LuceneHnswDenseSearcher(str(place / 'both'), ef_search=COUNT)
    query = clustered(1, seed=8)[0]
    hits = dense.search(json.dumps(query.tolist()), 10)
    assert [hit.docid for hit in hits] == [f'd{row}' for row in np.argsort(-(vectors @ query), kind='stable')[:10]]
    assert hits[0].score == pytest.approx(1 + float((vectors @ query).max()), rel=1e-4)
    ours = LuceneVectorSearcher(place / 'both', RowEncoder(vectors)).search(query, 10)
    assert [hit.docid for hit in hits] == [hit.docid for hit in ours]


@pytest.mark.jvm
def test_corpus_and_bundle_have_to_fit(place, tmp_path):
    bundle = DenseBundle(place / 'bundle')
    for rows, message in [
        ([*range(COUNT), COUNT], f"passage 'd{COUNT}' of corpus .* has no vector in index .*bundle"),
        (range(COUNT - 1), f"has a vector of 'd{COUNT - 1}', which corpus .* has no passage"),
    ]:
        corpus = open_corpus(write_corpus(tmp_path / 'c.jsonl', rows))
        with pytest.raises(MismatchError, match=message):
            build_lucene_index(corpus, tmp_path / 'out', vectors=bundle)
        assert [path.name for path in tmp_path.iterdir()] == ['c.jsonl']
    with pytest.raises(InputError, match='2 threads were given') as refused:
        build_lucene_index(corpus, tmp_path / 'out', vectors=bundle, threads=2)
    assert refused.value.parameters == ('threads',)


def test_vectors_that_lucene_does_not_take(place, tmp_path, monkeypatch):
    monkeypatch.setattr('pyserini_repbert.index.lucene_vectors.MAX_DIMENSION', DIMENSION - 1)
    corpus = open_corpus(place / 'corpus.jsonl')
    with pytest.raises(InputError, match='vectors of 16 dimensions, Lucene takes at most 15'):
        build_lucene_index(corpus, tmp_path / 'out', vectors=DenseBundle(place / 'bundle'))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.jvm
def test_other_indexes_and_other_encoders_are_refused(place, vectors):
    with pytest.raises(InputError, match='plain holds no vectors of ours: build it with them'):
        LuceneVectorSearcher(place / 'plain', RowEncoder(vectors))
    with pytest.raises(MismatchError, match=r"dimension 16, encoder 'rows' gives 8: pass the encoder .* \('rows'\)"):
        LuceneVectorSearcher(place / 'both', type('E', (RowEncoder,), {'dimension': 8})(vectors))
    with pytest.raises(MismatchError, match="other weights than encoder 'rows'"):
        LuceneVectorSearcher(place / 'both', type('E', (RowEncoder,), {'weights_sha256': '1' * 64})(vectors))
    searcher = LuceneVectorSearcher(place / 'both', RowEncoder(vectors))
    for asked in ({'k': 0}, {'qids': ['0', '0']}, {'threads': 0}):
        with pytest.raises(InputError):
            searcher.batch_search(**{'queries': ['1', '2'], 'qids': ['0', '1'], 'k': 3} | asked)


@pytest.mark.jvm
def test_one_folder_does_the_hybrid(tiny_checkpoint, corpus_file, tmp_path, capsys):
    model, corpus, topics = tiny_checkpoint(), corpus_file(40), tmp_path / 'topics.tsv'
    topics.write_text('1\tthe red cat\n2\ta dog ran\n')
    dense, both = tmp_path / 'dense', tmp_path / 'both'
    make = ['--corpus', str(corpus), '--encoder', str(model), '--output', str(dense), '--quiet']
    assert command.run(encode_command, make) == 0
    build = ['lucene', '--corpus', str(corpus), '--vectors', str(dense), '--output', str(both), '--quiet']
    assert command.run(index_command, build) == 0
    assert capsys.readouterr().out.endswith(f'{both}: 40 passages (bm25) x 16 in a graph\n')
    assert command.run(index_command, ['check', '--index', str(both)]) == 0
    search = ['--topics', str(topics), '--hits', '10', '--encoder', str(model), '--tag', 'x', '--quiet', '--output']
    runs = {}
    for name, given in {
        'lucene': ['--index', str(both)],
        'bundle': ['--index', str(dense)],
        'hybrid of one': ['--index', str(both), '--sparse', 'bm25'],
        'hybrid of two': ['--index', str(dense), '--sparse', f'bm25@{both}'],
    }.items():
        assert command.run(search_command, [*search, str(tmp_path / 'run'), *given]) == 0
        runs[name] = [line.split() for line in (tmp_path / 'run').read_text().splitlines()]
    for one, other in (('lucene', 'bundle'), ('hybrid of one', 'hybrid of two')):
        assert [line[:3] for line in runs[one]] == [line[:3] for line in runs[other]]
    np.testing.assert_allclose(*([float(line[4]) for line in runs[name]] for name in ('lucene', 'bundle')), rtol=1e-4)
    capsys.readouterr()
    assert command.run(search_command, [*search, str(tmp_path / 'run'), '--index', str(both), '--ann']) == 2
    assert 'approximate search is for dense bundles (--ann)' in capsys.readouterr().err
