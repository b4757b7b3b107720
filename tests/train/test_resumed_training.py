"""A training that was stopped, killed or damaged goes on as if it never was, or is refused."""

from dataclasses import replace

import numpy as np
import pytest
from trained_models import REPBERT, SYSTEMS, dies_before, files, killed_at, scores

from pyserini_repbert.errors import InputError
from pyserini_repbert.train.checkpoints import open_base
from pyserini_repbert.train.digests import input_digests, write_digests
from pyserini_repbert.train.training import train


@pytest.mark.parametrize('system', ['repbert', 'epic'])
def test_a_resumed_training_goes_on_as_if_never_stopped(
    system, tiny_recipe, tmp_path, world, monkeypatch
):
    """Killed at step 5 of 8, after the state of step 4: batches, dropout, learning rates and
    best model continue.
    """
    from pyserini_repbert.train.result import read_log

    validation = {key: world[key] for key in ('topics', 'qrels', 'run', 'corpus')}
    recipe = tiny_recipe(
        system,
        ranking=SYSTEMS[system],
        training={'steps': 8, 'accumulate': 2, 'warmup_steps': 3},
        validation=validation | {'sample': 6, 'every': 2, 'patience': 3},
    )
    first = train(recipe, tmp_path / 'whole', device='cpu')
    killed_at(5, recipe, tmp_path / 'resumed', monkeypatch)
    assert not (tmp_path / 'resumed').exists()
    with pytest.raises(InputError, match='resume it, or overwrite it') as refused:
        train(recipe, tmp_path / 'resumed', device='cpu')
    assert refused.value.parameters == ('resume', 'overwrite')
    done = train(recipe, tmp_path / 'resumed', resume=True, device='cpu')
    assert done.best == pytest.approx(first.best)
    whole = read_log(tmp_path / 'whole/log.csv')
    resumed = read_log(tmp_path / 'resumed/log.csv')
    assert [row['step'] for row in whole] == [row['step'] for row in resumed]
    for column in ('loss', 'learning_rate', 'eval_measure'):
        expected = [float(row[column] or 0) for row in whole]
        assert [float(row[column] or 0) for row in resumed] == pytest.approx(expected, abs=1e-5)
    np.testing.assert_allclose(
        scores(system, tmp_path / 'whole'), scores(system, tmp_path / 'resumed'), atol=1e-5
    )


def test_the_scale_of_a_unit_layer_is_chosen_once(tiny_recipe, tmp_path, monkeypatch):
    """The bytes of the weights are those of a recipe that gives this scale; and the same where
    training is resumed.
    """
    from pyserini_repbert.systems.repbert import training as repbert

    scales = []
    original = repbert.fitting_scale

    def choose(scores, relevant):
        assert scores.shape == relevant.shape == (64, 64)  # 32 instances of two passages
        scales.append(original(scores, relevant))
        return scales[-1]

    recipe = tiny_recipe('repbert', ranking=REPBERT, training={'unit_layer': True})
    monkeypatch.setattr(repbert, 'fitting_scale', choose)
    train(recipe, tmp_path / 'whole', device='cpu')
    killed_at(5, recipe, tmp_path / 'out', monkeypatch)
    dies_before(monkeypatch, repbert, 'fitting_scale')
    train(recipe, tmp_path / 'out', resume=True, device='cpu')
    assert len(scales) == 2 and scales[0] == scales[1] != 1
    assert files(tmp_path / 'out') == files(tmp_path / 'whole')
    said = tiny_recipe(
        'repbert', ranking=REPBERT, training={'unit_layer': True, 'scale': scales[0]}
    )
    train(said, tmp_path / 'said', device='cpu')
    assert (
        files(tmp_path / 'out')['model.safetensors']
        == files(tmp_path / 'said')['model.safetensors']
    )
    assert (
        f'- scale of inner products: {scales[0]:.4g} at the beginning'
        in (tmp_path / 'out/README.md').read_text()
    )


@pytest.mark.parametrize('patience', [0, 1])
def test_a_training_resumed_after_its_last_step_takes_no_other(
    patience, tiny_recipe, tmp_path, world, monkeypatch
):
    """Killed while the final folder is written, also where training had stopped early: the same
    bytes.
    """
    from pyserini_repbert.train import training, validation as module

    settings = {key: world[key] for key in ('topics', 'qrels', 'run', 'corpus')} | {
        'sample': 6,
        'every': 2,
    }
    validation = settings | {'patience': patience} if patience else None
    recipe = tiny_recipe(
        'monobert', ranking=SYSTEMS['monobert'], training={'log_every': 4}, validation=validation
    )
    if patience:
        measured = iter([0.1, 0.5, 0.25] * 2)
        monkeypatch.setattr(module.Validator, 'measure', lambda self, *_: next(measured))
    first = train(recipe, tmp_path / 'whole', device='cpu')
    assert first.steps == (4 if patience else 6)
    with monkeypatch.context() as patch:
        dies_before(patch, training, 'write_checkpoint')
        if patience:
            patch.setattr(module.Validator, 'measure', lambda self, *_: next(measured))
        with pytest.raises(KeyboardInterrupt):
            train(recipe, tmp_path / 'out', device='cpu')
    assert (tmp_path / 'out.training/checkpoint-4').is_dir()
    done = train(recipe, tmp_path / 'out', resume=True, device='cpu')
    assert done == replace(first, folder=tmp_path / 'out')
    assert files(tmp_path / 'out') == files(tmp_path / 'whole')
    assert sorted(path.name for path in tmp_path.glob('*out*')) == ['out']
    # Once more: nothing is left to do.
    assert train(recipe, tmp_path / 'out', resume=True, device='cpu') == done


