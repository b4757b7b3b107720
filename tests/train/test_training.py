"""Whole trainings of tiny models: they learn, repeat themselves, resume, and give checkpoints
that open.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from trained_models import REPBERT, SYSTEMS, losses, scores

from pyserini_repbert.errors import InputError
from pyserini_repbert.rerank import CedrReranker
from pyserini_repbert.train.result import read_log
from pyserini_repbert.train.training import train

ODD = {
    'monobert': {'layout': 'dl4marco'},
    'epic': {'variant': 'paper_strict'},
    'cedr': {'pad_query': False},
}


@pytest.mark.parametrize('system', SYSTEMS)
def test_adapters_are_small_and_open_over_their_base(system, tiny_recipe, tmp_path):
    adapter = {'rank': 2, 'alpha': 4}
    train(
        tiny_recipe(system, ranking=SYSTEMS[system], adapter=adapter),
        tmp_path / 'out',
        device='cpu',
    )
    config = json.loads((tmp_path / 'out/adapter_config.json').read_text(encoding='utf-8'))
    assert config['base_model_name_or_path'] == str(tmp_path / 'base')
    assert config['r'] == 2
    assert not (tmp_path / 'out/model.safetensors').exists()
    assert np.isfinite(scores(system, tmp_path / 'out')).all()


@pytest.mark.parametrize('system', SYSTEMS)
def test_what_a_recipe_leaves_open_is_the_bases(system, tiny_recipe, tmp_path, caplog):
    """The base's lengths, layout and variant are those that its weights were trained with."""
    caplog.set_level('INFO', 'pyserini_repbert.train')
    settings = {**SYSTEMS[system], **ODD.get(system, {})}
    train(
        tiny_recipe(system, ranking=settings, training={'steps': 1}),
        tmp_path / 'first',
        device='cpu',
    )
    recipe = tiny_recipe(system, ranking={'max_query_length': 5}, training={'steps': 1})
    train(replace(recipe, base=str(tmp_path / 'first')), tmp_path / 'second', device='cpu')
    first, second = (
        json.loads((tmp_path / name / 'config.json').read_text())['ranking']
        for name in ('first', 'second')
    )
    assert second == {**first, 'max_query_length': 5}
    assert first.items() >= settings.items()
    line = next(
        record.message for record in reversed(caplog.records) if '(recipe)' in record.message
    )
    assert (
        line.startswith(f'{system}: ')
        and 'max_query_length 5 (recipe)' in line
        and '(base)' in line
    )


@pytest.mark.parametrize('system', ['repbert', 'epic'])
def test_batches_from_workers_train_the_same_bytes(system, tiny_recipe, tmp_path, caplog):
    caplog.set_level('INFO', 'pyserini_repbert.train')
    for workers in (0, 2):
        recipe = tiny_recipe(system, ranking=SYSTEMS[system], training={'workers': workers})
        train(recipe, tmp_path / str(workers), device='cpu')
    assert losses(tmp_path / '0') == losses(tmp_path / '2')
    weights = [(tmp_path / name / 'model.safetensors').read_bytes() for name in ('0', '2')]
    assert weights[0] == weights[1]
    assert 'steps/s' in caplog.text and 'pairs/s' in caplog.text and 'TFLOP/s' in caplog.text


def test_one_seed_gives_the_same_losses_and_another_does_not(tiny_recipe, tmp_path):
    for name, seed in (('a', 1), ('b', 1), ('c', 2)):
        recipe = tiny_recipe('monobert', ranking=SYSTEMS['monobert'], training={'seed': seed})
        train(recipe, tmp_path / name, device='cpu')
    assert losses(tmp_path / 'a') == losses(tmp_path / 'b')
    assert losses(tmp_path / 'a') != losses(tmp_path / 'c')


def test_a_short_training_logs_its_loss(tiny_recipe, tmp_path):
    """Five steps, a line for each two, and the last one: their weighted mean is the card's."""
    trained = {}
    for every, steps in ((2, ['2', '4', '5']), (50, ['5'])):
        training = {'steps': 5, 'log_every': every, 'save_every': every}
        recipe = tiny_recipe('monobert', ranking=SYSTEMS['monobert'], training=training)
        trained[every] = train(recipe, tmp_path / str(every), device='cpu')
        assert [row['step'] for row in read_log(tmp_path / f'{every}/log.csv')] == steps
    a, b, c = losses(tmp_path / '2')
    assert trained[2].loss == pytest.approx((2 * a + 2 * b + c) / 5)
    assert trained[50].loss == pytest.approx(trained[2].loss, abs=1e-5) and trained[50].loss > 0


@pytest.mark.parametrize('system', SYSTEMS)
def test_models_learn_what_they_are_shown_and_open(system, tiny_recipe, tmp_path, world):
    """Two topics of a fold, again and again: the loss falls."""
    (tmp_path / 'fold.txt').write_text('q0\nq7\n', encoding='utf-8')
    data = [
        {
            **{key: world[key] for key in ('topics', 'qrels', 'corpus', 'run')},
            'qids': str(tmp_path / 'fold.txt'),
        }
    ]
    training = {'steps': 60, 'learning_rate': 3e-3, 'dropout': 0, 'log_every': 10, 'save_every': 60}
    train(
        tiny_recipe(system, ranking=SYSTEMS[system], data=data, training=training),
        tmp_path / 'out',
        device='cpu',
    )
    by_ten_steps = losses(tmp_path / 'out')
    assert len(by_ten_steps) == 6 and by_ten_steps[-1] < 0.7 * by_ten_steps[0], by_ten_steps
    assert np.isfinite(scores(system, tmp_path / 'out')).all()
    assert not (tmp_path / 'out.training').exists()


