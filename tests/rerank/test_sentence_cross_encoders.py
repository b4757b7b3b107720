"""Which checkpoints are cross-encoders of sentence-transformers."""

import json
from types import SimpleNamespace

import pytest

from pyserini_repbert.systems.sentence_transformers.recognising import is_cross_encoder


@pytest.mark.parametrize(
    ('config', 'settings', 'expected'),
    [
        ({'id2label': {'0': 'LABEL_0'}}, None, True),
        ({'id2label': {'0': 'no', '1': 'yes'}}, None, False),
        ({'id2label': {'0': 'no', '1': 'yes', '2': 'perhaps'}}, None, True),
        ({'model_type': 'roberta', 'architectures': ['RobertaModel']}, None, False),
        (
            {'model_type': 'roberta', 'architectures': ['RobertaForSequenceClassification']},
            None,
            True,
        ),
        ({'id2label': {'0': 'no', '1': 'yes'}}, {'model_type': 'CrossEncoder'}, True),
        ({}, {'model_type': 'SentenceTransformer'}, False),
        ({}, None, False),
        ({'id2label': {'0': 'LABEL_0'}, 'ranking': {'system': 'monobert'}}, None, False),
    ],
)
def test_what_is_a_cross_encoder(config, settings, expected, tmp_path):
    if settings is not None:
        path = tmp_path / 'config_sentence_transformers.json'
        path.write_text(json.dumps(settings), encoding='utf-8')
    assert is_cross_encoder(SimpleNamespace(config=config, folder=tmp_path)) is expected
