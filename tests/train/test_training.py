"""Whole trainings of tiny models: they learn, repeat themselves, resume, and give checkpoints that open."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.errors import BusyError, DamagedFileError, InputError, MismatchError, PyseriniRepbertError
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank import CedrReranker, DuoBertReranker, EpicReranker, MonoBertReranker
from pyserini_repbert.train.training import train

REPBERT = {'max_query_length': 8, 'max_doc_length': 16}
SYSTEMS = {
    'repbert': REPBERT,
    'monobert': {'max_query_length': 8, 'max_length': 48},
    'duobert': {'max_query_length': 8, 'max_length': 48},
    'epic': {'max_query_length': 8},
    'cedr': {'architecture': 'knrm', 'max_query_length': 6},
}
RERANKERS = {'monobert': MonoBertReranker, 'duobert': DuoBertReranker, 'epic': EpicReranker, 'cedr': CedrReranker}
CANDIDATES = [Candidate('a', 0, 'the cat sat on the mat'), Candidate('b', 0, 'a big dog'), Candidate('c', 0, 'sky')]


def losses(folder: Path) -> list[float]:
    with open(folder / 'log.csv', encoding='utf-8', newline='') as stream:
        return [float(row['loss']) for row in csv.DictReader(stream) if row['loss']]


def scores(system: str, folder: Path) -> np.ndarray:
    if system == 'repbert':
        query = RepBertQueryEncoder(folder).encode('cat mat')
        return RepBertDocumentEncoder(folder).encode([own.text for own in CANDIDATES]) @ query
    return RERANKERS[system](folder).score_lists(['cat mat'], [CANDIDATES])[0]


@pytest.mark.parametrize('system', SYSTEMS)
def test_full_training_gives_a_checkpoint_that_opens(system, tiny_recipe, tmp_path):
    done = train(tiny_recipe(system, ranking=SYSTEMS[system]), tmp_path / 'out', device='cpu')
    assert done.steps == 6
    assert np.isfinite(losses(tmp_path / 'out')).all()
    assert len(losses(tmp_path / 'out')) == 6
    assert np.isfinite(scores(system, tmp_path / 'out')).all()
    assert not (tmp_path / 'out.training').exists()


@pytest.mark.parametrize('system', SYSTEMS)
def test_adapters_are_small_and_open_over_their_base(system, tiny_recipe, tmp_path):
    adapter = {'rank': 2, 'alpha': 4}
    train(tiny_recipe(system, ranking=SYSTEMS[system], adapter=adapter), tmp_path / 'out', device='cpu')
    config = json.loads((tmp_path / 'out/adapter_config.json').read_text(encoding='utf-8'))
    assert config['base_model_name_or_path'] == str(tmp_path / 'base')
    assert config['r'] == 2
    assert not (tmp_path / 'out/model.safetensors').exists()
    assert np.isfinite(scores(system, tmp_path / 'out')).all()


class Killed(Exception):
    """Stands for the end of a process."""


def test_one_seed_gives_the_same_losses_and_another_does_not(tiny_recipe, tmp_path):
    for name, seed in (('a', 1), ('b', 1), ('c', 2)):
        recipe = tiny_recipe('monobert', ranking=SYSTEMS['monobert'], training={'seed': seed})
        train(recipe, tmp_path / name, device='cpu')
    assert losses(tmp_path / 'a') == losses(tmp_path / 'b')
    assert losses(tmp_path / 'a') != losses(tmp_path / 'c')


@pytest.mark.parametrize('system', ['repbert', 'epic'])
def test_a_resumed_training_goes_on_as_if_never_stopped(system, tiny_recipe, tmp_path, world, monkeypatch):
    """Killed at step 5 of 8, after the state of step 4: batches, dropout, learning rates and best model continue."""
    from pyserini_repbert.train.logs import CsvLog, read_log

    validation = {key: world[key] for key in ('topics', 'qrels', 'run', 'corpus')}
    recipe = tiny_recipe(
        system,
        ranking=SYSTEMS[system],
        training={'steps': 8, 'accumulate': 2, 'warmup_steps': 3},
        validation=validation | {'sample': 6, 'every': 2, 'patience': 3},
    )
    first = train(recipe, tmp_path / 'whole', device='cpu')
    original = CsvLog.on_log

    def dies(self, args, state, control, logs=None, **kwargs):
        original(self, args, state, control, logs, **kwargs)
        if state.global_step == 5:
            raise Killed

    monkeypatch.setattr(CsvLog, 'on_log', dies)
    with pytest.raises(Killed):
        train(recipe, tmp_path / 'resumed', device='cpu')
    monkeypatch.undo()
    assert not (tmp_path / 'resumed').exists()
    with pytest.raises(InputError, match='resume it, or overwrite it') as refused:
        train(recipe, tmp_path / 'resumed', device='cpu')
    assert refused.value.parameters == ('resume', 'overwrite')
    done = train(recipe, tmp_path / 'resumed', resume=True, device='cpu')
    assert (done.cutoff, done.at_cutoff, done.best) == pytest.approx((first.cutoff, first.at_cutoff, first.best))
    whole, resumed = (read_log(tmp_path / name / 'log.csv') for name in ('whole', 'resumed'))
    assert [row['step'] for row in whole] == [row['step'] for row in resumed]
    for one, other in zip(whole, resumed, strict=True):
        for column in ('loss', 'learning_rate', 'eval_measure'):
            assert float(one[column] or 0) == pytest.approx(float(other[column] or 0), abs=1e-5), (one['step'], column)
    np.testing.assert_allclose(scores(system, tmp_path / 'whole'), scores(system, tmp_path / 'resumed'), atol=1e-5)


def dies_before(monkeypatch, module, name):
    """Whoever calls `module.name` is killed, as far as files go."""

    def killed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, name, killed)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize('patience', [0, 1])
def test_a_training_resumed_after_its_last_step_takes_no_other(patience, tiny_recipe, tmp_path, world, monkeypatch):
    """Killed while the final folder is written, also where training had stopped early: the same bytes."""
    from pyserini_repbert.train import saving, validation as module

    settings = {key: world[key] for key in ('topics', 'qrels', 'run', 'corpus')} | {'sample': 6, 'every': 2}
    validation = settings | {'patience': patience} if patience else None
    recipe = tiny_recipe('monobert', ranking=SYSTEMS['monobert'], training={'log_every': 4}, validation=validation)
    if patience:
        measured = iter([0.5, 0.25] * 2)
        monkeypatch.setattr(module.Validator, 'measure', lambda self, *_: next(measured))
        monkeypatch.setattr(module.Validator, 'cutoff', lambda self: None)
    first = train(recipe, tmp_path / 'whole', device='cpu')
    assert first.steps == (4 if patience else 6)
    with monkeypatch.context() as patch:
        dies_before(patch, saving, 'write_checkpoint')
        if patience:
            patch.setattr(module.Validator, 'measure', lambda self, *_: next(measured))
        with pytest.raises(KeyboardInterrupt):
            train(recipe, tmp_path / 'out', device='cpu')
    assert (tmp_path / 'out.training/checkpoint-4').is_dir()
    done = train(recipe, tmp_path / 'out', resume=True, device='cpu')
    assert done == first._replace(folder=tmp_path / 'out')
    assert files(tmp_path / 'out') == files(tmp_path / 'whole')
    assert sorted(path.name for path in tmp_path.glob('*out*')) == ['out']
    assert train(recipe, tmp_path / 'out', resume=True, device='cpu') == done  # once more: nothing is left to do


def test_a_short_training_logs_its_loss(tiny_recipe, tmp_path):
    """Five steps, a line for each two, and the last one: their weighted mean is the card's."""
    recipe = tiny_recipe('monobert', ranking=SYSTEMS['monobert'], training={'steps': 5, 'log_every': 2})
    done = train(recipe, tmp_path / 'out', device='cpu')
    short = train(
        tiny_recipe('monobert', ranking=SYSTEMS['monobert'], training={'steps': 5, 'log_every': 50}),
        tmp_path / 'short',
        device='cpu',
    )
    from pyserini_repbert.train.logs import read_log

    assert [row['step'] for row in read_log(tmp_path / 'out/log.csv')] == ['2', '4', '5']
    assert [row['step'] for row in read_log(tmp_path / 'short/log.csv')] == ['5']
    a, b, c = losses(tmp_path / 'out')
    assert done.loss == pytest.approx((2 * a + 2 * b + c) / 5)
    assert short.loss == pytest.approx(done.loss, abs=1e-5) and short.loss > 0


