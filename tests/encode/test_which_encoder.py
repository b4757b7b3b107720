"""The lengths that a RepBERT encoder reads, and which folders are of sentence-transformers."""

import json

import pytest

from pyserini_repbert.encode import RepBertDocumentEncoder, document_encoder, query_encoder
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.checkpoints import checkpoint
from pyserini_repbert.systems.sentence_transformers.recognising import is_sentence_folder


def test_two_positions_are_for_the_special_tokens(tiny_checkpoint):
    folder = tiny_checkpoint('short', max_position_embeddings=20)
    assert RepBertDocumentEncoder(folder, max_length=18).limit == 18
    assert RepBertDocumentEncoder(folder, max_length=1).limit == 1
    for length in (0, 19):
        with pytest.raises(InputError, match='18'):
            RepBertDocumentEncoder(folder, max_length=length)


@pytest.mark.parametrize('open_encoder', [query_encoder, document_encoder])
def test_a_checkpoint_is_opened_once(open_encoder, tiny_checkpoint, monkeypatch):
    folder = tiny_checkpoint()
    verified = []
    monkeypatch.setattr(checkpoint, 'verify', verified.append)
    assert open_encoder(str(folder)).name == str(folder)
    assert verified == [folder]


def test_folders_of_sentence_transformers(tmp_path):
    assert not is_sentence_folder(str(tmp_path))
    (tmp_path / 'modules.json').write_text('[]')
    assert is_sentence_folder(str(tmp_path)) is True
    (tmp_path / 'config.json').write_text(json.dumps({'model_type': 'bert'}))
    assert is_sentence_folder(str(tmp_path)) is True
    (tmp_path / 'config.json').write_text(json.dumps({'ranking': {'system': 'repbert'}}))
    assert not is_sentence_folder(str(tmp_path))
    assert not is_sentence_folder('minilm')
