"""monoBERT against pygaggle and dl4marco-bert."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from pyserini_repbert.models.batching import run_batched
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank import MonoBertReranker
from pyserini_repbert.systems.monobert.inputs import PairLayout

HERE = Path(__file__).parent / 'monobert'
pytestmark = pytest.mark.parity


@pytest.fixture(scope='module')
def pairs():
    return json.loads(gzip.decompress((HERE / 'inputs.json.gz').read_bytes()))['pairs']


@pytest.fixture(scope='module')
def golden():
    return json.loads((HERE / 'golden.json').read_text(encoding='utf-8'))


@pytest.mark.parametrize('layout', list(PairLayout))
def test_inputs_logits_and_scores_equal_the_originals(layout, pairs, golden, checkpoint_folder):
    reranker = MonoBertReranker(
        checkpoint_folder('monobert', HERE / 'weights.safetensors'), layout=layout
    )
    built = []
    for pair in pairs:
        query, text = reranker.tokenizer.ids([pair['query'], pair['text']])
        built.append(reranker.inputs.build(query, text).sequence)
        expected = pair['inputs'][layout]
        assert built[-1].input_ids == expected['input_ids'], pair['id']
        assert built[-1].token_type_ids == expected['token_type_ids'], pair['id']
    logits = run_batched(reranker._forward, built, reranker.tokenizer.pad, 'cpu')
    np.testing.assert_allclose(
        logits, [pair[layout]['logits'] for pair in golden['pairs']], atol=1e-4, rtol=1e-4
    )
    scores = reranker.score_lists(
        [p['query'] for p in pairs], [[Candidate(p['id'], 0, p['text'])] for p in pairs]
    )
    expected_scores = [pair[layout]['log_softmax_pos'] for pair in golden['pairs']]
    np.testing.assert_allclose(np.concatenate(scores), expected_scores, atol=1e-4, rtol=1e-4)
    expected_probabilities = [pair[layout]['prob_pos'] for pair in golden['pairs']]
    np.testing.assert_allclose(
        np.exp(np.concatenate(scores)), expected_probabilities, atol=1e-4, rtol=1e-4
    )


def test_the_order_equals_pygaggles(golden, checkpoint_folder):
    reranker = MonoBertReranker(
        checkpoint_folder('monobert', HERE / 'weights.safetensors'), layout='pygaggle'
    )
    case = golden['rerank']
    found = reranker.rerank(
        case['query'], [Candidate(docid, 0.0, text) for docid, text in case['texts'].items()]
    )
    assert [candidate.docid for candidate in found] == [docid for docid, _ in case['order']]
    expected = [score for _, score in case['order']]
    np.testing.assert_allclose([candidate.score for candidate in found], expected, atol=1e-4)