@pytest.mark.parametrize('left', [(), ('.recipe.yaml.a1b2c3d4',)])
def test_a_kill_while_the_recipe_is_written_is_resumable(left, tiny_recipe, tmp_path):
    (tmp_path / 'out.training').mkdir()
    for name in left:
        (tmp_path / 'out.training' / name).write_text('name: ti')
    recipe = tiny_recipe('repbert', ranking=REPBERT, training={'steps': 2})
    train(recipe, tmp_path / 'out', resume=True, device='cpu')
    assert (tmp_path / 'out/recipe.yaml').read_text() == recipe.text
    assert sorted(path.name for path in tmp_path.glob('*out*')) == ['out']


def test_a_torn_checkpoint_is_no_dead_end(tiny_recipe, tmp_path):
    """Half a trainer_state.json: begun again from the checkpoint before, here from none."""
    recipe = tiny_recipe('repbert', ranking=REPBERT, training={'steps': 2})
    train(recipe, tmp_path / 'whole', device='cpu')
    work = tmp_path / 'out.training/checkpoint-2'
    work.mkdir(parents=True)
    (work / 'trainer_state.json').write_text('{"global_step": 2, "log_his')
    (work.parent / 'recipe.yaml').write_text(recipe.text)
    train(recipe, tmp_path / 'out', resume=True, device='cpu')
    assert files(tmp_path / 'out') == files(tmp_path / 'whole')


