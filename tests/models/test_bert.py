import pytest
import torch

from pyserini_repbert.models.bert import Bert
from pyserini_repbert.models.bert_config import BertConfig

CONFIG = {
    'vocab_size': 50,
    'hidden_size': 24,
    'num_hidden_layers': 3,
    'num_attention_heads': 4,
    'intermediate_size': 40,
    'max_position_embeddings': 32,
    'initializer_range': 0.3,
}


@pytest.mark.parametrize('activation', ['gelu', 'gelu_new', 'relu'])
def test_equals_hugging_faces_bert(activation):
    from transformers import BertConfig as HubConfig, BertModel

    torch.manual_seed(1)
    theirs = BertModel(HubConfig(**CONFIG, hidden_act=activation)).eval()
    ours = Bert(BertConfig.from_dict(CONFIG | {'hidden_act': activation}), pooler=True).eval()
    ours.load_state_dict(theirs.state_dict())
    ids = torch.randint(1, 50, (3, 10))
    types = torch.randint(0, 2, (3, 10))
    mask = torch.arange(10)[None, :] < torch.tensor([[10], [4], [7]])
    with torch.inference_mode():
        expected = theirs(
            ids, attention_mask=mask.long(), token_type_ids=types, output_hidden_states=True
        )
        layers = list(ours.each_layer(ids, types, mask))
        assert len(layers) == 4
        for layer, reference in zip(layers, expected.hidden_states, strict=True):
            torch.testing.assert_close(layer[mask], reference[mask], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(
            ours.pooler(layers[-1]), expected.pooler_output, atol=1e-5, rtol=1e-5
        )


def test_the_first_token_alone_is_the_same():
    torch.manual_seed(3)
    bert = Bert(BertConfig.from_dict(CONFIG)).eval()
    ids = torch.randint(1, 50, (3, 9))
    types = torch.randint(0, 2, (3, 9))
    mask = torch.arange(9)[None, :] < torch.tensor([[9], [4], [7]])
    with torch.inference_mode():
        for chosen in (mask, None):
            first = bert.first_token(ids, types, chosen)
            assert first.shape == (3, 1, 24)
            torch.testing.assert_close(first, bert(ids, types, chosen)[:, :1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize('padded', [False, True])
def test_training_in_bfloat16_has_the_gradient_of_float32(padded):
    """On a CPU, attention is then made of matrix products; outputs and gradients differ by
    rounding only.
    """
    torch.manual_seed(0)
    dropout = {'hidden_dropout_prob': 0.0, 'attention_probs_dropout_prob': 0.0}
    bert = Bert(BertConfig.from_dict(CONFIG | dropout)).train()
    ids = torch.randint(1, 50, (3, 9))
    mask = torch.ones(3, 9, dtype=torch.bool)
    mask[1, 5:] = False
    found = {}
    for name, enabled in (('float32', False), ('bfloat16', True)):
        bert.zero_grad()
        with torch.autocast('cpu', torch.bfloat16, enabled=enabled):
            out = bert(ids, torch.zeros_like(ids), mask if padded else None)
        (out[mask].float() * torch.linspace(-1, 1, 24)).sum().backward()
        found[name] = bert.encoder.layer[0].attention.self.query.weight.grad.flatten()
    assert torch.cosine_similarity(found['float32'], found['bfloat16'], dim=0) > 0.99
