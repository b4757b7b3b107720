"""The authors' file of EPIC weights becomes a checkpoint with the same numbers."""

import hashlib

import numpy as np
import pytest
import torch

from pyserini_repbert import catalog
from pyserini_repbert.commands.command import run
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.files import cache_folder
from pyserini_repbert.systems.epic.conversion import (
    _EPIC_HEADS,
    convert_epic,
)
from pyserini_repbert.systems.epic.encoder import EpicEncoder
from tools import convert_checkpoint

RANKING = {'system': 'epic', 'variant': 'official'}


@pytest.fixture
def published(tiny_epic, tmp_path, monkeypatch):
    """(our checkpoint, the same weights under the authors' names)"""
    monkeypatch.setattr('pyserini_repbert.models.convert.pytorch._HEAD_SIZE', 8)
    folder = tiny_epic()
    state = EpicEncoder(folder).model.state_dict()
    heads = {ours: theirs for theirs, ours in _EPIC_HEADS.items()}
    theirs = {}
    for name, value in state.items():
        head, _, rest = name.partition('.')
        theirs[f'{heads[head]}.{rest}' if head in heads else f'encoder.bert.{name}'] = value
    theirs['encoder.bert.cls.predictions.decoder.weight'] = state[
        'bert.embeddings.word_embeddings.weight'
    ]
    theirs |= {
        '_nil': torch.zeros(1),
        'encoder.bert.cls.seq_relationship.weight': torch.zeros(2, 16),
    }
    theirs['encoder.bert.bert.pooler.dense.weight'] = torch.zeros(16, 16)
    theirs['encoder.bert.bert.pooler.dense.bias'] = torch.zeros(16)
    torch.save(theirs, tmp_path / 'epic.p')
    return folder, tmp_path / 'epic.p'


def test_converted_weights_give_the_same_vectors(published, tmp_path):
    folder, source = published
    convert_epic(source, tmp_path / 'made', RANKING, folder / 'vocab.txt')
    ours = EpicEncoder(folder)
    theirs = EpicEncoder(tmp_path / 'made')
    np.testing.assert_array_equal(
        ours.encode_dense(['the cat sat']), theirs.encode_dense(['the cat sat'])
    )
    assert ours.encode_query('red moon').as_dict() == theirs.encode_query('red moon').as_dict()
    with pytest.raises(InputError, match='exists'):
        convert_epic(source, tmp_path / 'made', RANKING, folder / 'vocab.txt')


def test_what_does_not_fit_is_refused(published, tmp_path):
    folder, source = published
    short = tmp_path / 'short.txt'
    short.write_text('[PAD]\n[UNK]\n')
    with pytest.raises(DamagedFileError, match=r'vocabulary of 40, .*short.txt has 2 wordpieces'):
        convert_epic(source, tmp_path / 'made', RANKING, short)
    torch.save({'weight': torch.zeros(2)}, tmp_path / 'other.p')
    with pytest.raises(DamagedFileError, match='other.p .* lacks bert.embeddings'):
        convert_epic(tmp_path / 'other.p', tmp_path / 'made', RANKING, folder / 'vocab.txt')
    state = torch.load(source, weights_only=True)
    del state['doc_quality.weight']
    torch.save(state, tmp_path / 'less.p')
    with pytest.raises(DamagedFileError, match='missing: document_quality.weight'):
        convert_epic(tmp_path / 'less.p', tmp_path / 'made', RANKING, folder / 'vocab.txt')
    assert not (tmp_path / 'made').exists()


def test_the_tool_and_the_catalog_name(published, tmp_path, monkeypatch):
    folder, source = published
    given = [str(source), str(tmp_path / 'made'), '--vocabulary', str(folder / 'vocab.txt')]
    assert run(convert_checkpoint.main, ['epic', *given]) == 0
    made, expected = (
        EpicEncoder(place).encode_query('moon') for place in (tmp_path / 'made', folder)
    )
    assert made.as_dict() == expected.as_dict()
    entry = catalog.get('rerankers', 'epic')
    md5 = hashlib.md5(source.read_bytes()).hexdigest()
    monkeypatch.setitem(entry.values['download'], 'md5', md5)  # type: ignore[index]
    downloads = cache_folder() / 'downloads'
    downloads.mkdir()
    (downloads / 'epic.p').write_bytes(source.read_bytes())
    monkeypatch.setattr(
        'pyserini_repbert.systems.epic.conversion.uncased_vocabulary', lambda: folder / 'vocab.txt'
    )
    assert EpicEncoder('epic').name == 'epic'