def test_a_damaged_state_is_refused(tiny_recipe, tmp_path, monkeypatch):
    from pyserini_repbert.train import saving

    recipe = tiny_recipe('repbert', ranking=REPBERT)
    with monkeypatch.context() as patch:
        dies_before(patch, saving, 'write_checkpoint')
        with pytest.raises(KeyboardInterrupt):
            train(recipe, tmp_path / 'out', device='cpu')
    path = tmp_path / 'out.training/checkpoint-6/optimizer.pt'
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 4
    path.write_bytes(raw)
    with pytest.raises(DamagedFileError, match='optimizer.pt is damaged') as caught:
        train(recipe, tmp_path / 'out', resume=True, device='cpu')
    assert '\n' not in str(caught.value)
    shutil.rmtree(path.parent)
    assert train(recipe, tmp_path / 'out', resume=True, device='cpu').steps == 6


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
        source = {key: world[key] for key in ('topics', 'corpus', 'run')} | {'qrels': str(tmp_path / 'none.txt')}
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


def test_an_output_goes_when_the_new_one_is_there(tiny_recipe, tmp_path, monkeypatch):
    """Killed in between, the earlier one stays, and the training can be resumed."""
    from pyserini_repbert.train import saving

    (tmp_path / 'out').mkdir()
    (tmp_path / 'out/earlier').touch()
    recipe = tiny_recipe('repbert', ranking=REPBERT, training={'steps': 2})
    with monkeypatch.context() as patch:
        dies_before(patch, saving, 'write_checkpoint')
        with pytest.raises(KeyboardInterrupt):
            train(recipe, tmp_path / 'out', device='cpu', overwrite=True)
    assert (tmp_path / 'out/earlier').exists()
    train(recipe, tmp_path / 'out', device='cpu', resume=True)
    assert 'earlier' not in files(tmp_path / 'out') and 'model.safetensors' in files(tmp_path / 'out')
    assert sorted(path.name for path in tmp_path.glob('*out*')) == ['out']


def test_a_second_training_of_one_output_is_refused(tiny_recipe, tmp_path):
    from pyserini_repbert.locks import locked

    with (
        locked(tmp_path / '.out.training.lock', 'output'),
        pytest.raises(BusyError, match=r'output .*out is being written by process \d+'),
    ):
        train(tiny_recipe('repbert', ranking=REPBERT), tmp_path / 'out', device='cpu')
    assert not (tmp_path / 'out.training').exists()


@pytest.mark.parametrize('scale', [None, 0, 2.0])
def test_a_unit_layer_gets_a_scale_where_none_is_given(scale, tiny_recipe, tmp_path):
    training = {'unit_layer': True, 'steps': 2} | ({} if scale is None else {'scale': scale})
    train(tiny_recipe('repbert', ranking=REPBERT, training=training), tmp_path / 'out', device='cpu')
    card = (tmp_path / 'out/README.md').read_text()
    assert ('- scale of inner products: ' in card) is (scale is None)
    assert max(losses(tmp_path / 'out')) > 0


