from dataclasses import replace

import numpy as np
import pytest

from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.pipeline import Machine
from pyserini_repbert.pipeline.part_file import finished
from pyserini_repbert.pipeline.pipeline import cut_batches
from pyserini_repbert.ranking import Query, Ranking
from pyserini_repbert.rerank import DuoBertReranker
from pyserini_repbert.systems.duobert.saved_scores import (
    SavedScores,
    compared_depth,
    read_saved_scores,
    replay,
    write_saved_scores,
)
from tests.pipeline.conftest import run_stages

NAN = float('nan')


def stages_of(world, k0=10, k1=4, method='sum'):
    return [f'{world.mono}@{k0}', f'{world.duo}@{k1}:{method}']


def test_batches_end_with_the_query_that_fills_them():
    assert cut_batches([5, 5, 5, 20, 1], 10) == [range(0, 2), range(2, 4), range(4, 5)]
    assert cut_batches([], 10) == []
    assert cut_batches([10, 10], 10) == [range(0, 1), range(1, 2)]


def test_a_killed_reranking_goes_on_to_the_same_result(world, tmp_path, monkeypatch):
    output = tmp_path / 'out.txt'
    settings = {'batch_inputs': 1, 'save_scores': True}
    whole = run_stages(world, stages_of(world), **settings)
    assert list(whole.run) == ['q1', 'q2', 'q3']
    original = DuoBertReranker.pair_differences
    calls = []

    def die_second(self, *arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(self, *arguments, **options)

    monkeypatch.setattr(DuoBertReranker, 'pair_differences', die_second)
    with pytest.raises(KeyboardInterrupt):
        run_stages(world, stages_of(world), output=output, **settings)
    part = tmp_path / 'out.txt.part'
    assert len(part.read_text().splitlines()) == 2
    with open(part, 'a') as stream:
        stream.write('{"batch": 1, "rank')  # cut while it was written
    with pytest.raises(InputError, match='resume it, or overwrite it') as refused:
        run_stages(world, stages_of(world), output=output, **settings)
    assert refused.value.parameters == ('resume', 'overwrite')
    resumed = run_stages(world, stages_of(world), output=output, resume=True, **settings)
    assert len(calls) == 4  # one before the kill, and not again
    assert resumed.run == whole.run
    assert (
        [cost.inferences for cost in resumed.costs]
        == [cost.inferences for cost in whole.costs]
        == [24, 36]
    )
    for one, other in zip(resumed.saved, whole.saved, strict=True):
        np.testing.assert_array_equal(one.differences, other.differences)
        np.testing.assert_array_equal(one.scores, other.scores)
    again = run_stages(world, stages_of(world), output=output, resume=True, **settings)
    assert len(calls) == 4
    assert again.run == whole.run
    finished(output)
    assert not part.exists()


def test_resuming_refuses_another_run_model_or_setting(world, tmp_path):
    output = tmp_path / 'out.txt'
    settings = {'batch_inputs': 1}
    run_stages(world, stages_of(world), output=output, **settings)
    other_run = world.run | {'q1': Ranking(world.run['q1'].docids[::-1], world.run['q1'].scores)}
    mono_only = stages_of(world)[:1]
    for queries, run, stages, more, what in (
        (world.queries, other_run, stages_of(world), {}, 'run was'),
        (
            [Query('q1', 'other words'), *world.queries[1:]],
            world.run,
            stages_of(world),
            {},
            'run was',
        ),
        (world.queries, world.run, mono_only, {}, 'pipeline was'),
        (world.queries, world.run, stages_of(world, method='min'), {}, 'pipeline was'),
        (world.queries, world.run, stages_of(world, k1=3), {}, 'pipeline was'),
        (world.queries, world.run, stages_of(world), {'drop_rest': True}, 'pipeline was'),
    ):
        with pytest.raises(MismatchError, match=f'begun with other settings: {what}'):
            run_stages(world, stages, queries, run, output=output, resume=True, **settings, **more)
    run_stages(world, mono_only, output=output, overwrite=True, **settings)


@pytest.mark.slow
def test_queries_are_split_between_processes(world):
    alone = run_stages(world, stages_of(world), batch_inputs=1)
    split = run_stages(
        world, stages_of(world), machine=Machine(devices=('cpu', 'cpu')), batch_inputs=1
    )
    assert sum(split.done) == 60
    assert list(split.run) == list(alone.run)
    for qid, ranked in alone.run.items():
        assert split.run[qid].docids == ranked.docids
        np.testing.assert_allclose(split.run[qid].scores, ranked.scores, atol=1e-5)
    with pytest.raises(MismatchError, match="is for system 'repbert', expected a reranker"):
        broken = [f'{world.mono.parent / "encoder"}@5']
        (world.mono.parent / 'encoder').mkdir()
        (world.mono.parent / 'encoder' / 'config.json').write_text(
            '{"ranking": {"system": "repbert"}}'
        )
        run_stages(world, broken, machine=Machine(devices=('cpu', 'cpu')))


@pytest.mark.parametrize('method', ['sum', 'binary', 'min', 'max'])
@pytest.mark.parametrize('drop_rest', [False, True])
def test_shallower_settings_are_replayed_as_if_they_had_been_run(
    method, drop_rest, world, tmp_path
):
    settings = {'save_scores': True, 'replay_k0': (6, 2), 'drop_rest': drop_rest}
    deep = run_stages(world, stages_of(world), **settings)
    plain = run_stages(world, stages_of(world), drop_rest=drop_rest)
    assert {qid: ranked.docids for qid, ranked in deep.run.items()} == {
        q: r.docids for q, r in plain.run.items()
    }
    write_saved_scores(tmp_path / 'saved.npz', deep.saved, {'made': 'here'})
    saved, about = read_saved_scores(tmp_path / 'saved.npz')
    assert about == {'made': 'here'}
    for k0, k1 in ((10, 4), (6, 4), (2, 2), (10, 3), (6, 2), (6, 0)):
        stages = stages_of(world, k0, k1, method) if k1 else stages_of(world, k0)[:1]
        expected = run_stages(world, stages, drop_rest=drop_rest).run
        for own in saved:
            found = replay(own, k0, k1, method, drop_rest=drop_rest)
            assert [item.docid for item in found] == list(expected[own.qid].docids), (k0, k1)
            scored = [item.score for item in found][: k1 or k0]
            np.testing.assert_allclose(scored, expected[own.qid].scores[: len(scored)], atol=1e-5)
    with pytest.raises(InputError, match='score again so that k0=4 can be replayed'):
        replay(saved[0], 4, 4)
    with pytest.raises(InputError, match='k0=11 is asked for, 10 candidates have scores'):
        replay(saved[0], 11)


def saved_scores():
    return SavedScores(
        'q',
        'text',
        ('d', 'c', 'b', 'a'),
        np.array([-3.0, -1.0, -1.0, -0.5]),
        np.empty(0, int),
        np.empty((0, 0)),
    )


def test_replayed_ties_keep_the_order_of_the_stage_before():
    """monoBERT ties c and b, duoBERT (binary) all of a, c, b: a beats c, c beats b, b beats a."""
    differences = np.array([[NAN, 1.0, -1.0], [-1.0, NAN, 1.0], [1.0, -1.0, NAN]])
    saved = replace(saved_scores(), members=np.array([3, 1, 2]), differences=differences)
    for k1, expected in ((0, 'acbd'), (2, 'acbd'), (3, 'acbd')):
        assert ''.join(item.docid for item in replay(saved, 4, k1, 'binary')) == expected


@pytest.mark.parametrize(
    ('about', 'depth'),
    [
        ({'last_depth': 2}, 2),
        ({'last_depth': 50}, 3),
        ({'k1': 2}, 2),  # files before version 0.4.0
        ({}, 3),
    ],
)
def test_saved_scores_say_how_many_candidates_were_compared(about, depth):
    saved = replace(saved_scores(), members=np.array([3, 1, 2]))
    assert compared_depth(saved, about) == depth


@pytest.mark.parametrize('keep', [None, (6,)])
def test_ties_of_a_stage_keep_the_order_of_the_stage_before(keep, world, monkeypatch):
    monkeypatch.setattr(
        DuoBertReranker, 'aggregated', lambda self, query, differences: np.zeros(len(differences))
    )
    saving = {} if keep is None else {'save_scores': True, 'replay_k0': keep}
    mono = run_stages(world, stages_of(world)[:1]).run
    both = run_stages(world, stages_of(world), **saving).run
    assert any(ranked.docids[:4] != sorted(ranked.docids[:4]) for ranked in mono.values())
    assert {qid: ranked.docids for qid, ranked in both.items()} == {
        qid: list.docids for qid, list in mono.items()
    }


def test_only_mono_and_duo_scores_are_kept(world):
    settings = {'save_scores': True}
    mono = run_stages(world, stages_of(world)[:1], **settings)
    assert [len(kept.scores) for kept in mono.saved] == [10, 10, 4]
    assert [item.docid for item in replay(mono.saved[0], 10)] == list(mono.run['q1'].docids)
    duo = run_stages(world, stages_of(world)[1:], **settings)
    assert [item.docid for item in replay(duo.saved[0], 0, 4)] == list(duo.run['q1'].docids)
    with pytest.raises(InputError, match='two whose last is duoBERT'):
        run_stages(world, [stages_of(world)[0]] * 2, **settings)


@pytest.mark.parametrize(
    ('stage', 'reads_scores'), [('{mono}@10:weight=0.5', True), ('{mono}@10', False)]
)
def test_resuming_refuses_other_scores_where_they_are_mixed(stage, reads_scores, world, tmp_path):
    stages = [stage.format(mono=world.mono)]
    settings = {'output': tmp_path / 'out.txt', 'batch_inputs': 1}
    run_stages(world, stages, **settings)
    docids = world.run['q1'].docids
    steeper = world.run | {'q1': Ranking(docids, [2.0**-rank for rank in range(len(docids))])}
    if reads_scores:
        with pytest.raises(MismatchError, match='begun with other settings'):
            run_stages(world, stages, run=steeper, resume=True, **settings)
    else:
        run_stages(world, stages, run=steeper, resume=True, **settings)


@pytest.mark.parametrize(
    'stages',
    [
        ['{mono}@10:weight=0.5'],
        ['{mono}@10:weight=0.5', '{duo}@4'],
        ['{mono}@10', '{duo}@4:weight=0.5'],
    ],
)
def test_scores_that_depend_on_the_depth_are_not_saved(stages, world):
    """A replay of fewer candidates would have other scores than a run of these."""
    named = [stage.format(mono=world.mono, duo=world.duo) for stage in stages]
    with pytest.raises(InputError, match='mixes its score') as refused:
        run_stages(world, named, save_scores=True)
    assert refused.value.parameters == ('pairs',)
