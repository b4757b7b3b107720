"""What a training refuses: recipes, outputs that are not its own, losses that are not finite."""

import pytest
from trained_models import REPBERT, SYSTEMS

from pyserini_repbert.errors import InputError, PyseriniRepbertError
from pyserini_repbert.train.training import train


@pytest.mark.parametrize(
    'keys',
    [
        {'base': 'nowhere'},
        {'ranking': {'max_doc_length': 99}},
        {'training': {'batch_size': 3}},
        {'test_topics': ['nowhere']},
        {'data': 'without a relevant passage'},
    ],
    ids=lambda keys: next(iter(keys)),
)
def test_a_refused_recipe_leaves_nothing(keys, tiny_recipe, tmp_path, world):
    """Nor does it take away what was there, though it may be overwritten."""
    if 'data' in keys:
        (tmp_path / 'none.txt').write_text('q0 0 d0 0\n')
        source = {key: world[key] for key in ('topics', 'corpus', 'run')} | {
            'qrels': str(tmp_path / 'none.txt')
        }
        keys = {'data': [source]}
    recipe = tiny_recipe('repbert', **keys)
    (tmp_path / 'out').mkdir()
    (tmp_path / 'out/kept').touch()
    before = sorted(path.name for path in tmp_path.iterdir())
    for name, overwrite in (('mine', False), ('out', True)):
        with pytest.raises(PyseriniRepbertError):
            train(recipe, tmp_path / name, device='cpu', overwrite=overwrite)
        assert sorted(path.name for path in tmp_path.iterdir()) == before
        assert (tmp_path / 'out/kept').exists()


def test_only_what_a_training_wrote_is_overwritten(tiny_recipe, tmp_path):
    recipe = tiny_recipe('repbert', ranking=REPBERT, training={'steps': 1})
    out = tmp_path / 'out'
    (tmp_path / 'mine').mkdir()
    (tmp_path / 'mine/thesis.txt').write_text('precious')
    (tmp_path / 'file').write_text('precious')
    for name in ('mine', 'file'):
        with pytest.raises(InputError, match='is no trained checkpoint'):
            train(recipe, tmp_path / name, device='cpu', overwrite=True)
    train(recipe, out, device='cpu')
    train(recipe, out, device='cpu', overwrite=True)
    assert (tmp_path / 'mine/thesis.txt').read_text() == 'precious'


def test_a_training_does_not_replace_what_it_reads(tiny_recipe, tmp_path):
    train(
        tiny_recipe('repbert', ranking=REPBERT, training={'steps': 1}),
        tmp_path / 'out',
        device='cpu',
    )
    weights = (tmp_path / 'out/model.safetensors').read_bytes()
    recipe = tiny_recipe(
        'repbert', ranking=REPBERT, base=str(tmp_path / 'out'), adapter={'rank': 2, 'alpha': 4}
    )
    with pytest.raises(InputError, match='holds what the training reads'):
        train(recipe, tmp_path / 'out', device='cpu', overwrite=True)
    assert (tmp_path / 'out/model.safetensors').read_bytes() == weights
    train(recipe, tmp_path / 'above', device='cpu')
    above = tiny_recipe(
        'repbert', ranking=REPBERT, base=str(tmp_path / 'above'), adapter={'rank': 2, 'alpha': 4}
    )
    with pytest.raises(InputError, match='holds what the training reads'):
        train(above, tmp_path / 'out', device='cpu', overwrite=True)


def test_a_loss_that_is_not_finite_ends_the_training(tiny_recipe, tmp_path):
    recipe = tiny_recipe(
        'monobert',
        ranking=SYSTEMS['monobert'],
        training={'learning_rate': 1e30, 'max_grad_norm': 0},
    )
    with pytest.raises(
        InputError,
        match='the loss is not finite at step [1-6]: give a smaller training.learning_rate',
    ):
        train(recipe, tmp_path / 'out', device='cpu')
    assert not (tmp_path / 'out').exists()