@pytest.mark.parametrize(('steps', 'zeros', 'told'), [(12, 99, 10), (3, 99, 3), (12, 9, None)])
def test_losses_of_0_are_told(steps, zeros, told, tiny_recipe, tmp_path, monkeypatch, caplog):
    from pyserini_repbert.train.tasks import repbert

    kept, seen = repbert.multi_label_margin, []

    def first_are_zero(*given):
        seen.append(1)
        return kept(*given) * (len(seen) > zeros)

    monkeypatch.setattr(repbert, 'multi_label_margin', first_are_zero)
    recipe = tiny_recipe('repbert', ranking=REPBERT, training={'steps': steps, 'save_every': 50})
    train(recipe, tmp_path / 'out', device='cpu')
    found = [record.message for record in caplog.records if 'are all 0' in record.message]
    assert len(found) == (told is not None)
    assert told is None or f'the losses of the first {told} steps are all 0' in found[0]


def test_a_scale_is_chosen_from_scores():
    """Differences of a relevant and another passage are 4, 6, 5 and 1, of which a tenth lie below 1.9.

    The others' scores 6, 4, 5 and 9 have a standard deviation of 1.87; then 6, -6, 5 and 9 have one of sqrt(32.25).
    """
    import torch

    from pyserini_repbert.train.tasks.repbert import fitting_scale

    scores = torch.tensor([[10.0, 6.0, 4.0], [5.0, 10.0, 9.0]])
    relevant = torch.tensor([[True, False, False], [False, True, False]])
    assert fitting_scale(scores, relevant) == pytest.approx(1 / 1.9)
    assert fitting_scale(scores - 10 * torch.tensor([[0, 0, 1], [0, 0, 0]]), relevant) == pytest.approx(1 / 32.25**0.5)
    assert fitting_scale(scores[:1, :1], relevant[:1, :1]) == 1.0  # no other passage


def test_resuming_with_another_recipe_is_refused(tiny_recipe, tmp_path):
    (tmp_path / 'out.training').mkdir()
    (tmp_path / 'out.training/recipe.yaml').write_text('name: another\n', encoding='utf-8')
    with pytest.raises(MismatchError, match='another recipe'):
        train(tiny_recipe('repbert', ranking=REPBERT), tmp_path / 'out', resume=True, device='cpu')


@pytest.mark.parametrize('system', SYSTEMS)
def test_models_learn_what_they_are_shown(system, tiny_recipe, tmp_path, world):
    """Two topics of a fold, again and again: the loss falls."""
    (tmp_path / 'fold.txt').write_text('q0\nq7\n', encoding='utf-8')
    data = [{**{key: world[key] for key in ('topics', 'qrels', 'corpus', 'run')}, 'qids': str(tmp_path / 'fold.txt')}]
    training = {'steps': 60, 'learning_rate': 3e-3, 'log_every': 10}
    recipe = tiny_recipe(system, ranking=SYSTEMS[system], data=data, training=training)
    config = json.loads((tmp_path / 'base/config.json').read_text(encoding='utf-8'))
    config |= {'hidden_dropout_prob': 0.0, 'attention_probs_dropout_prob': 0.0}
    (tmp_path / 'base/config.json').write_text(json.dumps(config), encoding='utf-8')
    train(recipe, tmp_path / 'out', device='cpu')
    found = losses(tmp_path / 'out')
    assert found[-1] < 0.7 * found[0], found


def test_early_stopping_rolls_back_to_the_best_model(tiny_recipe, tmp_path, world, monkeypatch):
    """Measures 0.2, 0.8, then three without gain: training stops after step 5, and the model of step 2 is kept."""
    from pyserini_repbert.train import validation as module
    from pyserini_repbert.train.saving import write_checkpoint

    measured = iter([0.2, 0.8, 0.1, 0.3, 0.8, 0.9])
    kept = []

    def measure(self, task, base, adapter):
        kept.append(tmp_path / f'step{len(kept) + 1}')
        kept[-1].mkdir()
        write_checkpoint(kept[-1], task, base, adapter)
        return next(measured)

    monkeypatch.setattr(module.Validator, 'measure', measure)
    settings = {key: world[key] for key in ('topics', 'qrels', 'run', 'corpus')}
    recipe = tiny_recipe(
        'monobert', ranking=SYSTEMS['monobert'], validation=settings | {'sample': 6, 'every': 1, 'patience': 3}
    )
    done = train(recipe, tmp_path / 'out', device='cpu')
    assert (done.steps, done.best) == (5, 0.8)
    np.testing.assert_array_equal(scores('monobert', tmp_path / 'out'), scores('monobert', kept[1]))
    assert (scores('monobert', tmp_path / 'out') != scores('monobert', kept[4])).any()
    assert '- validation, MRR@10: 0.8000' in (tmp_path / 'out/README.md').read_text(encoding='utf-8')


