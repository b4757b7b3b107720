"""Resuming compares each file of a state, and each input, with what was there before."""

import json
import shutil
from pathlib import Path

import pytest
from trained_models import REPBERT, files, killed_at

from pyserini_repbert.errors import DamagedFileError, MismatchError
from pyserini_repbert.train.training import train


@pytest.fixture
def stopped(tiny_recipe, tmp_path, monkeypatch):
    """A training killed at step 5 of 6, after the states of steps 2 and 4."""
    recipe = tiny_recipe('repbert', ranking=REPBERT)
    killed_at(5, recipe, tmp_path / 'out', monkeypatch)
    return recipe


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    content[-1] ^= 0xFF
    path.write_bytes(content)


def _halve(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def test_a_damaged_state_gives_way_to_the_one_before(tiny_recipe, stopped, tmp_path, caplog):
    """One line says so, and the model is that of a training that was never stopped."""
    train(stopped, tmp_path / 'whole', device='cpu')
    shutil.move(tmp_path / 'out.training', tmp_path / 'kept')
    damages = [
        ('model.safetensors', _flip),
        ('model.safetensors', _halve),
        ('optimizer.pt', _flip),
        ('scheduler.pt', _flip),
        ('rng_state.pth', _halve),
        ('rng_state.pth', Path.unlink),
        ('trainer_state.json', _halve),
        ('sha256sums', _flip),
        ('sha256sums', Path.unlink),
    ]
    for name, damage in damages:
        shutil.rmtree(tmp_path / 'out', ignore_errors=True)
        shutil.copytree(tmp_path / 'kept', tmp_path / 'out.training')
        damage(tmp_path / 'out.training/checkpoint-4' / name)
        caplog.clear()
        train(stopped, tmp_path / 'out', resume=True, device='cpu')
        assert files(tmp_path / 'out') == files(tmp_path / 'whole'), name
        said = [line for line in caplog.messages if 'training goes on from checkpoint-2' in line]
        assert len(said) == 1 and 'checkpoint-4' in said[0], name


def test_without_a_whole_state_nothing_is_resumed(stopped, tmp_path):
    """Nothing is removed either: a file may be restored."""
    work = tmp_path / 'out.training'
    for name in ('checkpoint-2', 'checkpoint-4'):
        _flip(work / name / 'optimizer.pt')
    with pytest.raises(DamagedFileError, match='no complete state') as refused:
        train(stopped, tmp_path / 'out', resume=True, device='cpu')
    assert refused.value.parameters == ('overwrite',)
    assert '\n' not in str(refused.value)
    assert (work / 'checkpoint-4').is_dir()


@pytest.mark.parametrize('role', ['corpus', 'topics', 'qrels', 'run', 'base'])
def test_a_changed_input_is_refused(role, stopped, world, tmp_path):
    path = tmp_path / 'base/config.json' if role == 'base' else Path(world[role])
    if role == 'base':
        path.write_text(json.dumps(json.loads(path.read_text()) | {'layer_norm_eps': 0.01}))
    else:
        path.write_text(path.read_text().replace(' ', '  ', 1))
    with pytest.raises(MismatchError, match=f'^{role} .* has changed since') as refused:
        train(stopped, tmp_path / 'out', resume=True, device='cpu')
    assert refused.value.parameters == ('overwrite',)


def test_a_folder_of_files_is_an_input(tiny_recipe, world, tmp_path, monkeypatch):
    """A file that is added or changed there is seen."""
    corpus = tmp_path / 'corpus'
    corpus.mkdir()
    shutil.copy(world['corpus'], corpus / 'a.jsonl')
    source = {key: world[key] for key in ('topics', 'qrels', 'run')} | {'corpus': str(corpus)}
    recipe = tiny_recipe('repbert', ranking=REPBERT, data=[source])
    killed_at(3, recipe, tmp_path / 'out', monkeypatch)
    (corpus / 'b.jsonl').write_text('{"id": "new", "contents": "a new passage"}\n')
    with pytest.raises(MismatchError, match='^corpus .* has changed since'):
        train(recipe, tmp_path / 'out', resume=True, device='cpu')


def test_a_state_without_digests_of_inputs_is_refused(stopped, tmp_path):
    (tmp_path / 'out.training/inputs.json').unlink()
    with pytest.raises(MismatchError, match='earlier version: start again'):
        train(stopped, tmp_path / 'out', resume=True, device='cpu')


def test_the_best_model_is_whole_too(tiny_recipe, world, tmp_path, monkeypatch, caplog):
    """Step 6 is the best and damaged: step 4 goes on, whose best is step 2."""
    from pyserini_repbert.train import validation as module

    settings = {key: world[key] for key in ('topics', 'qrels', 'run', 'corpus')}
    recipe = tiny_recipe(
        'repbert',
        ranking=REPBERT,
        training={'steps': 8},
        validation=settings | {'sample': 6, 'every': 2},
    )

    def measures(*values):
        measured = iter(values)
        monkeypatch.setattr(module.Validator, 'measure', lambda self, *_: next(measured))

    measures(0.1, 0.5, 0.4, 0.6, 0.2)
    train(recipe, tmp_path / 'whole', device='cpu')
    measures(0.1, 0.5, 0.4, 0.6)
    killed_at(7, recipe, tmp_path / 'out', monkeypatch)
    work = tmp_path / 'out.training'
    assert sorted(path.name for path in work.glob('checkpoint-*')) == [
        'checkpoint-2',
        'checkpoint-4',
        'checkpoint-6',
    ]
    _flip(work / 'checkpoint-6/model.safetensors')
    measures(0.6, 0.2)
    train(recipe, tmp_path / 'out', resume=True, device='cpu')
    assert 'training goes on from checkpoint-4' in caplog.text
    assert files(tmp_path / 'out') == files(tmp_path / 'whole')
