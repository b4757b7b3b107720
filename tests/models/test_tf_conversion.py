import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from rehearsal.tensor_bundle import write_bundle

from pyserini_repbert import catalog
from pyserini_repbert.checksums import digest
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import cache_folder
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint, open_checkpoint
from pyserini_repbert.models.convert.tensor_bundle import TensorBundle
from pyserini_repbert.models.convert.tensorflow import convert_tensorflow
from pyserini_repbert.rerank import DuoBertReranker
from tools import convert_checkpoint

WRITTEN = Path(__file__).parent / 'tf_checkpoint'
PREFIX = WRITTEN / 'model.ckpt-7'
RANKING = {'system': 'duobert', 'max_query_length': 4, 'max_length': 16}


def test_a_checkpoint_that_tensorflow_wrote():
    bundle = TensorBundle(PREFIX)
    assert len(bundle.shapes()) == 44
    assert bundle.shapes()['bert/embeddings/word_embeddings'] == (20, 8)
    expected = np.load(WRITTEN / 'expected.npz')
    for name in expected.files:
        np.testing.assert_array_equal(bundle.tensor(name), expected[name])
        assert bundle.tensor(name).dtype == expected[name].dtype


@pytest.mark.parametrize(('per_block', 'shards'), [(1, 1), (7, 3), (1000, 2)])
def test_tables_of_several_blocks_and_files(per_block, shards, tmp_path):
    rng = np.random.default_rng(0)
    tensors = {
        f'layer_{n}/kernel': rng.normal(size=(n + 1, 300)).astype('float32') for n in range(40)
    }
    tensors |= {
        'half': np.ones(3, dtype='float16'),
        'step': np.array(5),
        'empty': np.empty((0, 4), dtype='float32'),
    }
    write_bundle(tmp_path / 'model.ckpt', tensors, per_block, shards)
    bundle = TensorBundle(tmp_path / 'model.ckpt')
    assert bundle.shapes() == {name: tensors[name].shape for name in sorted(tensors)}
    for name, value in tensors.items():
        np.testing.assert_array_equal(bundle.tensor(name), value)


def test_one_of_several_checkpoints_is_named(tmp_path):
    for file in WRITTEN.glob('model.ckpt-7.*'):
        for number in '78':
            (tmp_path / file.name.replace('7', number)).write_bytes(file.read_bytes())
    arguments = ['duobert', str(tmp_path), str(tmp_path / 'made')]
    with pytest.raises(InputError, match=r'the name of one of these: model.ckpt-7, model.ckpt-8$'):
        convert_checkpoint.main(arguments)
    convert_checkpoint.main([*arguments, '--checkpoint', 'model.ckpt-8'])
    assert open_checkpoint(tmp_path / 'made').system('duobert')


def test_a_checkpoint_becomes_a_folder(tmp_path):
    archive = tmp_path / 'published.zip'
    with zipfile.ZipFile(archive, 'w') as packed:
        for file in WRITTEN.glob('model.ckpt-7.*'):
            packed.write(file, f'published/{file.name}')
        packed.writestr(
            'published/bert_config.json', '{"hidden_act": "relu", "num_attention_heads": 2}'
        )
        packed.writestr('published/vocab.txt', '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n')
        packed.writestr('published/model.ckpt-7.meta', 'not needed')
    target = tmp_path / 'made'
    convert_tensorflow(archive, target, RANKING)
    assert sorted(file.name for file in target.iterdir()) == [
        'config.json',
        'model.safetensors',
        'sha256sums',
        'vocab.txt',
    ]
    assert sorted(file.name for file in tmp_path.iterdir()) == ['made', 'published.zip']
    config = json.loads((target / 'config.json').read_text())
    assert config['ranking'] == RANKING
    assert (config['num_hidden_layers'], config['type_vocab_size'], config['hidden_act']) == (
        2,
        3,
        'relu',
    )
    assert (
        config['intermediate_size'],
        config['max_position_embeddings'],
        config['vocab_size'],
    ) == (12, 16, 20)
    tensors = Checkpoint.open(target).tensors()
    bundle = TensorBundle(PREFIX)
    for name, theirs, transposed in (
        ('bert.embeddings.word_embeddings.weight', 'bert/embeddings/word_embeddings', False),
        (
            'bert.encoder.layer.1.intermediate.dense.weight',
            'bert/encoder/layer_1/intermediate/dense/kernel',
            True,
        ),
        (
            'bert.encoder.layer.0.attention.self.query.bias',
            'bert/encoder/layer_0/attention/self/query/bias',
            False,
        ),
        (
            'bert.encoder.layer.0.output.LayerNorm.weight',
            'bert/encoder/layer_0/output/LayerNorm/gamma',
            False,
        ),
        ('bert.embeddings.LayerNorm.bias', 'bert/embeddings/LayerNorm/beta', False),
        ('bert.pooler.dense.weight', 'bert/pooler/dense/kernel', True),
        ('classifier.weight', 'output_weights', False),
        ('classifier.bias', 'output_bias', False),
    ):
        value = bundle.tensor(theirs)
        np.testing.assert_array_equal(tensors[name].numpy(), value.T if transposed else value)
    assert not any('adam' in name or 'global' in name for name in tensors)

    assert DuoBertReranker(target).name == str(target)


