"""Repositories for the hub, opened by the packages that would open them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.publish import main
from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.models.batching import collate
from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
from pyserini_repbert.rerank import DuoBertReranker, MonoBertReranker

TEXTS = ['the cat sat on the red mat', 'fish', 'a big old sea and a small blue moon ' * 4, '']


@pytest.fixture
def published(tmp_path: Path) -> Callable[..., Path]:
    """publish(folder, *flags) -> the prepared repository."""

    def publish(folder: Path, *flags: str) -> Path:
        output = tmp_path / 'repository'
        assert run(main, [str(folder), '--output', str(output), '--licence', 'apache-2.0', *flags]) == 0
        return output

    return publish


def _inputs(sequences: list[Any]) -> dict[str, torch.Tensor]:
    ids, types, mask = collate(sequences, 0, 'cpu')
    mask = torch.ones_like(ids) if mask is None else mask.long()
    return {'input_ids': ids, 'token_type_ids': types, 'attention_mask': mask}


@pytest.mark.parametrize('prepare', [False, True])
def test_automodel_gives_repberts_vectors(tiny_checkpoint, published, prepare):
    from transformers import AutoModel

    folder = tiny_checkpoint()
    opened = published(folder) if prepare else folder
    model = AutoModel.from_pretrained(opened, add_pooling_layer=False).eval()
    encoder = RepBertDocumentEncoder(folder)
    inputs = _inputs(encoder.tokenizer.single(TEXTS, encoder.limit, 1))
    with torch.inference_mode():
        hidden = model(**inputs).last_hidden_state
    mask = inputs['attention_mask'][..., None]
    np.testing.assert_allclose(encoder.encode(TEXTS), (hidden * mask).sum(1) / mask.sum(1), atol=1e-5)


@pytest.mark.parametrize('system', ['monobert', 'duobert'])
@pytest.mark.parametrize('prepare', [False, True])
def test_sequence_classification_gives_the_logits(cross_encoder_folder, published, system, prepare):
    from transformers import AutoModelForSequenceClassification

    folder = cross_encoder_folder(system)
    opened = published(folder) if prepare else folder
    model = AutoModelForSequenceClassification.from_pretrained(opened).eval()
    assert model.config.num_labels == 2
    if system == 'duobert':
        duo = DuoBertReranker(folder)
        query, first, second = duo.tokenizer.ids(TEXTS[:3])
        sequences = [duo.inputs.build(query, first, second).sequence, duo.inputs.build(query, second, first).sequence]
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


def test_sentence_transformers_gives_repberts_scores(tiny_checkpoint, published):
    """Token types and lengths differ between queries and passages; no remote code is run."""
    from sentence_transformers import SentenceTransformer

    folder = tiny_checkpoint()
    model = SentenceTransformer(str(published(folder)), device='cpu', trust_remote_code=False, local_files_only=True)
    queries, passages = RepBertQueryEncoder(folder), RepBertDocumentEncoder(folder)
    np.testing.assert_allclose(model.encode_query(TEXTS), queries.encode_batch(TEXTS), atol=1e-5)
    np.testing.assert_allclose(model.encode_document(TEXTS), passages.encode(TEXTS), atol=1e-5)
    expected = queries.encode_batch(TEXTS) @ passages.encode(TEXTS).T
    np.testing.assert_allclose(
        model.similarity(model.encode_query(TEXTS), model.encode_document(TEXTS)), expected, atol=1e-4
    )
    assert abs(queries.encode('fish') - passages.encode('fish')[0]).max() > 1e-2


def test_a_repository_is_a_checkpoint_as_before(tiny_checkpoint, published):
    folder = tiny_checkpoint()
    repository = published(folder)
    before, after = open_checkpoint(folder), open_checkpoint(repository)
    assert after.config['ranking'] == before.config['ranking']
    np.testing.assert_array_equal(
        RepBertQueryEncoder(folder).encode('cat'), RepBertQueryEncoder(repository).encode('cat')
    )


@pytest.mark.slow
def test_a_shipped_adapter_is_merged(published):
    repository = published(Path('repbert-demo'))
    assert not (repository / 'adapter_config.json').exists()
    expected = RepBertQueryEncoder('repbert-demo').encode('who was it')
    np.testing.assert_allclose(RepBertQueryEncoder(repository).encode('who was it'), expected, atol=1e-5)
    card = (repository / 'README.md').read_text()
    assert 'LoRA adapter' in card and 'base_model' not in card.split('---')[1]


def test_epics_masked_language_model(tiny_epic, published):
    from transformers import AutoModelForMaskedLM

    repository = published(tiny_epic())
    model = AutoModelForMaskedLM.from_pretrained(repository)
    own = open_checkpoint(repository).tensors()
    torch.testing.assert_close(
        model.cls.predictions.transform.dense.weight, own['cls.predictions.transform.dense.weight']
    )


def test_the_card_has_licence_and_results(tiny_checkpoint, published, tmp_path):
    from huggingface_hub import ModelCard

    results = {'runs': [{'run': 'a', 'measures': {'nDCG@10': 0.5, 'R@1000': 0.75}}]}
    (tmp_path / 'demo.json').write_text(json.dumps(results))
    repository = published(tiny_checkpoint(), '--evaluation', f'demo={tmp_path / "demo.json"}', '--name', 'tiny')
    data = ModelCard.load(repository / 'README.md').data
    assert (data.license, data.model_name, data.library_name) == ('apache-2.0', 'tiny', 'sentence-transformers')
    found = {(own.dataset_name, own.metric_type): own.metric_value for own in data.eval_results}
    assert found == {('demo', 'nDCG@10'): 0.5, ('demo', 'R@1000'): 0.75}


@pytest.mark.parametrize(
    ('flags', 'message'),
    [
        ([], 'licence of'),
        (['--licence', 'mit', '--private'], '--private is for --push'),
        (['--licence', 'mit', '--evaluation', 'demo'], 'expected DATA=FILE'),
        (['--licence', 'mit', '--evaluation', 'demo={both}'], 'has 2 runs (a, b)'),
        (['--licence', 'mit', '--evaluation', 'demo={words}'], 'is not what `evaluate` prints as JSON'),
        (['--licence', 'mit', '--push', 'me/tiny'], 'this process is offline'),
    ],
)
def test_bad_input_is_one_line(tiny_checkpoint, tmp_path, capsys, flags, message):
    runs = [{'run': name, 'measures': {'AP': 0.1}} for name in 'ab']
    (tmp_path / 'both.json').write_text(json.dumps({'runs': runs}))
    (tmp_path / 'words.json').write_text('[1]')
    given = [flag.format(both=tmp_path / 'both.json', words=tmp_path / 'words.json') for flag in flags]
    assert run(main, [str(tiny_checkpoint()), '--output', str(tmp_path / 'repository'), *given]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count('\n') == 1
    assert (tmp_path / 'repository').exists() == ('--push' in flags)


def test_pushing_uploads_the_folder(tiny_checkpoint, published, tmp_path, monkeypatch):
    from huggingface_hub import HfApi

    from pyserini_repbert.publish import repository

    calls: list[Any] = []
    monkeypatch.setattr(repository, 'is_offline', lambda: False)
    monkeypatch.setattr(HfApi, 'create_repo', lambda self, name, **given: calls.append((name, given)) or 'address')
    monkeypatch.setattr(HfApi, 'upload_folder', lambda self, **given: calls.append(given))
    folder = published(tiny_checkpoint(), '--push', 'me/tiny', '--private')
    assert calls == [
        ('me/tiny', {'private': True, 'exist_ok': True}),
        {'repo_id': 'me/tiny', 'folder_path': str(folder)},
    ]


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
    sequences = [ours.inputs.build(query, first, second).sequence for first in texts for second in texts]
    with torch.inference_mode():
        expected = theirs(**_inputs(sequences)).logits
        found = ours._forward(*collate(sequences, 0, 'cpu'))
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)
