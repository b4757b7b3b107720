from types import SimpleNamespace

import pytest
import torch

from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.systems.cedr.layout import (
    CedrLayout,
    Pair,
)
from pyserini_repbert.systems.cedr.loading import new_ranker
from pyserini_repbert.systems.cedr.network import Evidence
from pyserini_repbert.systems.cedr.settings import (
    Architecture,
    CedrSettings,
)

CONFIG = BertConfig(
    vocab_size=300,
    hidden_size=16,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=40,
    initializer_range=0.3,
)
MATCHING = [Architecture.KNRM, Architecture.PACRR, Architecture.DRMM]


def model(architecture, seed=0, config=CONFIG, **settings):
    torch.manual_seed(seed)
    chosen = CedrSettings(Architecture(architecture), **{'max_query_length': 6, **settings})
    return new_ranker(config, chosen).eval(), CedrLayout(
        config, chosen, SimpleNamespace(cls=101, sep=102, pad=0)
    )


def tokens(n, seed):
    return torch.randint(103, 300, (n,), generator=torch.Generator().manual_seed(seed)).tolist()


def test_kernels_begin_where_the_released_ones_do():
    """Ten from -0.9 to 0.9, 0.2 apart and 0.1 wide, and one for exact matches."""
    mus = [-0.9, -0.7, -0.5, -0.3, -0.1, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]
    sigmas = [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.001]
    kernels = model('knrm')[0].kernels.kernels
    assert [kernel.mu.item() for kernel in kernels] == pytest.approx(mus, abs=1e-7)
    assert [kernel.sigma.item() for kernel in kernels] == pytest.approx(sigmas, abs=1e-7)


@pytest.mark.parametrize('architecture', MATCHING)
@torch.inference_mode()
def test_without_cls_only_similarities_count(architecture):
    ranker, layout = model(architecture, joint=False)
    batch = layout.collate([Pair(tokens(3, 1), tokens(9, 2))])
    evidence = ranker.evidence(batch)
    other = evidence._replace(cls=evidence.cls + 1)
    assert torch.equal(ranker.features(evidence), ranker.features(other))
    joint, _ = model(architecture)
    assert (
        joint.features(evidence).shape[-1]
        == ranker.features(evidence).shape[-1] + CONFIG.hidden_size
    )


@pytest.mark.parametrize('architecture', MATCHING)
@torch.inference_mode()
def test_first_layers_of_a_trained_model(architecture):
    """[CLS] of the last layer that runs, and a head that sees nothing of the others."""
    pair = Pair(tokens(3, 1), tokens(50, 2))
    whole, layout = model(architecture)
    fewer, _ = model(architecture)
    fewer.keep_layers(2)
    batch = layout.collate([pair])
    evidence = whole.evidence(batch)
    kept = fewer.evidence(batch)
    assert torch.equal(kept.similarity, evidence.similarity[:, :3])
    inputs = (batch.input_ids, batch.token_type_ids, batch.attention_mask, batch.position_ids)
    hidden = list(whole.bert.each_layer(*inputs))
    assert torch.allclose(kept.cls, hidden[2][:, 0].mean(dim=0, keepdim=True), atol=1e-6)
    found = fewer(batch)
    if architecture is Architecture.PACRR:
        blanked = Evidence(*evidence)._replace(similarity=evidence.similarity.clone(), cls=kept.cls)
        blanked.similarity[:, 3] = 0
        expected = whole.score_features(whole.features(blanked), blanked)
    else:
        features = whole.features(evidence._replace(cls=kept.cls))
        columns = torch.arange(features.shape[-1])
        missing = (columns < features.shape[-1] - CONFIG.hidden_size) & (columns % 4 == 3)
        expected = whole.score_features(features.masked_fill(missing, 0.0), evidence)
    assert torch.allclose(found, expected, atol=1e-5)
