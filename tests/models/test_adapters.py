"""Adapters over adapters, checkpoints that ship with the package, and what an index knows of
them.
"""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from pyserini_repbert import catalog
from pyserini_repbert.checksums import digest
from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder, encode_corpus
from pyserini_repbert.errors import DamagedFileError, MismatchError, MissingResourceError
from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.names.indexes import NamedIndex, locate
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank import CedrReranker
from pyserini_repbert.search import DenseSearcher

ADAPTED = 'bert.encoder.layer.0.attention.self.query'
REPBERT = {'system': 'repbert', 'max_query_length': 8, 'max_doc_length': 16}
CEDR = {'system': 'cedr', 'max_query_length': 6}


@pytest.fixture
def resources(tmp_path, tiny_checkpoint, tiny_cedr, monkeypatch):
    """Shipped: the checkpoint 'tiny', the adapters 'demo' and 'vanilla' over it, and 'knrm' over
    'vanilla'.
    """
    folder = tmp_path / 'resources'
    (folder / 'checkpoints').mkdir(parents=True)
    tiny_checkpoint().rename(folder / 'checkpoints/tiny')
    heads = {architecture: tiny_cedr(architecture) for architecture in ('vanilla', 'knrm')}

    def adapter(name, base, seed, ranking, head=None):
        made = folder / 'checkpoints' / name
        made.mkdir()
        config = json.loads((folder / 'checkpoints/tiny/config.json').read_text())
        (made / 'config.json').write_text(
            json.dumps(config | {'ranking': ranking, 'adapter_holds_heads': True})
        )
        (made / 'adapter_config.json').write_text(
            json.dumps(
                {'base_model_name_or_path': base, 'r': 2, 'lora_alpha': 6, 'peft_type': 'LORA'}
            )
        )
        torch.manual_seed(seed)
        tensors = {
            f'base_model.model.{ADAPTED}.lora_A.weight': torch.randn(2, 16),
            f'base_model.model.{ADAPTED}.lora_B.weight': torch.randn(16, 2),
        }
        if head is not None:
            own = load_file(head / 'model.safetensors')
            tensors |= {
                f'base_model.model.{key}': own[key] for key in own if not key.startswith('bert.')
            }
        save_file(tensors, made / 'adapter_model.safetensors')
        return {
            'description': name,
            'base': base,
            'resource': f'checkpoints/{name}',
            'sha256': {'adapter_model.safetensors': digest(made / 'adapter_model.safetensors')},
        }

    shipped = {
        'indexes': {'small': {'encoder': 'demo'}},
        'encoders': {
            'tiny': {'description': 'tiny', 'resource': 'checkpoints/tiny'},
            'demo': adapter('demo', 'tiny', 1, REPBERT),
        },
        'rerankers': {
            'vanilla': adapter(
                'vanilla', 'tiny', 2, CEDR | {'architecture': 'vanilla'}, heads['vanilla']
            ),
            'knrm': adapter('knrm', 'vanilla', 3, CEDR | {'architecture': 'knrm'}, heads['knrm']),
        },
    }
    monkeypatch.setattr(catalog, 'RESOURCES', folder)
    monkeypatch.setattr(
        catalog,
        'entries',
        lambda kind: {
            name: catalog.Entry(kind, name, values)
            for name, values in shipped.get(kind, {}).items()
        },
    )
    return folder / 'checkpoints'


def update(folder):
    own = load_file(folder / 'adapter_model.safetensors')
    down, up = (own[f'base_model.model.{ADAPTED}.lora_{which}.weight'] for which in 'AB')
    return 3 * up @ down


def test_an_adapter_over_an_adapter_adds_both_updates(resources):
    """W + 3 B1 A1 + 3 B2 A2, alpha being 6 and r 2; all else is the base's, heads are the last
    adapter's.
    """
    opened = open_checkpoint('knrm', 'rerankers')
    weight = load_file(resources / 'tiny/model.safetensors')[f'{ADAPTED}.weight']
    expected = weight + update(resources / 'vanilla') + update(resources / 'knrm')
    tensors = opened.tensors()
    torch.testing.assert_close(tensors[f'{ADAPTED}.weight'], expected)
    assert 'combine.weight' in tensors and 'cls.weight' not in tensors
    assert (opened.base.name, opened.base.base.name, opened.base.base.base) == (
        'vanilla',
        'tiny',
        None,
    )
    assert opened.tokenizer().ids(['the cat']) == open_checkpoint('tiny').tokenizer().ids(
        ['the cat']
    )
    candidates = [Candidate('a', 0, 'the cat sat'), Candidate('b', 0, 'a big dog')]
    found = {name: CedrReranker(name).rerank('cat', candidates) for name in ('knrm', 'vanilla')}
    assert {item.score for item in found['knrm']}.isdisjoint(
        item.score for item in found['vanilla']
    )


def test_the_checksum_covers_every_file_that_the_weights_come_from(resources):
    """And the scale, which stands in adapter_config.json alone."""
    seen = {open_checkpoint('knrm', 'rerankers').weights_sha256}
    tensors = load_file(resources / 'tiny/model.safetensors')
    save_file(
        {name: value + 1 for name, value in tensors.items()}, resources / 'tiny/model.safetensors'
    )
    seen.add(open_checkpoint('knrm', 'rerankers').weights_sha256)
    path = resources / 'vanilla/adapter_config.json'
    path.write_text(path.read_text().replace('"lora_alpha": 6', '"lora_alpha": 8'))
    seen.add(open_checkpoint('knrm', 'rerankers').weights_sha256)
    assert len(seen) == 3
    assert open_checkpoint('tiny').weights_sha256 == digest(resources / 'tiny/model.safetensors')


def test_an_index_refuses_an_adapter_over_another_base(resources, corpus_file, tmp_path):
    encode_corpus(open_corpus(corpus_file(3)), RepBertDocumentEncoder('demo'), tmp_path / 'index')
    assert DenseSearcher(tmp_path / 'index').query_encoder.name == 'demo'
    with pytest.raises(MismatchError, match="other weights or settings than encoder 'tiny'"):
        DenseSearcher(tmp_path / 'index', 'tiny')
    tensors = load_file(resources / 'tiny/model.safetensors')
    save_file(
        {name: value + 1 for name, value in tensors.items()}, resources / 'tiny/model.safetensors'
    )
    with pytest.raises(MismatchError, match="other weights or settings than encoder 'demo'"):
        DenseSearcher(tmp_path / 'index', 'demo')


def test_a_shipped_checkpoint_is_the_pinned_one(resources):
    assert RepBertQueryEncoder('demo').dimension == 16
    (resources / 'demo/adapter_model.safetensors').write_bytes(b'others')
    with pytest.raises(
        DamagedFileError, match="not the file that 'demo' was measured with .* install"
    ):
        open_checkpoint('demo')
    (resources / 'demo').rename(resources / 'elsewhere')
    with pytest.raises(MissingResourceError, match="'demo' should be at .*checkpoints/demo"):
        open_checkpoint('demo')


def test_a_catalog_index_belongs_to_the_weights_that_ship(resources):
    """What an earlier release's checkpoint encoded is not taken for an index of this one's."""
    sha256 = catalog.get('encoders', 'demo').values['sha256']['adapter_model.safetensors']
    found = locate('small')
    assert isinstance(found, NamedIndex) and found.folder.name == f'small.demo.{sha256[:8]}'
    assert locate('small', 'tiny').folder.name == 'small.tiny'
