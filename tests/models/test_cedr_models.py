import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, strategies as st

from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.cedr.drmm import N_BINS, similarity_histogram
from pyserini_repbert.models.cedr.knrm import KernelBank
from pyserini_repbert.models.cedr.layout import CedrLayout, Pair
from pyserini_repbert.models.cedr.loading import new_ranker
from pyserini_repbert.models.cedr.pacrr import NgramMatches, told_k_max
from pyserini_repbert.models.cedr.ranker import Evidence, cosine_matrix
from pyserini_repbert.models.cedr.settings import Architecture, CedrSettings

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
    return new_ranker(config, chosen).eval(), CedrLayout(config, chosen, 101, 102, 0)


def tokens(n, seed):
    return torch.randint(103, 300, (n,), generator=torch.Generator().manual_seed(seed)).tolist()


def test_cosine_by_hand():
    query = torch.tensor([[[3.0, 4.0], [0.0, 0.0], [1.0, 0.0]]])
    document = torch.tensor([[[6.0, 8.0], [-4.0, 3.0]]])
    masks = torch.tensor([[True, True, False]]), torch.tensor([[True, True]])
    expected = torch.tensor([[[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]])
    assert torch.allclose(cosine_matrix(query, document, *masks), expected, atol=1e-6)
    only_first = cosine_matrix(query, document, masks[0], torch.tensor([[False, True]]))
    assert torch.allclose(only_first, torch.zeros(1, 3, 2), atol=1e-6)
    assert cosine_matrix(query.half(), document.half(), *masks).dtype == torch.float32


@given(
    st.integers(0, 2**31),
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 30)),
)
def test_histogram_equals_a_loop(seed, shape):
    generator = torch.Generator().manual_seed(seed)
    n, channels, q, d = shape
    similarity = (torch.rand(shape, generator=generator) * 2 - 1).mul(10).round().div(10)  # many on an edge
    query_mask = torch.rand(n, q, generator=generator) < 0.7
    document_mask = torch.rand(n, d, generator=generator) < 0.7
    found = similarity_histogram(similarity, query_mask, document_mask)
    for i in range(n):
        for c in range(channels):
            for j in range(q):
                bins = ((similarity[i, c, j] + 1.000001) / 2.0 * 10).int()
                weights = document_mask[i].float() * query_mask[i, j]
                assert torch.equal(found[i, c, j], torch.bincount(bins, weights, N_BINS))


def test_kernels_begin_where_the_released_ones_do():
    """Ten from -0.9 to 0.9, 0.2 apart and 0.1 wide, and one for exact matches."""
    mus = [-0.9, -0.7, -0.5, -0.3, -0.1, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]
    sigmas = [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.001]
    kernels = model('knrm')[0].kernels.kernels
    assert [kernel.mu.item() for kernel in kernels] == pytest.approx(mus, abs=1e-7)
    assert [kernel.sigma.item() for kernel in kernels] == pytest.approx(sigmas, abs=1e-7)


def test_kernels_by_hand():
    similarity = torch.tensor([1.0, 0.5, 0.0]).view(1, 1, 1, 3)
    counts = KernelBank()(similarity, torch.tensor([[True, True, False]]))
    assert counts.shape == (1, 11, 1, 1)
    wide = [sum(math.exp(-((s - n / 10) ** 2) / 0.02) for s in (1.0, 0.5)) for n in range(-9, 10, 2)]
    expected = [*wide, 1.0]  # the last one sees 1.0 alone
    assert counts.flatten().tolist() == pytest.approx(expected, abs=1e-6)


