"""The optimizer of BERT's TensorFlow code, the schedules, and what is left as it is."""

import numpy as np
import pytest
import torch
from trained_models import SYSTEMS

from pyserini_repbert.errors import InputError
from pyserini_repbert.tasks.recipe import Training
from pyserini_repbert.train.optimizing import BertAdam, rate_factor
from pyserini_repbert.train.training import train


def test_adam_without_bias_correction():
    """Two steps by hand: gradients 0.5 and -0.25, rate 0.1, decay 0.01, from the weight 2.

    m = 0.05, v = 0.00025, change = 0.05 / (sqrt(0.00025) + 1e-6) + 0.02 = 3.18208 (3.16208 + 0.02);
    m = 0.02, v = 0.00031225, change = 0.02 / (sqrt(0.00031225) + 1e-6) + 0.01 * 1.681792.
    """
    weight = torch.nn.Parameter(torch.tensor([2.0], dtype=torch.float64))
    optimizer = BertAdam([{'params': [weight], 'lr': 0.1, 'weight_decay': 0.01}])
    weights = []
    for gradient in (0.5, -0.25):
        weight.grad = torch.tensor([gradient], dtype=torch.float64)
        optimizer.step()
        weights.append(weight.item())
    first = 2 - 0.1 * (0.05 / (np.sqrt(0.00025) + 1e-6) + 0.02)
    second = first - 0.1 * (0.02 / (np.sqrt(0.00031225) + 1e-6) + 0.01 * first)
    assert weights == pytest.approx([first, second], abs=1e-12)
    assert first == pytest.approx(1.68179, abs=1e-4)


@pytest.mark.parametrize(
    ('settings', 'expected'),
    [
        ({}, [0, 0.5, 1, 0.75, 0.5, 0]),
        ({'schedule': 'constant'}, [0, 0.5, 1, 1, 1, 1]),
        # BERT's code: 1 - step / 10 from the first step on, and the warm-up before.
        ({'schedule': 'bert'}, [0, 0.5, 0.8, 0.6, 0.4, 0]),
        ({'schedule_steps': 18}, [0, 0.5, 1, 0.875, 0.75, 0.5]),
    ],
)
def test_schedules(settings, expected):
    training = Training(steps=10, batch_size=1, warmup_steps=2, **settings)
    factors = [rate_factor(step, training) for step in (0, 1, 2, 4, 6, 10)]
    assert factors == pytest.approx(expected)


@pytest.mark.parametrize('system', ['monobert', 'epic', 'cedr'])
def test_a_frozen_bert_stays_as_it_was(system, tiny_recipe, tmp_path):
    from safetensors.torch import load_file

    training = {'learning_rate': 0, 'head_learning_rate': 1e-2, 'steps': 3}
    train(
        tiny_recipe(system, ranking=SYSTEMS[system], training=training),
        tmp_path / 'out',
        device='cpu',
    )
    before = load_file(tmp_path / 'base/model.safetensors')
    after = load_file(tmp_path / 'out/model.safetensors')
    compared = [name for name in before if name.startswith('bert.') and name in after]
    assert len(compared) > 30
    for name in compared:
        torch.testing.assert_close(after[name], before[name], rtol=0, atol=0)


def test_a_frozen_repbert_has_nothing_to_train(tiny_recipe, tmp_path):
    training = {'learning_rate': 0, 'head_learning_rate': 1e-2, 'steps': 3}
    recipe = tiny_recipe('repbert', ranking=SYSTEMS['repbert'], training=training)
    with pytest.raises(InputError, match='repbert adds nothing'):
        train(recipe, tmp_path / 'out', device='cpu')
    assert not list(tmp_path.glob('out*'))


def test_a_training_with_bert_s_optimizer_resumes_to_the_same_bytes(
    tiny_recipe, tmp_path, monkeypatch
):
    from trained_models import killed_at

    training = {'optimizer': 'bert', 'schedule': 'bert', 'warmup_steps': 2}
    recipe = tiny_recipe('monobert', ranking=SYSTEMS['monobert'], training=training)
    train(recipe, tmp_path / 'whole', device='cpu')
    killed_at(5, recipe, tmp_path / 'out', monkeypatch)
    train(recipe, tmp_path / 'out', device='cpu', resume=True)
    weights = [(tmp_path / name / 'model.safetensors').read_bytes() for name in ('whole', 'out')]
    assert weights[0] == weights[1]
