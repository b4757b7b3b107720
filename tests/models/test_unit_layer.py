"""A layer after BERT's last that makes mean vectors equally long."""

import pytest
import torch
from torch.nn.functional import normalize

from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.weights import UNIT_LAYER, with_unit_layer
from pyserini_repbert.systems.repbert.network import RepBert

SIZES = {
    'vocab_size': 60,
    'hidden_size': 32,
    'num_hidden_layers': 2,
    'num_attention_heads': 4,
    'intermediate_size': 48,
}
WITH = {**SIZES, 'num_hidden_layers': 3, UNIT_LAYER: True}


@pytest.fixture
def base():
    torch.manual_seed(5)
    model = RepBert(BertConfig(**SIZES)).eval()
    for name, parameter in model.named_parameters():
        if 'LayerNorm' not in name:
            torch.nn.init.normal_(parameter, std=0.3)
    return model


@pytest.fixture
def texts():
    """Token ids, types and mask of 40 texts of 1 to 20 tokens."""
    torch.manual_seed(6)
    mask = torch.arange(20) < torch.randint(1, 21, (40, 1))
    ids = torch.randint(1, 60, mask.shape) * mask
    return ids, torch.ones_like(ids), mask


def with_layer(base):
    model = RepBert(BertConfig.from_dict(WITH)).eval()
    model.load_state_dict(with_unit_layer(base.state_dict(), WITH), strict=True)
    return model


def test_vectors_become_equally_long_and_keep_their_directions(base, texts):
    with torch.no_grad():
        before = base(*texts)
        after = with_layer(base)(*texts)
    spread = [
        float(lengths.std() / lengths.mean()) for lengths in (before.norm(dim=1), after.norm(dim=1))
    ]
    assert 20 * spread[1] < spread[0]
    torch.testing.assert_close(after.norm(dim=1), torch.full((40,), 32.0).sqrt(), atol=0, rtol=0.02)
    centred = before - before.mean(
        dim=1, keepdim=True
    )  # layer normalisation takes away the mean over dimensions
    torch.testing.assert_close(
        normalize(after, dim=1), normalize(centred, dim=1), atol=0.02, rtol=0
    )
