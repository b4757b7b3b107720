"""EPIC against OpenNIR's, in all recorded forms."""

import json
from pathlib import Path

import numpy as np
import pytest

from pyserini_repbert.models.term_vectors import TermVector
from pyserini_repbert.systems.epic.encoder import EpicEncoder

HERE = Path(__file__).parent / 'epic'
RENAMED = {
    f'{old}.{part}': f'{new}.{part}'
    for old, new in (
        ('query_salience', 'query_importance'),
        ('doc_salience', 'document_importance'),
        ('doc_quality', 'document_quality'),
    )
    for part in ('weight', 'bias')
}
VARIANTS = ('official', 'paper_strict', 'paper_mlm_head')
pytestmark = pytest.mark.parity
close = {'atol': 1e-4, 'rtol': 1e-4}


@pytest.fixture(scope='module')
def inputs():
    return json.loads((HERE / 'inputs.json').read_text(encoding='utf-8'))


@pytest.fixture(scope='module')
def golden():
    with np.load(HERE / 'golden.npz') as arrays:
        return dict(arrays)


@pytest.fixture
def encoder(checkpoint_folder):
    def make(variant):
        updates = {'ranking': {'system': 'epic', 'variant': variant}}
        return EpicEncoder(
            checkpoint_folder('epic', HERE / 'weights.safetensors', updates, RENAMED)
        )

    return make


def texts(entries):
    return [entry['text'] for entry in entries]


@pytest.mark.parametrize('variant', VARIANTS)
def test_vectors_quality_and_scores_equal_the_originals(variant, inputs, golden, encoder):
    epic = encoder(variant)
    passages = texts(inputs['passages'])
    vectors = epic.encode_dense(passages)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, golden[f'doc_vectors_{variant}'], **close)
    qualities = [found.quality for found in epic.passage_weights(passages)]
    np.testing.assert_allclose(qualities, golden[f'doc_quality_{variant}'].reshape(-1), **close)
    queries = epic.encode_queries(texts(inputs['queries']))
    recorded = json.loads((HERE / 'golden_queries.json').read_text(encoding='utf-8'))
    for found, expected in zip(queries, recorded[f'query_vectors_{variant}'], strict=True):
        wanted = TermVector.summed(list(map(int, expected)), list(expected.values()))
        np.testing.assert_array_equal(found.terms, wanted.terms)
        np.testing.assert_allclose(found.weights, wanted.weights, **close)
    scores = [[vector[query.terms] @ query.weights for vector in vectors] for query in queries]
    np.testing.assert_allclose(scores, golden[f'scores_{variant}'], **close)


def test_query_token_importances_equal_the_originals(inputs, encoder):
    weighted = encoder('official').query_weights(texts(inputs['queries']))
    recorded = json.loads((HERE / 'golden_queries.json').read_text(encoding='utf-8'))
    saliences = recorded['query_token_salience_official']
    for tokens, query, expected in zip(weighted, inputs['queries'], saliences, strict=True):
        assert tokens.ids == query['tok_ids'], query['id']
        np.testing.assert_allclose(tokens.weights, expected, **close)


def test_pruned_scores_equal_the_originals(inputs, golden, encoder):
    epic = encoder('official')
    queries = epic.encode_queries(texts(inputs['queries']))
    for r in (100, 1000):
        pruned = epic.encode_pruned(texts(inputs['passages']), r)
        scores = [[query.dot(vector) for vector in pruned] for query in queries]
        np.testing.assert_allclose(scores, golden[f'scores_official_top{r}'], **close)
        if r == 1000:
            for vector, ids in zip(pruned, golden['top1000_ids'], strict=True):
                assert (
                    len(np.intersect1d(vector.terms, ids)) >= 998
                )  # weights at the cut differ by rounding only
            halved = [
                TermVector(own.terms, own.weights.astype(np.float16).astype(np.float32))
                for own in pruned
            ]
            scores = [[query.dot(vector) for vector in halved] for query in queries]
            np.testing.assert_allclose(scores, golden['scores_official_top1000_fp16'], atol=2e-3)
