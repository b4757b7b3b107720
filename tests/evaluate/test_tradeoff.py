import csv

import numpy as np
import pytest

from pyserini_repbert.commands.evaluate import main
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import parse_measures
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
        (Setting(4, 4), None),
        (Setting(3, 3), None),
        (Setting(4, 1), 'dabc'),
    ],
)
def test_one_query_replayed(setting, expected):
    kept = one_query()
    if expected is None:
        with pytest.raises(InputError, match='not all pairs of'):
            replay(kept, setting.k0, setting.k1, setting.method)
    else:
        assert ''.join(replay(kept, setting.k0, setting.k1, setting.method).docids) == expected


def test_inferences_are_counted_as_in_the_paper():
    assert Setting(1000).inferences() == (1000, 0)
    assert Setting(1000, 50).inferences() == (1000, 50 * 49)
    assert Setting(1000, 50, 'sample', 10).inferences() == (1000, 50 * 10)
    assert Setting(1000, 50).inferences(20) == (20, 20 * 19)
    assert Setting(100, 20, 'sample', 30).inferences() == (100, 20 * 19)
    assert Setting(10, 5).inferences(0) == (0, 0)


def test_settings_are_combined():
    found = settings([10, 4], [0, 1, 5, 20], ['sum', 'sample'], [2, 4, 9])
    assert found == [Setting(4), Setting(10), Setting(10, 5), Setting(10, 5, 'sample', 2)]


def test_quality_and_cost_of_settings():
    kept = [one_query('q1'), one_query('q2')]
    qrels = {'q1': {'a': 1}, 'q2': {'d': 1}, 'q3': {'x': 1}}
    chosen = [Setting(4), Setting(3), Setting(4, 2), Setting(4, 4)]
    points, missing = trade_off(kept, qrels, chosen, parse_measures(['MRR@10']), rates=[0.5, 0.25])
    assert missing == [Setting(4, 4)]
    values = [point.values['MRR@10'] for point in points]
    np.testing.assert_allclose(values, [(0.5 + 1) / 3, (1 + 0.25) / 3, (1 + 0.5) / 3])
    assert [point.inferences for point in points] == [4, 3, 6]
    assert [point.seconds for point in points] == [2.0, 1.5, 2.5]
    assert [point.setting for point in pareto_front(points, 'MRR@10')] == [Setting(3), Setting(4)]
    assert best_within(points, 'MRR@10', 3.9).setting == Setting(3)
    with pytest.raises(InputError, match='the cheapest setting takes 3'):
        best_within(points, 'MRR@10', 2)


def test_the_front_leaves_out_what_is_no_better():
    def point(cost, value):
        return Point(Setting(int(cost)), cost, None, {'m': value})

    points = [
        point(5, 0.3),
        point(1, 0.1),
        point(2, 0.1),
        point(3, 0.3),
        point(3, 0.2),
        point(9, 0.4),
    ]
    assert [p.inferences for p in pareto_front(points, 'm')] == [1, 3, 9]


def test_sampling_is_averaged_over_trials():
    rng = np.random.default_rng(0)
    n = 8
    differences = rng.normal(size=(n, n)) * 3
    np.fill_diagonal(differences, NAN)
    kept = SavedScores(
        'q', 't', tuple('abcdefgh'), -np.arange(n, dtype=float), np.arange(n), differences
    )
    chosen = [Setting(n, n, 'sample', 2)]
    replays = [replay(kept, n, n, 'sample', 2, seed).docids.index('d') for seed in range(10)]
    assert len(set(replays)) > 1
    points, _ = trade_off([kept], {'q': {'d': 1}}, chosen, parse_measures(['MRR@10']))
    assert points[0].values['MRR@10'] == pytest.approx(
        np.mean([1 / (1 + place) for place in replays])
    )


def test_the_command(tmp_path, capsys, figures):
    scores = tmp_path / 'kept.npz'
    qrels = tmp_path / 'qrels.txt'
    costs = [{'seconds': 4.0, 'inferences': 8}, {'seconds': 1.0, 'inferences': 4}]
    assert seconds_an_inference({'costs': costs}) == [0.5, 0.25]
    write_saved_scores(scores, [one_query('q1'), one_query('q2')], {'costs': costs})
    qrels.write_text('q1 0 a 1\nq2 0 d 1\n')
    table = tmp_path / 'points.csv'
    plot = tmp_path / 'points.png'
    given = [
        str(scores),
        '--qrels',
        str(qrels),
        *'--k0 3 4 9 --k1 0 2 4 --methods sum --quiet'.split(),
    ]
    files = ['--csv', str(table), '--plot', str(plot)]
    main(['tradeoff', *given, *files, '--budget', '5', '--measures', 'MRR@10', 'R@1'])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split('|')[1].strip() == 'k0=3'
    assert '1 settings left out, whose pairs were not compared: --replay-k0 4' in lines
    assert lines[-3] == 'best MRR@10 within 5 inferences a query: 0.7500 with k0=4'
    assert lines[-2] == 'run it with: --reranker MONO@4'
    assert lines[-1] == 'predicted: 4.0 inferences, 2.000 s a query'
    rows = list(csv.DictReader(table.open()))
    assert [row['k0'] + row['k1'] for row in rows] == ['30', '32', '40', '42']
    assert [row['nominal_inferences'] for row in rows] == ['3', '5', '4', '6']
    assert [row['front_MRR@10'] for row in rows] == ['1', '0', '1', '0']
    assert rows[1]['inferences'] == '5.00'
    assert plot.read_bytes().startswith(b'\x89PNG')
    reciprocal, recall = figures[0].axes
    assert [axis.get_ylabel() for axis in (reciprocal, recall)] == ['MRR@10', 'R@1']
    shown = {points.get_label(): points.get_offsets().tolist() for points in reciprocal.collections}
    values = {
        row['k0'] + row['k1']: [float(row['inferences']), float(row['MRR@10'])] for row in rows
    }
    assert shown['monoBERT'] == [values['30'], values['40']] == shown['Pareto front']
    assert shown['sum'] == [values['32'], values['42']] == [[5, 0.625], [6, 0.75]]
    with pytest.raises(InputError, match="'much'"):
        main(['tradeoff', *given, '--budget', 'much'])
    with pytest.raises(InputError, match='has scores to k0=4, and pairs of 4 candidates'):
        main(['tradeoff', str(scores), '--qrels', str(qrels), '--k0', '100'])
