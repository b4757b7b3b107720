"""What a training refuses: recipes, outputs that are not its own, losses that are not finite."""

import pytest
from folders import tree, write_files
from trained_models import REPBERT, SYSTEMS

from pyserini_repbert.errors import InputError, PyseriniRepbertError
from pyserini_repbert.train.forms import CHECKPOINT_FORM, TRAINED_FORM
from pyserini_repbert.train.states import discard
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
    write_files(tmp_path, {'mine/thesis.txt': 'precious', 'file': 'precious'})
    for name in ('mine', 'file'):
        with pytest.raises(InputError, match='is not a trained checkpoint'):
            train(recipe, tmp_path / name, device='cpu', overwrite=True)
    train(recipe, out, device='cpu', tensorboard=True)
    assert TRAINED_FORM.foreign_entry(out) is None
    train(recipe, out, device='cpu', overwrite=True)
    # The whole state was of its form, and is gone.
    assert not (tmp_path / 'out.training').exists()
    assert (tmp_path / 'mine/thesis.txt').read_text() == 'precious'


@pytest.mark.parametrize(
    'name', ['out/thesis.txt', 'out/tensorboard/thesis.txt', 'out.training/checkpoint-1/thesis.txt']
)
def test_a_training_does_not_remove_a_file_beside_its_own(name, tiny_recipe, tmp_path):
    recipe = tiny_recipe('repbert', ranking=REPBERT, training={'steps': 1})
    (tmp_path / 'out').mkdir()
    (tmp_path / 'out/recipe.yaml').touch()
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text('precious')
    before = tree(tmp_path)
    with pytest.raises(InputError, match=r'holds .*thesis\.txt, which no (trained|state) .* has'):
        train(recipe, tmp_path / 'out', device='cpu', overwrite=True)
    assert tree(tmp_path) == before


def test_a_state_with_a_file_of_a_user_stays(tmp_path, caplog):
    for name in ('trainer_state.json', 'thesis.txt'):
        (tmp_path / 'checkpoint-1').mkdir(exist_ok=True)
        (tmp_path / 'checkpoint-1' / name).write_text('precious')
    discard(tmp_path / 'checkpoint-1', CHECKPOINT_FORM)
    assert len(tree(tmp_path)) == 2
    assert 'checkpoint-1 stays: it holds thesis.txt' in caplog.text


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
        match='at step [1-6]: .*smaller training.learning_rate',
    ):
        train(recipe, tmp_path / 'out', device='cpu')
    assert not (tmp_path / 'out').exists()
