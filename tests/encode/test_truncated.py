"""Vectors of which the first values are kept."""

import json

import numpy as np
import pytest

from pyserini_repbert.collection import Collection
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.encode import (
    RepBertDocumentEncoder,
    RepBertQueryEncoder,
    document_encoder,
)
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.search import DenseSearcher

TEXTS = ['the cat sat', 'red fish', 'the dog on the mat']


def test_the_first_values_are_kept(tiny_checkpoint):
    encoder = RepBertDocumentEncoder(tiny_checkpoint())
    whole = encoder.encode(TEXTS)
    short = encoder.truncated(6)
    assert short.dimension == 6
    np.testing.assert_array_equal(short.encode(TEXTS), whole[:, :6])
    # the encoder itself stays as it is
    assert encoder.encode(TEXTS).shape == (3, 16)
    assert encoder.truncated(16) is encoder


def test_vectors_of_length_1_have_length_1_again():
    encoder = document_encoder('minilm')
    whole = encoder.encode(TEXTS)
    short = encoder.truncated(6).encode(TEXTS)
    for vector, of_whole in zip(short, whole, strict=True):
        expected = of_whole[:6] / np.sqrt(np.sum(of_whole[:6] ** 2))
        np.testing.assert_allclose(vector, expected, rtol=1e-6)


@pytest.mark.parametrize('dimension', [0, 17])
def test_another_number_of_values_is_refused(tiny_checkpoint, dimension):
    encoder = RepBertDocumentEncoder(tiny_checkpoint())
    with pytest.raises(InputError, match='give 1 to 16'):
        encoder.truncated(dimension)


def test_a_search_shortens_its_queries_itself(tiny_checkpoint, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = str(tiny_checkpoint())
    lines = [json.dumps({'id': f'd{n}', 'contents': text}) for n, text in enumerate(TEXTS)]
    (tmp_path / 'corpus.jsonl').write_text('\n'.join(lines) + '\n')
    encode = ['encode', '--corpus', 'corpus.jsonl', '--encoder', folder, '--output', 'short']
    assert run(main, [*encode, '--truncate-dim', '6', '--quiet']) == 0
    assert 'short: 3 passages x 6 float32' in capsys.readouterr().out

    queries = RepBertQueryEncoder(folder)
    vectors = RepBertDocumentEncoder(folder).encode(TEXTS)[:, :6]
    scores = vectors @ queries.encode('cat')[:6]
    expected = sorted(zip(scores.tolist(), ['d0', 'd1', 'd2'], strict=True), reverse=True)
    for query_encoder in (None, queries, folder):
        hits = DenseSearcher('short', query_encoder).search('cat', 3)
        assert [hit.docid for hit in hits] == [docid for _, docid in expected]
        np.testing.assert_allclose(
            [hit.score for hit in hits], [score for score, _ in expected], rtol=1e-5
        )

    # another length does not go on where this one ended
    assert run(main, [*encode, '--truncate-dim', '5', '--resume', '--quiet']) == 2
    assert 'dimension' in capsys.readouterr().err


def test_longer_vectors_of_another_model_are_not_shortened(tiny_checkpoint, tmp_path):
    from pyserini_repbert.encode import encode_corpus
    from pyserini_repbert.names.corpora import open_corpus

    (tmp_path / 'corpus.tsv').write_text('a\tthe cat\n')
    encoder = RepBertDocumentEncoder(tiny_checkpoint()).truncated(6)
    encode_corpus(open_corpus(tmp_path / 'corpus.tsv'), encoder, tmp_path / 'short')
    other = RepBertQueryEncoder(tiny_checkpoint('other', seed=1))
    with pytest.raises(MismatchError, match='index has dimension 6'):
        DenseSearcher(tmp_path / 'short', other)


def test_a_collection_keeps_short_vectors(tiny_checkpoint, tmp_path):
    folder = str(tiny_checkpoint())
    settings = {'encoder': folder, 'sparse': 'none'}
    documents = [(f'd{n}', text) for n, text in enumerate(TEXTS)]
    with Collection.open(tmp_path / 'mine', truncate_dim=6, **settings) as collection:
        collection.sync(documents)
        assert collection.generation.settings.dimension == 6
    # said once, it is stored
    with Collection.open(tmp_path / 'mine') as collection:
        collection.add([('new', 'the fish sat')])
        hits = collection.search('cat', 4)
    query = RepBertQueryEncoder(folder).encode('cat')[:6]
    texts = [*TEXTS, 'the fish sat']
    scores = RepBertDocumentEncoder(folder).encode(texts)[:, :6] @ query
    np.testing.assert_allclose([hit.score for hit in hits], sorted(scores)[::-1], rtol=1e-5)

    with Collection.open(tmp_path / 'mine', truncate_dim=5, **settings) as collection:
        with pytest.raises(MismatchError, match='vectors of 6 values, 5 were asked for'):
            collection.sync(documents)
        collection.sync(documents, rebuild=True)
        assert collection.generation.settings.dimension == 5
        assert len(collection.search('cat', 9)) == 4
