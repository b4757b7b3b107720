"""This package's engine on cross-encoders of sentence-transformers; the oracle is that package."""

import json
import random

import numpy as np
import pytest
from safetensors.torch import load_file, save_file
from sentence_folders import TEXTS, write_body, write_json

from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.files import cache_folder
from pyserini_repbert.models.checkpoints.checkpoint import used_models
from pyserini_repbert.names.rerankers import open_reranker
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.rerank.base import ExplanationSettings
from pyserini_repbert.systems.sentence_transformers.pairs import KeptLengths, kept_lengths
from pyserini_repbert.systems.sentence_transformers.reranker import SentenceCrossEncoderReranker

OURS = 'pyserini_repbert'
THEIRS = 'sentence-transformers'
QUERIES = ['the old cat', '', 'a cat sat on an old red sea and sat ' * 3]
KINDS = ['bert', 'roberta', 'xlm-roberta']


def _write(folder, kind='bert', labels=1, **settings):
    """A cross-encoder: with `modules.json`, as from release 6 on, if it has settings."""
    write_body(folder, kind, 'ForSequenceClassification', num_labels=labels)
    if settings:
        module = 'sentence_transformers.base.modules.transformer.Transformer'
        write_json(folder / 'modules.json', [{'idx': 0, 'name': '0', 'path': '', 'type': module}])
        body = {'transformer_task': 'sequence-classification', **settings.pop('body', {})}
        modality = {'text': {'method': 'forward', 'method_output_name': 'logits'}}
        body |= {'modality_config': modality, 'module_output_name': 'scores'}
        write_json(folder / 'sentence_bert_config.json', body)
        values = {'model_type': 'CrossEncoder', **settings}
        write_json(folder / 'config_sentence_transformers.json', values)
    return folder


def _change_config(folder, **values):
    path = folder / 'config.json'
    write_json(path, json.loads(path.read_text()) | values)


def _lists():
    ranking = Ranking(map(str, range(len(TEXTS))), [0.0] * len(TEXTS), TEXTS)
    return [ranking] * len(QUERIES)


def _theirs(folder):
    """Their scores, (queries, texts) or (queries, texts, labels)."""
    from sentence_transformers import CrossEncoder

    pairs = [(query, text) for query in QUERIES for text in TEXTS]
    scores = CrossEncoder(str(folder), device='cpu').predict(pairs)
    return scores.reshape(len(QUERIES), len(TEXTS), *scores.shape[1:])


@pytest.mark.parametrize('seed', range(4))
@pytest.mark.parametrize('kind', KINDS)
def test_scores_of_random_folders_are_theirs(kind, seed, tmp_path):
    chance = random.Random(f'{kind} {seed}')
    names = ['linear.Identity', 'activation.Sigmoid']
    settings = {}
    if seed % 2:
        settings = {'activation_fn': f'torch.nn.modules.{chance.choice(names)}'}
        settings['body'] = {'max_seq_length': chance.randint(8, 40)}
    folder = _write(tmp_path / 'model', kind, **settings)
    if seed == 2:
        name = f'torch.nn.modules.{chance.choice(names)}'
        _change_config(folder, sbert_ce_default_activation_function=name)
    reranker = open_reranker(folder)
    assert isinstance(reranker, SentenceCrossEncoderReranker)
    assert used_models(reranker)[0].engine == OURS
    expected = _theirs(folder)
    assert np.ptp(expected) > 1e-2
    np.testing.assert_allclose(reranker.score_lists(QUERIES, _lists()), expected, atol=1e-5)


@pytest.mark.parametrize(('labels', 'label', 'number'), [(2, None, 1), (3, 'yes', 0), (3, '2', 2)])
def test_of_several_labels_one_counts(labels, label, number, tmp_path):
    folder = _write(tmp_path / 'model', 'roberta', labels, activation_fn=None)
    if labels == 3:
        _change_config(folder, id2label={'0': 'yes', '1': 'no', '2': 'perhaps'})
    options = {}
    if label is not None:
        options['label'] = label
    reranker = open_reranker(folder, options=options)
    logits = _theirs(folder)
    expected = logits[..., number] - np.log(np.exp(logits).sum(axis=2))
    np.testing.assert_allclose(reranker.score_lists(QUERIES, _lists()), expected, atol=1e-5)
    assert reranker.identity()['label'] == number
    explained = reranker.explain(QUERIES[0], _lists()[0], ExplanationSettings())
    np.testing.assert_allclose(explained['probabilities'], np.exp(expected[0]), atol=1e-5)


@pytest.mark.parametrize('label', [None, 'maybe'])
def test_which_of_three_labels_counts_has_to_be_said(label, tmp_path):
    folder = _write(tmp_path / 'model', labels=3)
    with pytest.raises(MismatchError, match='has the labels LABEL_0, LABEL_1, LABEL_2.*say which'):
        SentenceCrossEncoderReranker(folder, label=label)


