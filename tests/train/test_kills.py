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
    """killed(scenario, every) -> what came of it; the adapter is validated, and its training
    stops early.
    """

    def run(scenario, every):
        system, ranking, keys = SCENARIOS[scenario]
        training = TRAINING
        if scenario == 'adapter':
            validation = {key: world[key] for key in ('topics', 'qrels', 'corpus')}
            keys = keys | {'validation': validation | {'sample': 4, 'every': 2, 'patience': 1}}
            training = TRAINING | {'steps': 9, 'unit_layer': True, 'learning_rate': 0.05}
        recipe = recipe_file(system, ranking=ranking, training=training, **keys)
        (tmp_path / 'kills').mkdir()
        return kill_at.fresh(ATTACK / 'train_kills.py', tmp_path / 'kills', recipe, scenario, every)

    return run


def test_a_sample_of_points(killed):
    found = killed('full', 60)
    assert found['failures'] == []
    assert found['killed'] >= 3


@pytest.mark.slow
@pytest.mark.parametrize('scenario', SCENARIOS)
def test_every_point(scenario, killed, one_in):
    every = one_in(6)
    found = killed(scenario, every)
    assert found['failures'] == []
    assert found['points'] > 80
    assert found['killed'] == len(range(0, found['points'], every))
    print(f'\n{scenario}: {found["killed"]} kills, 0 failures')
