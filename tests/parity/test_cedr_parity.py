"""CEDR's models against the released code (batches of one, but for the query's padding as
recorded).
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
from pyserini_repbert.systems.cedr.layout import CedrLayout
from pyserini_repbert.systems.cedr.loading import load_ranker

HERE = Path(__file__).parent / 'cedr'
MODELS = {
    'vanilla_bert': {'architecture': 'vanilla'},
    'cedr_pacrr': {'architecture': 'pacrr'},
    'cedr_pacrr_kmax30': {'architecture': 'pacrr', 'k_max': 30},
    'cedr_knrm': {'architecture': 'knrm'},
    'cedr_drmm': {'architecture': 'drmm'},
}
pytestmark = pytest.mark.parity


@pytest.fixture(scope='module')
def golden():
    return json.loads((HERE / 'golden.json').read_text(encoding='utf-8'))['scores']


@pytest.fixture(scope='module')
def features():
    return dict(np.load(HERE / 'golden_features.npz'))


@pytest.fixture(scope='module')
def pairs():
    recorded = json.loads((HERE / 'inputs.json').read_text(encoding='utf-8'))['pairs']
    return {pair['id']: pair for pair in recorded}


@pytest.fixture
def model(checkpoint_folder):
    """model(name, **settings) -> the ranker, its layout and the checkpoint folder."""

    def make(name, **settings):
        ranking = {'system': 'cedr', **MODELS[name], **settings}
        folder = checkpoint_folder(
            'cedr', HERE / f'weights.{name}.safetensors', {'ranking': ranking}
        )
        checkpoint = open_checkpoint(folder, 'rerankers')
        ranker = load_ranker(checkpoint)
        config = BertConfig.from_dict(checkpoint.config)
        return ranker, CedrLayout(config, ranker.settings, checkpoint.tokenizer()), checkpoint

    return make


def laid_out(layout, pair):
    return layout.cut([token for token in pair['query_tok'] if token >= 0], pair['doc_tok'])


@pytest.mark.parametrize('name', MODELS)
@torch.inference_mode()
def test_scores_and_features_equal_the_originals(name, golden, features, pairs, model):
    ranker, layout, _ = model(name)
    assert golden[name]['single']
    for pair_id, score in golden[name]['single'].items():
        batch = layout.collate([laid_out(layout, pairs[pair_id])])
        evidence = ranker.evidence(batch)
        found = ranker.features(evidence)
        expected = features[f'{name}/{pair_id}']
        atol = 2e-3 if name == 'cedr_knrm' else 1e-4  # the logarithm of nearly empty kernels
        np.testing.assert_allclose(
            found.reshape(expected.shape), expected, atol=atol, rtol=1e-4, err_msg=pair_id
        )
        np.testing.assert_allclose(
            ranker(batch).item(), score, atol=1e-4, rtol=1e-4, err_msg=pair_id
        )


@torch.inference_mode()
def test_similarities_equal_the_originals(features, pairs, model):
    ranker, layout, _ = model('cedr_knrm')
    recorded = {
        name.partition('/')[2]: value
        for name, value in features.items()
        if name.startswith('simmat/')
    }
    assert len(recorded) == 5
    for pair_id, expected in recorded.items():
        evidence = ranker.evidence(layout.collate([laid_out(layout, pairs[pair_id])]))
        found = evidence.similarity[0].numpy()
        np.testing.assert_allclose(found, expected[:, : found.shape[1]], atol=1e-5, err_msg=pair_id)
        assert not expected[:, found.shape[1] :].any()


@pytest.mark.parametrize('name', ['vanilla_bert', 'cedr_knrm', 'cedr_drmm'])
@torch.inference_mode()
def test_scores_without_padded_queries_equal_the_originals(name, golden, pairs, model):
    ranker, layout, _ = model(name, pad_query=False)
    recorded = golden[name]['unpadded_query']
    batch = layout.collate([laid_out(layout, pairs[pair_id]) for pair_id in recorded])
    np.testing.assert_allclose(ranker(batch), list(recorded.values()), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize('name', MODELS)
@torch.inference_mode()
def test_scores_do_not_depend_on_the_batch(name, golden, pairs, model):
    """All pairs at once, short beside long and split documents: what the released code gives for
    each alone.
    """
    ranker, layout, _ = model(name)
    recorded = golden[name]['single']
    batch = layout.collate([laid_out(layout, pairs[pair_id]) for pair_id in recorded])
    assert batch.attention_mask is not None
    np.testing.assert_allclose(ranker(batch), list(recorded.values()), atol=1e-4, rtol=1e-4)


def test_wordpieces_equal_the_originals(pairs, model):
    _, layout, checkpoint = model('vanilla_bert')
    tokenizer = checkpoint.tokenizer()
    for pair in pairs.values():
        found = layout.cut(*tokenizer.ids([pair['query'], pair['text']]))
        assert found == laid_out(layout, pair), pair['id']
        assert layout.n_parts(found) == pair['chunks'], pair['id']


def test_pacrr_tells_its_k_max_by_its_weights(checkpoint_folder):
    ranking = {'system': 'cedr', 'architecture': 'pacrr'}
    folder = checkpoint_folder(
        'cedr', HERE / 'weights.cedr_pacrr_kmax30.safetensors', {'ranking': ranking}
    )
    assert load_ranker(open_checkpoint(folder, 'rerankers')).settings.k_max == 30