def test_what_the_engine_does_not_know_is_left_to_them(tmp_path):
    name = 'torch.nn.modules.activation.Tanh'
    folder = _write(tmp_path / 'model', activation_fn=name)
    reranker = open_reranker(folder)
    assert used_models(reranker)[0].engine == THEIRS
    np.testing.assert_allclose(reranker.score_lists(QUERIES, _lists()), _theirs(folder), atol=1e-5)
    with pytest.raises(InputError, match='run by sentence-transformers .*: leave it out') as error:
        open_reranker(folder, backend='onnx')
    assert '\n' not in str(error.value)


@pytest.mark.parametrize(
    ('name', 'error', 'message'),
    [
        ('roberta.embeddings.LayerNorm.bias', DamagedFileError, 'missing: bert.embeddings.Layer'),
        ('classifier.dense.bias', DamagedFileError, 'missing: bert.pooler.dense.bias'),
        ('classifier.out_proj.weight', MismatchError, 'has no classifier'),
    ],
)
def test_a_missing_weight_is_an_error(name, error, message, tmp_path):
    folder = _write(tmp_path / 'model', 'roberta')
    tensors = load_file(folder / 'model.safetensors')
    del tensors[name]
    save_file(tensors, folder / 'model.safetensors', metadata={'format': 'pt'})
    with pytest.raises(error, match=message):
        open_reranker(folder)


def test_prepared_inputs_give_the_same_scores_and_the_work_is_counted(tmp_path):
    reranker = open_reranker(_write(tmp_path / 'model', max_length=20, body={'max_seq_length': 20}))
    expected = reranker.score_lists(QUERIES, _lists())
    before = reranker.work.tokens
    reranker.prepare(QUERIES, _lists())
    assert np.array_equal(reranker.score_lists(QUERIES, _lists()), expected)
    assert reranker.work.tokens == 2 * before
    assert reranker.work.inferences == 2 * len(QUERIES) * len(TEXTS)
    # The long text is cut in all of the two calls' lists, and short ones beside the long query.
    assert reranker.work.truncated >= 2 * len(QUERIES)


@pytest.mark.parametrize(
    ('query', 'text', 'kept'),
    [(3, 4, (3, 4)), (3, 9, (3, 5)), (9, 3, (5, 3)), (9, 9, (4, 4)), (0, 20, (0, 8))],
)
def test_the_longer_text_is_cut_first(query, text, kept):
    assert kept_lengths(query, text, 8) == KeptLengths(*kept)


@pytest.mark.parametrize('first', range(9))
def test_long_pairs_are_cut_as_tokenizers_does(first):
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({'a': 0}, unk_token='a'))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    for room in (5, 6):
        tokenizer.enable_truncation(room, strategy='longest_first')
        for second in range(9):
            types = tokenizer.encode('a ' * first, 'a ' * second).type_ids
            expected = KeptLengths(types.count(0), types.count(1))
            assert kept_lengths(first, second, room) == expected


def test_onnx_reads_another_file_when_the_model_has_changed(tmp_path, monkeypatch):
    digests = []
    monkeypatch.setattr(
        'pyserini_repbert.rerank.onnx_backend.OnnxForward',
        lambda network, digest, int8: digests.append((digest, int8)),
    )
    folder = _write(tmp_path / 'model')
    open_reranker(folder, backend='onnx')
    open_reranker(folder, backend='onnx-int8')
    tensors = load_file(folder / 'model.safetensors')
    tensors['classifier.bias'] += 1
    save_file(tensors, folder / 'model.safetensors', metadata={'format': 'pt'})
    open_reranker(folder, backend='onnx-int8')
    assert [int8 for _, int8 in digests] == [False, True, True]
    assert digests[0][0] == digests[1][0] != digests[2][0]


@pytest.mark.slow
def test_onnx_gives_the_same_scores_and_follows_the_model(tmp_path):
    pytest.importorskip('onnxruntime')
    folder = _write(tmp_path / 'model', 'roberta')
    expected = open_reranker(folder).score_lists(QUERIES, _lists())
    on_onnx = open_reranker(folder, backend='onnx')
    assert on_onnx.precision == 'float32'
    np.testing.assert_allclose(on_onnx.score_lists(QUERIES, _lists()), expected, atol=1e-5)
    tensors = load_file(folder / 'model.safetensors')
    tensors['classifier.out_proj.bias'] += 1
    save_file(tensors, folder / 'model.safetensors', metadata={'format': 'pt'})
    changed = open_reranker(folder).score_lists(QUERIES, _lists())
    assert np.abs(np.subtract(changed, expected)).min() > 1e-2
    again = open_reranker(folder, backend='onnx')
    np.testing.assert_allclose(again.score_lists(QUERIES, _lists()), changed, atol=1e-5)
    assert len(list((cache_folder() / 'onnx').glob('*-float32.onnx'))) == 2


@pytest.mark.slow
@pytest.mark.parametrize('kind', ['bert', 'xlm-roberta'])
def test_weights_of_8_bits_change_scores_a_little(kind, tmp_path):
    pytest.importorskip('onnxruntime')
    folder = _write(tmp_path / 'model', kind)
    expected = open_reranker(folder).score_lists(QUERIES, _lists())
    reranker = open_reranker(folder, backend='onnx-int8', precision='auto')
    assert reranker.precision == 'int8'
    difference = np.abs(np.subtract(reranker.score_lists(QUERIES, _lists()), expected))
    assert 0 < difference.max() < 0.35
