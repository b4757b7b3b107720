import csv

import numpy as np
import pytest

from pyserini_repbert.commands.evaluate import main
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import Evaluation, parse_measures
from pyserini_repbert.evaluate.studies.tradeoff import (
    Point,
    Setting,
    best_within,
    pareto_front,
    seconds_an_inference,
    settings,
    trade_off,
)
from pyserini_repbert.systems.duobert.saved_scores import (
    SavedScores,
    replay,
    write_saved_scores,
)

NAN = float('nan')


def one_query(qid='q1'):
    """Four candidates: the first stage has b first, monoBERT d, duoBERT (sum) a; the pair (b, c)
    was not compared.
    """
    differences = np.array(  # between d, a, b, c
        [
            [NAN, -2.0, 1.0, 2.0],
            [2.0, NAN, 3.0, 1.0],
            [-1.0, -3.0, NAN, NAN],
            [-2.0, -1.0, NAN, NAN],
        ]
    )
    scores = np.array([-2.0, -1.0, -3.0, -0.5])
    return SavedScores(
        qid, 'text', ('b', 'a', 'c', 'd'), scores, np.array([3, 1, 0, 2]), differences
    )


@pytest.mark.parametrize(
    ('setting', 'expected'),
    [
        (Setting(4), 'dabc'),
        (Setting(3), 'abcd'),
        (Setting(1), 'bacd'),
        (Setting(4, 2), 'adbc'),
        (Setting(4, 3), 'adbc'),
        (Setting(4, 2, 'max'), 'adbc'),
        (Setting(4, 1), 'dabc'),
    ],
)
def test_one_query_replayed(setting, expected):
    ranking = replay(one_query(), setting.k0, setting.k1, setting.method)
    assert ''.join(ranking.docids) == expected


@pytest.mark.parametrize('setting', [Setting(4, 4), Setting(3, 3)])
def test_pairs_that_were_not_compared_cannot_be_replayed(setting):
    with pytest.raises(InputError, match='not all pairs of'):
        replay(one_query(), setting.k0, setting.k1, setting.method)


def test_inferences_are_counted_as_in_the_paper():
    assert Setting(1000).inferences() == (1000, 0)
    assert Setting(1000, 50).inferences() == (1000, 50 * 49)
    assert Setting(1000, 50, 'sample', 10).inferences() == (1000, 50 * 10)
    assert Setting(1000, 50).inferences(20) == (20, 20 * 19)
    assert Setting(100, 20, 'sample', 30).inferences() == (100, 20 * 19)
    assert Setting(10, 5).inferences(0) == (0, 0)


def test_settings_are_combined():
    chosen = settings([10, 4], [0, 1, 5, 20], ['sum', 'sample'], [2, 4, 9])
    assert chosen == [Setting(4), Setting(10), Setting(10, 5), Setting(10, 5, 'sample', 2)]


@pytest.fixture
def trade_off_of_two():
    """Two queries: q1 seeks a, q2 seeks d; q3 has no scores. An inference of monoBERT takes half a
    second, one of duoBERT a quarter.
    """
    qrels = {'q1': {'a': 1}, 'q2': {'d': 1}, 'q3': {'x': 1}}
    chosen = [Setting(4), Setting(3), Setting(4, 2), Setting(4, 4)]
    measures = parse_measures(['MRR@10'])
    saved = [one_query('q1'), one_query('q2')]
    return trade_off(saved, qrels, chosen, measures, rates=[0.5, 0.25])


def test_quality_of_settings(trade_off_of_two):
    values = [point.values['MRR@10'] for point in trade_off_of_two.points]
    np.testing.assert_allclose(values, [(0.5 + 1) / 3, (1 + 0.25) / 3, (1 + 0.5) / 3])


def test_cost_of_settings(trade_off_of_two):
    points = trade_off_of_two.points
    assert [point.inferences for point in points] == [4, 3, 6]
    assert [point.seconds for point in points] == [2.0, 1.5, 2.5]


def test_settings_without_their_pairs_are_missing(trade_off_of_two):
    assert trade_off_of_two.missing == [Setting(4, 4)]


def test_the_best_within_a_budget(trade_off_of_two):
    points = trade_off_of_two.points
    assert best_within(points, 'MRR@10', 3.9).setting == Setting(3)
    with pytest.raises(InputError, match='the cheapest setting takes 3'):
        best_within(points, 'MRR@10', 2)


def test_the_front_of_settings(trade_off_of_two):
    front = pareto_front(trade_off_of_two.points, 'MRR@10')
    assert [point.setting for point in front] == [Setting(3), Setting(4)]


def test_the_front_leaves_out_what_is_no_better():
    points = []
    for cost, value in ((5, 0.3), (1, 0.1), (2, 0.1), (3, 0.3), (3, 0.2), (9, 0.4)):
        points.append(Point(Setting(cost), cost, None, Evaluation({}, {'m': value}, ())))
    assert [point.inferences for point in pareto_front(points, 'm')] == [1, 3, 9]