def test_a_checkpoint_scores_as_the_model_in_training_did(tiny_recipe, tmp_path):
    """An adapter with a learnt scale, folded into the last layer norm, over its base."""
    import torch

    from pyserini_repbert.train.leakage import Guard
    from pyserini_repbert.train.saving import write_checkpoint
    from pyserini_repbert.train.sources import TrainingSource
    from pyserini_repbert.train.starting import new_task, open_base

    recipe = tiny_recipe('repbert', ranking=REPBERT, adapter={'rank': 2}, training={'scale': 9.0})
    base = open_base(recipe.base)
    task = new_task(recipe, base, [TrainingSource(recipe.data[0], 0, Guard(), 'data.0')])
    with torch.no_grad():
        for name, parameter in task.ranker.named_parameters():
            if 'lora_B' in name:
                parameter.normal_(std=0.1)
    task.eval()
    (tmp_path / 'made').mkdir()
    write_checkpoint(tmp_path / 'made', task, base, recipe.adapter)
    sequences = task.pieces.single(['cat mat'], 8, 0)
    with torch.no_grad():
        query = task.ranker(torch.tensor([sequences[0].input_ids]), torch.tensor([sequences[0].token_type_ids]))
    encoded = RepBertQueryEncoder(tmp_path / 'made').encode('cat mat')
    np.testing.assert_allclose(encoded, 3.0 * query[0].numpy(), atol=1e-4)
    assert not np.allclose(encoded, 3.0 * RepBertQueryEncoder(recipe.base).encode('cat mat'), atol=1e-2)


def test_the_card_says_what_the_model_is(tiny_recipe, tmp_path):
    train(tiny_recipe('monobert', ranking=SYSTEMS['monobert'], licence='Apache-2.0'), tmp_path / 'out', device='cpu')
    card = (tmp_path / 'out/README.md').read_text(encoding='utf-8')
    for expected in ('license: apache-2.0', '# tiny-monobert', 'full fine-tuning', 'topics.tsv', 'steps: 6 of 6'):
        assert expected in card
    assert 'commit ' in card
    assert 'learning_rate: 0.001' in card


@pytest.mark.parametrize('system', SYSTEMS)
def test_bfloat16_trains_weights_of_single_precision(system, tiny_recipe, tmp_path):
    recipe = tiny_recipe(system, ranking=SYSTEMS[system], training={'precision': 'bfloat16', 'steps': 2})
    train(recipe, tmp_path / 'out', device='cpu')
    assert np.isfinite(losses(tmp_path / 'out')).all()
    assert np.isfinite(scores(system, tmp_path / 'out')).all()


def test_cedr_starts_from_vanilla_bert_and_adapters_stand_on_adapters(tiny_recipe, tmp_path):
    vanilla = {'architecture': 'vanilla', 'max_query_length': 6}
    adapter = {'rank': 2, 'alpha': 4}
    recipe = tiny_recipe('cedr', ranking=vanilla, adapter=adapter, training={'learning_rate': 0.05})
    train(recipe, tmp_path / 'vanilla', device='cpu')
    recipe = tiny_recipe('cedr', ranking=SYSTEMS['cedr'], adapter=adapter, base=str(tmp_path / 'vanilla'))
    train(recipe, tmp_path / 'knrm', device='cpu')
    assert np.isfinite(scores('cedr', tmp_path / 'knrm')).all()
    recipe = tiny_recipe('cedr', ranking=SYSTEMS['cedr'], adapter=adapter, training={'seed': 3})
    train(recipe, tmp_path / 'other', device='cpu')
    assert (scores('cedr', tmp_path / 'knrm') != scores('cedr', tmp_path / 'other')).any()


