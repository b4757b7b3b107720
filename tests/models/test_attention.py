"""Packed tokens against padding: on the CPU, with a plain attention over the same bounds, and with
attention that alone is padded.
"""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pyserini_repbert.models import attention, bert as bert_module
from pyserini_repbert.models.bert import Bert
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.systems.cedr.heads import CedrKnrm
from pyserini_repbert.systems.cedr.layout import (
    CedrLayout,
    Pair,
)
from pyserini_repbert.systems.cedr.settings import CedrSettings
from pyserini_repbert.systems.epic.network import Epic
from pyserini_repbert.systems.monobert.network import MonoBert
from pyserini_repbert.systems.repbert.network import RepBert

SIZES = {
    'hidden_size': 24,
    'num_hidden_layers': 3,
    'num_attention_heads': 4,
    'intermediate_size': 40,
}
CONFIG = BertConfig(vocab_size=50, max_position_embeddings=32, initializer_range=0.1, **SIZES)
MASK = torch.arange(9)[None, :] < torch.tensor([[9], [4], [7], [1]])
HOLES = MASK.clone()
HOLES[0, 5:8] = False  # as in a passage's last chunk, whose [SEP] has the position of the others'


def attended(queries, keys, values, query_bounds, bounds, longest_query, longest):
    rows = []
    for number in range(len(bounds) - 1):
        assert query_bounds[number + 1] - query_bounds[number] <= longest_query
        assert bounds[number + 1] - bounds[number] <= longest
        q = queries[query_bounds[number] : query_bounds[number + 1]].transpose(0, 1)
        k, v = (x[bounds[number] : bounds[number + 1]].transpose(0, 1) for x in (keys, values))
        weights = torch.softmax(q @ k.transpose(1, 2) / q.shape[-1] ** 0.5, dim=-1)
        rows.append((weights @ v).transpose(0, 1))
    return torch.cat(rows)


@pytest.fixture
def both_ways(monkeypatch):
    """Calls a function twice, padded and packed; the second call has to pack."""
    calls = []

    def counted(*inputs):
        calls.append(len(inputs))
        return attended(*inputs)

    monkeypatch.setitem(
        sys.modules, 'torch.nn.attention.varlen', SimpleNamespace(varlen_attn=counted)
    )

    def results(work, is_packed=True):
        values = []
        monkeypatch.setattr(bert_module, 'can_pack_on_cpu', lambda _: False)
        for packs in (False, True):
            monkeypatch.setattr(bert_module, 'can_pack', lambda *_, packs=packs: packs)
            calls.clear()
            values.append(work())
            assert bool(calls) is (packs and is_packed)
        return values

    return results


def same(padded, packed):
    torch.testing.assert_close(packed, padded, atol=1e-6, rtol=2e-6)


def inputs():
    torch.manual_seed(0)
    return torch.randint(1, 50, (4, 9)), torch.randint(0, 2, (4, 9))


@pytest.mark.parametrize('mask', [None, MASK, HOLES])
@torch.inference_mode()
def test_packed_layers_are_those_of_padding(both_ways, mask):
    ids, types = inputs()
    bert = Bert(CONFIG).eval()
    for padded, packed in zip(
        *both_ways(lambda: list(bert.each_layer(ids, types, mask))), strict=True
    ):
        assert packed.shape == padded.shape == (4, 9, 24)
        same(padded[MASK if mask is None else mask], packed[MASK if mask is None else mask])
    same(*both_ways(lambda: bert.first_token(ids, types, mask)))