def test_ngram_matches_by_hand():
    ngrams = NgramMatches(2, 1)
    with torch.no_grad():
        ngrams.conv.weight.fill_(-1.0)
        ngrams.conv.bias.zero_()
        ngrams.conv.weight[3].copy_(torch.eye(2))  # the sum along a diagonal
    similarity = torch.tensor([[0.5, 0.2, 0.9], [0.0, 0.7, 0.1]]).view(1, 1, 2, 3)
    found = ngrams(similarity, torch.tensor([[True, True, True]]), 2, 2)
    assert torch.allclose(found, torch.tensor([[[1.2, 0.9], [0.7, 0.1]]]))
    found = ngrams(similarity, torch.tensor([[True, True, False]]), 4, 2)
    assert torch.allclose(found, torch.tensor([[[1.2, 0.3, 0.0, 0.0], [0.7, 0.0, 0.0, 0.0]]]))
    with torch.no_grad():
        ngrams.conv.bias[5] = 0.3
    found = ngrams(similarity, torch.tensor([[True, True, False]]), 3, 4)
    blank = [[0.3, 0.3, 0.0]] * 2
    assert torch.allclose(found, torch.tensor([[[1.2, 0.3, 0.0], [0.7, 0.0, 0.0], *blank]]))


@pytest.mark.parametrize('architecture', list(Architecture))
@torch.inference_mode()
def test_scores_do_not_depend_on_the_batch(architecture):
    ranker, layout = model(architecture, max_doc_length=200)
    lengths = [(6, 5), (1, 0), (2, 31), (3, 32), (4, 150), (0, 3), (5, 1), (6, 63)]
    pairs = [Pair(tokens(q, i), tokens(d, 100 + i)) for i, (q, d) in enumerate(lengths)]
    alone = torch.cat([ranker(layout.collate([pair])) for pair in pairs])
    together = ranker(layout.collate(pairs))
    assert torch.isfinite(alone).all()
    assert torch.allclose(alone, together, atol=1e-5, rtol=1e-5)
    assert torch.allclose(alone.flip(0), ranker(layout.collate(pairs[::-1])), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize('architecture', MATCHING)
@torch.inference_mode()
def test_without_cls_only_similarities_count(architecture):
    ranker, layout = model(architecture, joint=False)
    batch = layout.collate([Pair(tokens(3, 1), tokens(9, 2))])
    evidence = ranker.evidence(batch)
    other = evidence._replace(cls=evidence.cls + 1)
    assert torch.equal(ranker.features(evidence), ranker.features(other))
    joint, _ = model(architecture)
    assert joint.features(evidence).shape[-1] == ranker.features(evidence).shape[-1] + CONFIG.hidden_size


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


@torch.inference_mode()
def test_first_layers_of_vanilla_bert_equal_a_smaller_bert():
    whole, layout = model('vanilla')
    whole.keep_layers(1)
    smaller, _ = model('vanilla', config=replace(CONFIG, num_hidden_layers=1))
    smaller.load_state_dict(whole.state_dict())
    batch = layout.collate([Pair(tokens(3, 1), tokens(9, 2))])
    assert torch.equal(whole(batch), smaller(batch))
    assert whole.bert.config.num_hidden_layers == 1


@pytest.mark.parametrize(
    ('n_inputs', 'n_extra', 'expected'),
    [(6 * 3 * 1 + 16, 16, 1), (6 * 3 * 30, 0, 30), (6 * 3 * 2 + 16, 0, None), (16, 16, None), (5, 16, None)],
)
def test_pacrrs_weights_tell_k_max(n_inputs, n_extra, expected):
    """q · 3 · k_max + h inputs, with q = 6."""
    assert told_k_max(n_inputs, n_extra, 6) == expected


def test_state_dict_names():
    heads = {
        architecture: {name for name in model(architecture)[0].state_dict() if not name.startswith('bert.')}
        for architecture in Architecture
    }
    assert heads['vanilla'] == {'cls.weight', 'cls.bias'}
    kernels = {f'kernels.kernels.{i}.{name}' for i in range(11) for name in ('mu', 'sigma')}
    assert heads['knrm'] == {'combine.weight', 'combine.bias'} | kernels
    linears = {f'linear{i}.{name}' for i in (1, 2, 3) for name in ('weight', 'bias')}
    assert heads['pacrr'] == linears | {f'ngrams.{i}.conv.{name}' for i in range(3) for name in ('weight', 'bias')}
    assert heads['drmm'] == {f'hidden_{i}.{name}' for i in (1, 2) for name in ('weight', 'bias')}
