import itertools
import json
import random

import numpy as np
import pytest
import torch

from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.files import cache_folder
from pyserini_repbert.ranking import Candidate, Query, Ranking
from pyserini_repbert.rerank import DuoBertReranker, MonoBertReranker
from pyserini_repbert.rerank.cross_encoder import checked_length
from pyserini_repbert.systems.duobert.reranker import sample_seed
from pyserini_repbert.trace import Notes
from tests.rerank.many import cost_of

WORDS = 'cat dog fish bird sat ate ran mat hat red blue the a on in big small old new'.split()


def candidates(n, seed=0, longest=60):
    chooser = random.Random(seed)
    texts = [' '.join(chooser.choices(WORDS, k=chooser.randint(1, longest))) for _ in range(n)]
    return [Candidate(f'd{number}', float(-number), text) for number, text in enumerate(texts)]


def scores(reranker, query, items):
    return reranker.score_lists([query], [items])[0]


@pytest.mark.parametrize('kind', ['monobert', 'duobert'])
def test_a_score_does_not_depend_on_its_batch_or_place(kind, cross_encoder_folder):
    items = candidates(12 if kind == 'monobert' else 5)
    other = candidates(7, seed=1)
    if kind == 'monobert':
        many = MonoBertReranker(cross_encoder_folder('monobert'))
        one = MonoBertReranker(many.checkpoint, token_budget=1)
        expected = np.concatenate([scores(one, 'red cat', [item]) for item in items])
    else:
        many = DuoBertReranker(cross_encoder_folder('duobert'))
        one = DuoBertReranker(many.checkpoint, token_budget=1)
        expected = scores(one, 'red cat', items)
    together = many.score_lists(['blue dog', 'red cat'], [other, items])[1]
    np.testing.assert_allclose(together, expected, atol=1e-5, rtol=0)
    order = random.Random(3).sample(range(len(items)), len(items))
    shuffled = scores(many, 'red cat', [items[place] for place in order])
    np.testing.assert_allclose(shuffled, expected[order], atol=1e-5, rtol=0)


def test_a_head_of_one_label_equals_sentence_transformers(cross_encoder_folder):
    from sentence_transformers import CrossEncoder

    folder = cross_encoder_folder(
        labels=1,
        architectures=['BertForSequenceClassification'],
        id2label={'0': 'LABEL_0'},
        label2id={'LABEL_0': 0},
    )
    (folder / 'tokenizer_config.json').write_text(
        json.dumps(
            {'tokenizer_class': 'BertTokenizer', 'do_lower_case': True, 'model_max_length': 48}
        )
    )
    items = candidates(6)
    theirs = CrossEncoder(str(folder), device='cpu', max_length=48)
    expected = theirs.predict(
        [('red cat', item.text) for item in items], activation_fn=torch.nn.LogSigmoid()
    )
    reranker = MonoBertReranker(folder, layout='pygaggle_fast_tokenizer')
    np.testing.assert_allclose(scores(reranker, 'red cat', items), expected, atol=1e-5)


def test_the_order_survives_saturated_probabilities(cross_encoder_folder):
    folder = cross_encoder_folder()
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / 'model.safetensors')
    tensors['classifier.weight'] *= 60
    tensors['classifier.bias'] = torch.tensor([-200.0, 200.0])
    save_file(tensors, folder / 'model.safetensors')
    reranker = MonoBertReranker(folder)
    found = reranker.rerank('red cat', candidates(20))
    assert all(np.float32(np.exp(item.score)) == 1.0 for item in found)
    assert len({item.score for item in found}) == 20
    assert all(first.score > second.score for first, second in itertools.pairwise(found))


def test_each_query_has_a_sample_of_its_own(cross_encoder_folder):
    reranker = DuoBertReranker(cross_encoder_folder('duobert'), method='sample', samples=2, seed=4)
    items = [Candidate(f'd{number}', text=f'cat {number}') for number in range(6)]
    queries = ['red cat', 'blue fish', 'red cat']
    drawn = [~np.isnan(found) for found in reranker.pair_differences(queries, [items] * 3)]
    assert all(used.sum(axis=1).tolist() == [2] * 6 for used in drawn)
    assert not np.array_equal(drawn[0], drawn[1])
    np.testing.assert_array_equal(drawn[0], drawn[2])
    other = DuoBertReranker(reranker.checkpoint, method='sample', samples=2, seed=5)
    assert not np.array_equal(drawn[0], ~np.isnan(other.pair_differences(queries[:1], [items])[0]))
    assert sample_seed(4, 'red cat') == (
        4,
        322790556,
    )  # CRC-32: the same on every machine and in every process


@pytest.mark.parametrize('kind', [MonoBertReranker, DuoBertReranker])
def test_odd_candidates_have_a_defined_answer(kind, cross_encoder_folder):
    reranker = kind(cross_encoder_folder(kind.system))
    assert reranker.rerank('red cat', []) == []
    given = [
        Candidate('empty', 3.0, ''),
        Candidate('long', 2.0, 'big old cat sat on the mat . ' * 700),  # 5,600 words
        Candidate('accents', 1.0, 'Grüße, 猫が座った \u202e\x00 🐈'),
        Candidate('space', 0.5, ' \n\t'),
    ]
    before = list(given)
    found = reranker.rerank('', given)
    assert given == before
    assert sorted(item.docid for item in found) == sorted(item.docid for item in given)
    assert np.isfinite([item.score for item in found]).all()
    cost = cost_of(reranker, [''], [given])
    assert (cost.candidates, cost.truncated) == (4, 1)
    by_docid = {item.docid: item for item in found}
    if kind is MonoBertReranker:
        assert by_docid['empty'].score == pytest.approx(by_docid['space'].score, abs=1e-6)
    assert [item.docid for item in reranker.rerank('red cat', given, k=2)] == [
        item.docid for item in reranker.rerank('red cat', given)[:2]
    ]


