"""Our checkpoints in transformers and PEFT."""

from typing import Any

import numpy as np
import pytest
import torch

from pyserini_repbert.encode import RepBertDocumentEncoder
from pyserini_repbert.models.batching import collate
from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
from pyserini_repbert.rerank import DuoBertReranker, MonoBertReranker

TEXTS = ['the cat sat on the red mat', 'fish', 'a big old sea and a small blue moon ' * 4, '']


def _inputs(sequences):
    ids, types, mask = collate(sequences, 0, 'cpu')
    mask = torch.ones_like(ids) if mask is None else mask.long()
    return {'input_ids': ids, 'token_type_ids': types, 'attention_mask': mask}


def test_automodel_gives_repberts_vectors(tiny_checkpoint):
    from transformers import AutoModel

    folder = tiny_checkpoint()
    model = AutoModel.from_pretrained(folder, add_pooling_layer=False).eval()
    encoder = RepBertDocumentEncoder(folder)
    inputs = _inputs(encoder.tokenizer.single(TEXTS, encoder.limit, 1))
    with torch.inference_mode():
        hidden = model(**inputs).last_hidden_state
    mask = inputs['attention_mask'][..., None]
    np.testing.assert_allclose(
        encoder.encode(TEXTS), (hidden * mask).sum(1) / mask.sum(1), atol=1e-5
    )


@pytest.mark.parametrize('system', ['monobert', 'duobert'])
def test_sequence_classification_gives_the_logits(cross_encoder_folder, system):
    from transformers import AutoModelForSequenceClassification

    folder = cross_encoder_folder(system)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    assert model.config.num_labels == 2
    if system == 'duobert':
        duo = DuoBertReranker(folder)
        query, first, second = duo.tokenizer.ids(TEXTS[:3])
        sequences = [
            duo.inputs.build(query, first, second).sequence,
            duo.inputs.build(query, second, first).sequence,
        ]
        assert max(sequences[0].token_type_ids) == 2
        reranker: Any = duo
    else:
        reranker = MonoBertReranker(folder)
        query, *texts = reranker.tokenizer.ids(TEXTS)
        sequences = [reranker.inputs.build(query, text).sequence for text in texts]
    with torch.inference_mode():
        theirs = model(**_inputs(sequences)).logits
        ours = reranker._forward(*collate(sequences, 0, 'cpu'))
    assert theirs.std() > 1e-3
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


@pytest.mark.slow
def test_peft_opens_our_adapters():
    """The shipped duoBERT adapter in PEFT, over transformers' classifier, gives our logits."""
    from peft import PeftModel
    from transformers import BertConfig, BertForSequenceClassification

    checkpoint = open_checkpoint('duobert-demo', 'rerankers')
    ours = DuoBertReranker(checkpoint)
    config = {key: value for key, value in checkpoint.config.items() if key != 'ranking'}
    plain = BertForSequenceClassification(BertConfig(**config, num_labels=2))
    base = {name: value.float() for name, value in checkpoint.base.tensors().items()}
    kinds = 'bert.embeddings.token_type_embeddings.weight'
    base[kinds] = torch.nn.functional.pad(base[kinds], (0, 0, 0, 1))  # the adapter has all three
    plain.load_state_dict(base, strict=False)
    theirs = PeftModel.from_pretrained(plain, str(checkpoint.folder)).eval()
    query, *texts = ours.tokenizer.ids(TEXTS)
    sequences = [
        ours.inputs.build(query, first, second).sequence for first in texts for second in texts
    ]
    with torch.inference_mode():
        expected = theirs(**_inputs(sequences)).logits
        found = ours._forward(*collate(sequences, 0, 'cpu'))
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)