@pytest.mark.parametrize('joint', [True, False])
def test_an_adapter_over_an_adapter_resumes_validates_and_opens(joint, tiny_recipe, tmp_path, world, monkeypatch):
    """KNRM with and without [CLS] over Vanilla BERT; killed at step 3 of 6, after the state of step 2."""
    from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
    from pyserini_repbert.train.logs import CsvLog

    adapter = {'rank': 2, 'alpha': 4}
    vanilla = tiny_recipe('cedr', ranking={'architecture': 'vanilla', 'max_query_length': 6}, adapter=adapter)
    train(vanilla, tmp_path / 'vanilla', device='cpu')
    settings = {key: world[key] for key in ('topics', 'qrels', 'run', 'corpus')} | {'sample': 6, 'every': 2}
    ranking = SYSTEMS['cedr'] | {'joint': joint}
    recipe = tiny_recipe('cedr', ranking=ranking, adapter=adapter, base=str(tmp_path / 'vanilla'), validation=settings)
    first = train(recipe, tmp_path / 'whole', device='cpu')
    original = CsvLog.on_log

    def dies(self, args, state, control, logs=None, **kwargs):
        original(self, args, state, control, logs, **kwargs)
        if state.global_step == 3:
            raise Killed

    monkeypatch.setattr(CsvLog, 'on_log', dies)
    with pytest.raises(Killed):
        train(recipe, tmp_path / 'out', device='cpu')
    monkeypatch.undo()
    done = train(recipe, tmp_path / 'out', resume=True, device='cpu')
    assert done.best == pytest.approx(first.best)
    np.testing.assert_allclose(scores('cedr', tmp_path / 'whole'), scores('cedr', tmp_path / 'out'), atol=1e-5)
    opened = open_checkpoint(tmp_path / 'out')
    assert (opened.base.name, opened.base.base.name) == (str(tmp_path / 'vanilla'), str(tmp_path / 'base'))
    assert opened.config['ranking']['joint'] is joint
    columns = opened.tensors()['combine.weight'].shape[1]
    assert columns == 3 * 11 + (16 if joint else 0)  # two layers and the embeddings, 11 kernels each; [CLS]
    card = (tmp_path / 'out/README.md').read_text(encoding='utf-8')
    assert ('system: cedr, knrm without [CLS]' in card) is not joint
    assert f'- base: {tmp_path / "vanilla"}, LoRA adapter (rank 2)' in card


def test_the_log_and_the_card_say_how_many_hits_to_rerank(tiny_recipe, tmp_path, world, monkeypatch):
    """The validation run has each topic's relevant passage first: a model that puts it last is best left out."""
    from pyserini_repbert.train import validation as module
    from pyserini_repbert.train.logs import read_log

    monkeypatch.setattr(
        module.Validator, '_scores', lambda self, *_: [-np.arange(len(own), 0.0, -1) for own in self.lists]
    )
    settings = {key: world[key] for key in ('topics', 'qrels', 'run', 'corpus')}
    recipe = tiny_recipe('monobert', ranking=SYSTEMS['monobert'], validation=settings | {'sample': 6, 'every': 3})
    done = train(recipe, tmp_path / 'out', device='cpu')
    assert (done.cutoff, done.at_cutoff, done.best) == (0, 1.0, pytest.approx(1 / 6))
    assert [row['eval_cutoff'] for row in read_log(tmp_path / 'out/log.csv') if row['eval_measure']] == ['0', '']
    card = (tmp_path / 'out/README.md').read_text(encoding='utf-8')
    assert '- best cut-off on the validation topics: 0 hits reranked, MRR@10: 1.0000' in card


def test_a_base_is_named_as_it_was_found(tiny_checkpoint, tmp_path, monkeypatch):
    """A folder that has the name of something in the catalog does not stand in for it."""
    from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint
    from pyserini_repbert.train.saving import base_reference

    monkeypatch.chdir(tmp_path)
    for name in ('minilm', 'mine'):
        tiny_checkpoint(name)
    assert base_reference(Checkpoint.open(tmp_path / 'minilm', 'minilm')) == 'minilm'
    assert base_reference(Checkpoint.open(tmp_path / 'mine', 'mine')) == str(tmp_path / 'mine')


def test_a_base_with_other_heads_and_old_names(tiny_recipe, tmp_path):
    """BERT's own checkpoint: heads that RepBERT has no use for, layer norms under their first names."""
    from safetensors.torch import load_file, save_file

    tiny_recipe('repbert')
    path = tmp_path / 'base/model.safetensors'
    renamed = {
        name.replace('LayerNorm.weight', 'LayerNorm.gamma').replace('LayerNorm.bias', 'LayerNorm.beta'): value
        for name, value in load_file(path).items()
    }
    save_file(renamed | {'cls.seq_relationship.weight': renamed['bert.embeddings.LayerNorm.gamma'].clone()}, path)
    for name, adapter in (('whole', None), ('adapter', {'rank': 2})):
        train(tiny_recipe('repbert', ranking=REPBERT, adapter=adapter), tmp_path / name, device='cpu')
        assert np.isfinite(scores('repbert', tmp_path / name)).all()