@pytest.mark.parametrize('kind', [MonoBertReranker, DuoBertReranker])
def test_candidates_that_cannot_be_scored(kind, cross_encoder_folder):
    reranker = kind(cross_encoder_folder(kind.system))
    with pytest.raises(InputError, match="candidate 'd1' has no text: name the corpus"):
        reranker.rerank('red cat', [Candidate('d0', 0, 'cat'), Candidate('d1')])
    with pytest.raises(InputError, match="candidate 'd0' comes twice"):
        reranker.rerank('red cat', [Candidate('d0', 0, 'cat'), Candidate('d0', 0, 'dog')])


def test_wrong_checkpoints_are_refused(cross_encoder_folder, tiny_checkpoint):
    repbert = tiny_checkpoint('repbert')
    with pytest.raises(MismatchError, match="is for the system 'repbert', 'monobert' was expected"):
        MonoBertReranker(repbert)
    plain = tiny_checkpoint('plain', ranking={'system': 'duobert'})
    with pytest.raises(MismatchError, match='has no classifier, duobert needs'):
        DuoBertReranker(plain)
    with pytest.raises(MismatchError, match='3 labels, monobert needs one of 2'):
        MonoBertReranker(cross_encoder_folder(labels=3, name='three'))
    with pytest.raises(MismatchError, match="'duobert', 'monobert' was expected"):
        MonoBertReranker(cross_encoder_folder('duobert'))
    broken = cross_encoder_folder(name='broken')
    (broken / 'model.safetensors').write_bytes((broken / 'model.safetensors').read_bytes()[:-100])
    with pytest.raises(DamagedFileError):
        MonoBertReranker(broken)


def test_half_precision_keeps_the_head_in_float32(cross_encoder_folder):
    folder = cross_encoder_folder()
    items = candidates(10)
    full = scores(MonoBertReranker(folder), 'red cat', items)
    reranker = MonoBertReranker(folder, precision='bfloat16')
    model = reranker._forward
    assert model.classifier.weight.dtype == model.bert.pooler.dense.weight.dtype == torch.float32
    assert model.bert.encoder.layer[0].output.dense.weight.dtype == torch.bfloat16
    half = scores(reranker, 'red cat', items)
    assert len(set(half)) == 10
    np.testing.assert_allclose(half, full, atol=0.1)
    assert reranker.identity()['dtype'] == 'bfloat16'


def test_copies_that_work_at_the_same_time_have_costs_of_their_own(cross_encoder_folder):
    reranker = MonoBertReranker(cross_encoder_folder('monobert'))
    few = reranker.with_settings(reads=2)
    many = reranker.with_settings(reads=5)
    topics = [Query('1', 'red cat')]
    run = {'1': Ranking.of(candidates(5))}
    inner = Notes()
    outer = Notes()
    outer.advance = lambda n: inner.cost or many.rank(topics, run, None, inner)
    few.rank(topics, run, None, outer)
    assert (outer.cost.inferences, inner.cost.inferences) == (2, 5)
    assert (outer.cost.candidates, inner.cost.candidates) == (2, 5)


@pytest.mark.parametrize('length', [1, 5])
def test_the_shortest_and_the_longest_input(length):
    assert checked_length('tiny', length, 5) == length


@pytest.mark.parametrize('length', [0, 6])
def test_a_length_that_the_model_does_not_read(length):
    message = f"maximum length {length} was given, 'tiny' reads 5 tokens: give 1 to 5"
    with pytest.raises(InputError, match=message):
        checked_length('tiny', length, 5)


@pytest.mark.parametrize('backend', ['onnx', 'onnx-int8'])
def test_onnx_takes_no_other_precision(backend, cross_encoder_folder):
    with pytest.raises(InputError, match='runs in float32 on a CPU: leave out device and'):
        MonoBertReranker(cross_encoder_folder(), backend=backend, precision='bfloat16')


@pytest.mark.parametrize(('backend', 'precision'), [('onnx', 'float32'), ('onnx-int8', 'int8')])
def test_automatic_precision_is_not_bfloat16_for_onnx(
    backend, precision, cross_encoder_folder, native_bfloat16, monkeypatch
):
    native_bfloat16(True)
    monkeypatch.setattr(
        'pyserini_repbert.rerank.onnx_backend.OnnxForward', lambda network, digest, int8: None
    )
    reranker = MonoBertReranker(cross_encoder_folder(), backend=backend, precision='auto')
    assert reranker.precision == precision


@pytest.mark.parametrize(
    'kind', [MonoBertReranker, pytest.param(DuoBertReranker, marks=pytest.mark.slow)]
)
def test_onnx_gives_the_same_scores(kind, cross_encoder_folder):
    folder = cross_encoder_folder(kind.system)
    items = candidates(6)
    expected = scores(kind(folder), 'red cat', items)
    np.testing.assert_allclose(
        scores(kind(folder, backend='onnx'), 'red cat', items), expected, atol=1e-5
    )
    int8 = scores(kind(folder, backend='onnx-int8'), 'red cat', items)
    assert 0 < np.abs(int8 - expected).max() < 0.5
    onnx = pytest.importorskip('onnx')
    files = sorted((cache_folder() / 'onnx').glob('*.onnx'))
    assert len(files) == 2
    for path in files:
        # Softmax's guard against rows without tokens is dropped.
        assert 'IsNaN' not in {node.op_type for node in onnx.load(path).graph.node}
