"""kill -9 at every file event of a training: resumed, it leaves the bytes of one that was never
stopped.
"""

import sys
from pathlib import Path

import pytest

ATTACK = Path(__file__).parents[1] / 'attack'
sys.path.insert(0, str(ATTACK))
import kill_at  # noqa: E402

SCENARIOS = {
    'full': ('monobert', {'max_query_length': 8, 'max_length': 48}, {}),
    'adapter': (
        'repbert',
        {'max_query_length': 8, 'max_doc_length': 16},
        {'adapter': {'rank': 2, 'alpha': 4}},
    ),
    'overwrite': ('repbert', {'max_query_length': 8, 'max_doc_length': 16}, {}),
}
TRAINING = {'steps': 5, 'save_every': 2, 'log_every': 3}  # a state between two lines of the log


@pytest.fixture
def killed(recipe_file, world, tmp_path):
    """killed(scenarios, way, every) -> what came of each; the adapter is validated, and its
    training stops early.
    """

    def recipe_of(scenario):
        system, ranking, keys = SCENARIOS[scenario]
        training = TRAINING
        if scenario == 'adapter':
            validation = {key: world[key] for key in ('topics', 'qrels', 'corpus')}
            keys = keys | {'validation': validation | {'sample': 4, 'every': 2, 'patience': 1}}
            training = TRAINING | {'steps': 9, 'unit_layer': True, 'learning_rate': 0.05}
        recipe = recipe_file(system, ranking=ranking, training=training, **keys)
        return recipe.rename(recipe.with_name(f'{scenario}.yaml'))

    def run(scenarios, way, every):
        named = [f'{scenario}={recipe_of(scenario)}' for scenario in scenarios]
        (tmp_path / 'kills').mkdir()
        return kill_at.fresh(ATTACK / 'train_kills.py', tmp_path / 'kills', way, every, *named)

    return run


def test_a_sample_of_points(killed):
    found = killed(['full'], 'kill', 60)['full']
    assert found['failures'] == []
    assert found['killed'] >= 3


@pytest.mark.slow
def test_every_point(killed, one_in):
    """One point in twelve, with `--exhaustive` all; one process imports PyTorch for all."""
    every = one_in(12)
    for scenario, found in killed(SCENARIOS, 'copy', every).items():
        assert found['failures'] == [], scenario
        assert found['points'] > 80
        assert found['killed'] == len(range(0, found['points'], every))
        print(f'\n{scenario}: {found["killed"]} points, 0 failures')