def test_sampling_is_averaged_over_trials():
    rng = np.random.default_rng(0)
    n = 8
    differences = rng.normal(size=(n, n)) * 3
    np.fill_diagonal(differences, NAN)
    scores = -np.arange(n, dtype=float)
    saved = SavedScores('q', 't', tuple('abcdefgh'), scores, np.arange(n), differences)
    reciprocal_ranks = []
    for seed in range(10):
        docids = replay(saved, n, n, 'sample', 2, seed).docids
        reciprocal_ranks.append(1 / (docids.index('d') + 1))
    assert len(set(reciprocal_ranks)) > 1
    measures = parse_measures(['MRR@10'])
    points, _ = trade_off([saved], {'q': {'d': 1}}, [Setting(n, n, 'sample', 2)], measures)
    assert points[0].values['MRR@10'] == pytest.approx(np.mean(reciprocal_ranks))


COSTS = [{'seconds': 4.0, 'inferences': 8}, {'seconds': 1.0, 'inferences': 4}]


def test_seconds_an_inference():
    assert seconds_an_inference({'costs': COSTS}) == [0.5, 0.25]


@pytest.fixture
def command(tmp_path):
    """run(FLAGS): the command on two queries that seek a and d, to k0=4; k0=9 is too deep."""
    scores = tmp_path / 'saved.npz'
    qrels = tmp_path / 'qrels.txt'
    write_saved_scores(scores, [one_query('q1'), one_query('q2')], {'costs': COSTS})
    qrels.write_text('q1 0 a 1\nq2 0 d 1\n')
    given = ['tradeoff', str(scores), '--qrels', str(qrels), '--methods', 'sum', '--quiet']

    def run(*flags, k0=(3, 4, 9)):
        main([*given, '--k1', '0', '2', '4', '--k0', *map(str, k0), *flags])

    return run


def test_the_command_prints_settings_and_the_best_within_a_budget(command, capsys):
    command('--budget', '5', '--measures', 'MRR@10', 'R@1')
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split('|')[1].strip() == 'k0=3'
    assert '1 setting left out, whose pairs were not compared: --replay-k0 4' in lines
    assert lines[-3:] == [
        'best MRR@10 within 5 inferences a query: 0.7500 with k0=4',
        'run it with: --reranker MONO@4',
        'predicted: 4.0 inferences, 2.000 s a query',
    ]


def test_the_command_writes_a_table(command, tmp_path):
    table = tmp_path / 'points.csv'
    command('--csv', str(table))
    rows = list(csv.DictReader(table.open()))
    assert [(row['k0'], row['k1']) for row in rows] == [
        ('3', '0'),
        ('3', '2'),
        ('4', '0'),
        ('4', '2'),
    ]
    assert [row['nominal_inferences'] for row in rows] == ['3', '5', '4', '6']
    assert [row['front_MRR@10'] for row in rows] == ['1', '0', '1', '0']
    assert rows[1]['inferences'] == '5.00'


def test_the_command_draws_a_panel_for_each_measure(command, tmp_path, figures):
    """k0=3 and k0=4 alone give 0.625 and 0.75; so do they with the pair of k1=2."""
    command('--plot', str(tmp_path / 'points.png'), '--measures', 'MRR@10', 'R@1')
    reciprocal, recall = figures[0].axes
    assert (reciprocal.get_ylabel(), recall.get_ylabel()) == ('MRR@10', 'R@1')
    shown = {points.get_label(): points.get_offsets().tolist() for points in reciprocal.collections}
    assert shown['monoBERT'] == shown['Pareto front'] == [[3, 0.625], [4, 0.75]]
    assert shown['sum'] == [[5, 0.625], [6, 0.75]]


def test_a_latex_table_has_the_front_and_the_dearest_setting(command, capsys):
    """k0=4 with k1=2 takes the most inferences, and is as good as k0=4 alone."""
    command('--latex')
    lines = capsys.readouterr().out.splitlines()
    start = lines.index(r'\midrule')
    assert lines[start + 1 : start + 4] == [
        r'k0=3 & 3.0 & 1.500 & 0.6250 \\',
        r'k0=4 & 4.0 & 2.000 & \textbf{0.7500} \\',
        r'k0=4 k1=2 sum & 6.0 & 2.500 & \textbf{0.7500} \\',
    ]
    assert "than the last line (paired t-test, two-sided, $p < .05$, Holm's" in lines[3]


def test_the_command_refuses_settings_beyond_the_scores(command):
    with pytest.raises(InputError, match='has scores to k0=4, and pairs of 4 candidates'):
        command(k0=[100])


def test_the_command_refuses_a_budget_that_is_no_number(command):
    with pytest.raises(InputError, match="'much'"):
        command('--budget', 'much')