def test_a_torn_checkpoint_is_no_dead_end(tiny_recipe, tmp_path):
    """Half a trainer_state.json: begun again from the checkpoint before, here from none."""
    recipe = tiny_recipe('repbert', ranking=REPBERT, training={'steps': 2})
    train(recipe, tmp_path / 'whole', device='cpu')
    work = tmp_path / 'out.training/checkpoint-2'
    work.mkdir(parents=True)
    (work / 'trainer_state.json').write_text('{"global_step": 2, "log_his')
    (work.parent / '.recipe.yaml.a1b2c3d4').write_text('name: ti')
    base = open_base(recipe.base)
    write_digests(work.parent, input_digests(recipe, base))
    (work.parent / 'recipe.yaml').write_text(recipe.text)
    train(recipe, tmp_path / 'out', resume=True, device='cpu')
    assert files(tmp_path / 'out') == files(tmp_path / 'whole')


def test_an_output_goes_when_the_new_one_is_there(tiny_recipe, tmp_path, monkeypatch):
    """Killed in between, the earlier one stays, and the training can be resumed."""
    from pyserini_repbert.train import training

    earlier = tiny_recipe('repbert', ranking=REPBERT, training={'steps': 1})
    train(earlier, tmp_path / 'out', device='cpu')
    recipe = tiny_recipe('repbert', ranking=REPBERT, training={'steps': 2})
    with monkeypatch.context() as patch:
        dies_before(patch, training, 'write_checkpoint')
        with pytest.raises(KeyboardInterrupt):
            train(recipe, tmp_path / 'out', device='cpu', overwrite=True)
    assert (tmp_path / 'out/recipe.yaml').read_text() == earlier.text
    train(recipe, tmp_path / 'out', device='cpu', resume=True)
    assert (tmp_path / 'out/recipe.yaml').read_text() == recipe.text
    assert 'model.safetensors' in files(tmp_path / 'out')
    assert sorted(path.name for path in tmp_path.glob('*out*')) == ['out']


@pytest.mark.parametrize('joint', [True, False])
def test_an_adapter_over_an_adapter_resumes_validates_and_opens(
    joint, tiny_recipe, tmp_path, world, monkeypatch
):
    """KNRM with and without [CLS] over Vanilla BERT; killed at step 3 of 6, after the state of
    step 2.
    """
    from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint

    adapter = {'rank': 2, 'alpha': 4}
    vanilla = tiny_recipe(
        'cedr', ranking={'architecture': 'vanilla', 'max_query_length': 6}, adapter=adapter
    )
    train(vanilla, tmp_path / 'vanilla', device='cpu')
    settings = {key: world[key] for key in ('topics', 'qrels', 'run', 'corpus')} | {
        'sample': 6,
        'every': 2,
    }
    ranking = SYSTEMS['cedr'] | {'joint': joint}
    recipe = tiny_recipe(
        'cedr',
        ranking=ranking,
        adapter=adapter,
        base=str(tmp_path / 'vanilla'),
        validation=settings,
    )
    first = train(recipe, tmp_path / 'whole', device='cpu')
    killed_at(3, recipe, tmp_path / 'out', monkeypatch)
    done = train(recipe, tmp_path / 'out', resume=True, device='cpu')
    assert done.best == pytest.approx(first.best)
    np.testing.assert_allclose(
        scores('cedr', tmp_path / 'whole'), scores('cedr', tmp_path / 'out'), atol=1e-5
    )
    opened = open_checkpoint(tmp_path / 'out')
    assert (opened.base.name, opened.base.base.name) == (
        str(tmp_path / 'vanilla'),
        str(tmp_path / 'base'),
    )
    assert opened.config['ranking']['joint'] is joint
    # Two layers and the embeddings, 11 kernels each; and [CLS].
    columns = opened.tensors()['combine.weight'].shape[1]
    assert columns == (3 * 11 + 16 if joint else 3 * 11)
    card = (tmp_path / 'out/README.md').read_text(encoding='utf-8')
    assert '- cedr: architecture knrm (recipe), ' in card and f'joint {joint} (recipe)' in card
    assert f'- base: {tmp_path / "vanilla"}, LoRA adapter (rank 2)' in card