def test_the_catalogs_entries_are_converted_on_first_use(tmp_path, monkeypatch):
    values = dict(catalog.get('rerankers', 'duobert-large').values)
    archive = cache_folder() / 'downloads' / values['download']['file']
    archive.parent.mkdir(parents=True)
    with zipfile.ZipFile(archive, 'w') as packed:
        for file in WRITTEN.glob('model.ckpt-7.*'):
            packed.write(file, file.name)
    values['download'] = values['download'] | {'md5': digest(archive, 'md5')}
    entry = catalog.Entry('rerankers', 'duobert-large', values)
    monkeypatch.setattr(
        catalog, 'find', lambda kind, name: entry if name == 'duobert-large' else None
    )
    vocabulary = tmp_path / 'vocab.txt'
    vocabulary.write_text('[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n')
    monkeypatch.setattr(
        'pyserini_repbert.models.convert.pytorch.uncased_vocabulary', lambda: vocabulary
    )
    checkpoint = open_checkpoint('duobert-large', 'rerankers')
    assert checkpoint.system('duobert')['max_query_length'] == 62
    assert checkpoint.folder == cache_folder() / 'checkpoints' / 'duobert-large'


def test_the_script(tmp_path, capsys):
    vocabulary = tmp_path / 'vocab.txt'
    vocabulary.write_text('[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n')
    convert_checkpoint.main(
        ['monobert', str(PREFIX), str(tmp_path / 'made'), '--vocabulary', str(vocabulary)]
    )
    assert Checkpoint.open(tmp_path / 'made').system('monobert')['max_query_length'] == 64
    assert 'monobert' in capsys.readouterr().out


def test_a_bert_without_a_head_becomes_a_base(tmp_path):
    """As the authors of monoBERT pre-trained one for TREC CAR: the heads of pre-training are
    dropped.
    """
    bundle = TensorBundle(PREFIX)
    tensors = {
        name: bundle.tensor(name) for name in bundle.shapes() if not name.startswith('output_')
    }
    tensors['cls/predictions/output_bias'] = np.zeros(20, dtype='float32')
    (tmp_path / 'published').mkdir()
    write_bundle(tmp_path / 'published/model.ckpt-1000000', tensors)
    (tmp_path / 'published/vocab.txt').write_text('[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n')
    (tmp_path / 'published/bert_config.json').write_text('{"num_attention_heads": 2}')
    arguments = ['bert', str(tmp_path / 'published'), str(tmp_path / 'made')]
    convert_checkpoint.main(arguments)
    made = open_checkpoint(tmp_path / 'made')
    assert 'ranking' not in made.config
    assert 'bert.pooler.dense.weight' in made.tensors()
    np.testing.assert_array_equal(
        made.tensors()['bert.embeddings.word_embeddings.weight'],
        bundle.tensor('bert/embeddings/word_embeddings'),
    )