@pytest.mark.parametrize('mask', [MASK, HOLES])
@torch.inference_mode()
def test_a_cpu_packs_all_but_attention(monkeypatch, mask):
    ids, types = inputs()
    bert = Bert(CONFIG).eval()
    n_tokens = []
    linear_of = bert_module.linear

    def counted(x, *rest, **options):
        n_tokens.append(x.numel() // x.shape[-1])
        return linear_of(x, *rest, **options)

    monkeypatch.setattr(bert_module, 'linear', counted)
    packed = list(bert.each_layer(ids, types, mask))
    packed_first = bert.first_token(ids, types, mask)
    monkeypatch.setattr(bert_module, 'can_pack_on_cpu', lambda _: False)
    padded = list(bert.each_layer(ids, types, mask))
    for padded_layer, packed_layer in zip(padded, packed, strict=True):
        assert packed_layer.shape == padded_layer.shape == (4, 9, 24)
        same(padded_layer[mask], packed_layer[mask])
        assert not packed_layer[~mask].any()
    same(bert.first_token(ids, types, mask), packed_first)
    n_real = int(mask.sum())
    assert n_tokens[:6] == [n_real] * 5 + [4]
    assert n_tokens[6:9] == [36] * 3


def test_packed_batches_on_a_cpu_have_few_numbers_of_tokens():
    numbers = [attention.rounded_up(n_tokens) for n_tokens in range(1, 2049)]
    for n_tokens, number in enumerate(numbers, 1):
        assert n_tokens <= number < n_tokens * 17 / 16
    assert numbers[:33] == [*range(1, 33), 34]
    assert numbers[64:69] == [68] * 4 + [72]
    assert len(set(numbers)) == 31 + 6 * 16 + 1


@torch.inference_mode()
def test_tokens_that_are_added_change_nothing(monkeypatch):
    torch.manual_seed(0)
    ids = torch.randint(1, 50, (5, 9))
    mask = torch.arange(9)[None, :] < torch.tensor([[9], [8], [7], [8], [1]])
    bert = Bert(CONFIG).eval()
    assert attention.rounded_up(int(mask.sum())) > int(mask.sum())
    filled = bert(ids, torch.zeros_like(ids), mask)
    filled_first = bert.first_token(ids, torch.zeros_like(ids), mask)
    monkeypatch.setattr(bert_module, 'can_pack_on_cpu', lambda _: False)
    same(bert(ids, torch.zeros_like(ids), mask)[mask], filled[mask])
    same(bert.first_token(ids, torch.zeros_like(ids), mask), filled_first)
    assert not filled[~mask].any()


@pytest.mark.parametrize('mask', [None, MASK])
@pytest.mark.parametrize('ranker', [RepBert, MonoBert])
@torch.inference_mode()
def test_vectors_and_logits(both_ways, mask, ranker):
    ids, types = inputs()
    model = ranker(CONFIG).eval()
    same(*both_ways(lambda: model(ids, types, mask)))


@torch.inference_mode()
def test_term_weights(both_ways):
    ids, types = inputs()
    epic = Epic(CONFIG).eval()

    def weights():
        hidden = epic(ids, types, HOLES)
        inner = HOLES.clone()
        inner[:, 0] = False
        return epic.document_vectors(hidden[inner][:14], [5, 3, 6], hidden[:3, 0])

    same(*both_ways(weights))


@torch.inference_mode()
def test_similarities_of_every_layer(both_ways):
    settings = CedrSettings('knrm', max_query_length=5)
    layout = CedrLayout(CONFIG, settings, SimpleNamespace(cls=1, sep=2, pad=0))
    ranker = CedrKnrm(CONFIG, settings).eval()
    random = np.random.default_rng(0)
    pairs = [
        Pair(*(random.integers(3, 50, n).tolist() for n in lengths))
        for lengths in ((3, 60), (5, 2), (1, 0))
    ]
    padded, packed = both_ways(lambda: ranker.evidence(layout.collate(pairs)))
    for expected, value in zip(padded, packed, strict=True):
        same(expected, value)


def test_gradients(both_ways):
    ids, types = inputs()
    model = RepBert(
        BertConfig.from_dict(
            vars(CONFIG) | {'attention_probs_dropout_prob': 0.0, 'hidden_dropout_prob': 0.0}
        )
    )

    def gradient():
        model.zero_grad()
        model.train()(ids, types, MASK).square().sum().backward()
        return model.bert.encoder.layer[0].attention.self.query.weight.grad.clone()

    same(*both_ways(gradient))


def test_attention_with_dropout_is_padded(both_ways, monkeypatch):
    ids, types = inputs()
    monkeypatch.setattr(bert_module, 'PackedBatch', None)
    bert = Bert(CONFIG).train()

    def hidden():
        torch.manual_seed(1)
        return bert(ids, types, MASK)

    assert torch.equal(*both_ways(hidden, is_packed=False))


def test_plain_attention_drops_weights():
    """Of values that are 1, attention without dropout is 1; with it, it is 1 in the mean."""
    torch.manual_seed(0)
    queries = torch.randn(8, 40, 2, 4, dtype=torch.bfloat16)
    ones = torch.ones_like(queries)
    kept = attention.PaddedBatch(None, 0.0).attend(queries, queries, ones).float()
    dropped = attention.PaddedBatch(None, 0.5).attend(queries, queries, ones).float()
    torch.testing.assert_close(kept, torch.ones_like(kept), atol=0.01, rtol=0)
    assert dropped.std() > 0.1
    assert dropped.mean().item() == pytest.approx(1, abs=0.1)


def test_a_gpu_never_takes_cudnns_attention():
    with attention._kernels(torch.device('cuda', 0), torch.float32):
        assert (
            torch.backends.cuda.flash_sdp_enabled()
            and torch.backends.cuda.mem_efficient_sdp_enabled()
        )
        assert (
            torch.backends.cuda.math_sdp_enabled() and not torch.backends.cuda.cudnn_sdp_enabled()
        )


@pytest.mark.parametrize(
    ('device', 'dtype', 'head', 'capability', 'packs'),
    [
        ('cuda', torch.bfloat16, 64, (9, 0), True),
        ('cuda', torch.float16, 32, (8, 0), True),
        ('cuda', torch.float32, 64, (9, 0), False),
        ('cuda', torch.bfloat16, 6, (9, 0), False),
        ('cuda', torch.bfloat16, 64, (7, 5), False),
        ('cpu', torch.bfloat16, 64, (9, 0), False),
    ],
)
def test_where_tokens_are_packed(monkeypatch, device, dtype, head, capability, packs):
    monkeypatch.setattr(torch.cuda, 'get_device_capability', lambda _: capability)
    monkeypatch.setattr(torch.backends.cuda, 'is_flash_attention_available', lambda: True)
    assert attention.can_pack(torch.device(device), dtype, head) is packs