def test_early_stopping_rolls_back_to_the_best_model(tiny_recipe, tmp_path, world, monkeypatch):
    """0.9 before training; then 0.2, 0.8, and three without gain: step 5 is the last, and step
    2's model is kept.
    """
    from pyserini_repbert.train import validation as module
    from pyserini_repbert.train.checkpoints import write_checkpoint

    measured = iter([0.9, 0.2, 0.8, 0.1, 0.3, 0.8])
    kept = []

    def measure(self, task, base):
        kept.append(tmp_path / f'step{len(kept)}')
        kept[-1].mkdir()
        write_checkpoint(kept[-1], task, base)
        return next(measured)

    monkeypatch.setattr(module.Validator, 'measure', measure)
    settings = {key: world[key] for key in ('topics', 'qrels', 'run', 'corpus')}
    recipe = tiny_recipe(
        'monobert',
        ranking=SYSTEMS['monobert'],
        validation=settings | {'sample': 6, 'every': 1, 'patience': 3},
    )
    done = train(recipe, tmp_path / 'out', device='cpu')
    assert (done.steps, done.best, done.before) == (5, 0.8, 0.9)
    np.testing.assert_array_equal(scores('monobert', tmp_path / 'out'), scores('monobert', kept[2]))
    assert (scores('monobert', tmp_path / 'out') != scores('monobert', kept[5])).any()
    card = (tmp_path / 'out/README.md').read_text(encoding='utf-8')
    assert '- validation, MRR@10: 0.8000 (0.9000 before training)' in card


@pytest.mark.parametrize('system', SYSTEMS)
def test_bfloat16_trains_weights_of_single_precision(system, tiny_recipe, tmp_path):
    recipe = tiny_recipe(
        system, ranking=SYSTEMS[system], training={'precision': 'bfloat16', 'steps': 2}
    )
    train(recipe, tmp_path / 'out', device='cpu')
    assert np.isfinite(losses(tmp_path / 'out')).all()
    assert np.isfinite(scores(system, tmp_path / 'out')).all()


def test_the_log_and_the_card_say_how_many_hits_to_rerank(
    tiny_recipe, tmp_path, world, monkeypatch
):
    """The validation run has each topic's relevant passage first: a model that puts it last is
    best left out.
    """
    from pyserini_repbert.rerank import MonoBertReranker

    monkeypatch.setattr(
        MonoBertReranker,
        'score_lists',
        lambda self, queries, lists, *_: [np.arange(len(own)) for own in lists],
    )
    settings = {key: world[key] for key in ('topics', 'qrels', 'run', 'corpus')}
    recipe = tiny_recipe(
        'monobert', ranking=SYSTEMS['monobert'], validation=settings | {'sample': 6, 'every': 3}
    )
    done = train(recipe, tmp_path / 'out', device='cpu')
    assert (done.cutoff, done.at_cutoff, done.best) == (0, 1.0, pytest.approx(1 / 6))
    assert [
        row['eval_cutoff'] for row in read_log(tmp_path / 'out/log.csv') if row['eval_measure']
    ] == ['', '0', '']
    card = (tmp_path / 'out/README.md').read_text(encoding='utf-8')
    assert '- best cut-off on the validation topics: 0 hits reranked, MRR@10: 1.0000' in card


def test_a_base_with_other_heads_and_old_names(tiny_recipe, tmp_path):
    """BERT's own checkpoint: heads that RepBERT has no use for, layer norms under their first
    names.
    """
    from safetensors.torch import load_file, save_file

    tiny_recipe('repbert')
    path = tmp_path / 'base/model.safetensors'
    renamed = {
        name.replace('LayerNorm.weight', 'LayerNorm.gamma').replace(
            'LayerNorm.bias', 'LayerNorm.beta'
        ): value
        for name, value in load_file(path).items()
    }
    save_file(
        renamed
        | {'cls.seq_relationship.weight': renamed['bert.embeddings.LayerNorm.gamma'].clone()},
        path,
    )
    for name, adapter in (('whole', None), ('adapter', {'rank': 2})):
        train(
            tiny_recipe('repbert', ranking=REPBERT, adapter=adapter), tmp_path / name, device='cpu'
        )
        assert np.isfinite(scores('repbert', tmp_path / name)).all()


def test_a_cedr_is_trained_with_fewer_layers(tiny_recipe, tmp_path, world):
    """CEDR's Figure 2b: the base has two layers, the model one; validation opens it, too."""
    settings = {key: world[key] for key in ('topics', 'qrels', 'run', 'corpus')}
    recipe = tiny_recipe(
        'cedr',
        ranking={'architecture': 'pacrr', 'max_query_length': 6, 'n_layers': 1},
        validation=settings | {'sample': 3, 'every': 3},
    )
    train(recipe, tmp_path / 'out', device='cpu')
    config = json.loads((tmp_path / 'out/config.json').read_text(encoding='utf-8'))
    assert config['num_hidden_layers'] == 1 and 'n_layers' not in config['ranking']
    assert CedrReranker(tmp_path / 'out').n_layers == 1


@pytest.mark.parametrize(
    ('n_layers', 'adapter', 'message'),
    [
        (3, None, 'ranking.n_layers is 3, expected an integer from 1 to 2'),
        (0, None, 'ranking.n_layers is 0'),
        (1, {'rank': 2}, 'an adapter keeps its base whole'),
    ],
)
def test_layers_that_a_base_lacks_are_refused(n_layers, adapter, message, tiny_recipe, tmp_path):
    recipe = tiny_recipe('cedr', ranking={'n_layers': n_layers}, adapter=adapter)
    with pytest.raises(InputError, match=message):
        train(recipe, tmp_path / 'out', device='cpu')
