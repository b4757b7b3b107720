"""Measures of probabilities, against answers by hand."""

import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.extensions.confidence.reliability import (
    area_under_roc,
    brier_score,
    expected_calibration_error,
    reliability,
    risk_by_coverage,
)


def test_brier_is_the_mean_squared_distance():
    assert brier_score([1.0, 0.5, 0.0], [True, True, True]) == pytest.approx((0 + 0.25 + 1) / 3)


def test_bins_hold_as_many_predictions_each():
    bins = reliability([0.9, 0.1, 0.2, 0.8], [True, False, True, True], n_bins=2)
    assert [(group.observed, group.n) for group in bins] == [(0.5, 2), (1.0, 2)]
    assert [group.predicted for group in bins] == pytest.approx([0.15, 0.85])


def test_the_error_is_weighted_by_the_size_of_bins():
    assert expected_calibration_error([0.25] * 4, [True, False, False, False]) == pytest.approx(
        (0.75 + 3 * 0.25) / 4
    )
    assert expected_calibration_error([1.0, 0.0], [True, False]) == 0


def test_auc_counts_ties_half():
    assert area_under_roc([0.9, 0.5, 0.5, 0.1], [True, True, False, False]) == pytest.approx(0.875)
    assert area_under_roc([0.1, 0.9], [True, False]) == 0
    assert area_under_roc([0.1, 0.9], [True, True]) is None


def test_risk_is_of_the_most_probable():
    assert risk_by_coverage([0.1, 0.9, 0.5], [False, True, False]) == pytest.approx(
        [0, 1 / 2, 2 / 3]
    )


@pytest.fixture
def predictions(tmp_path):
    path = tmp_path / 'confidence.tsv'
    path.write_text(
        'q1\ta\t1\t0.900000\t0.800000\nq1\tb\t2\t0.100000\t0.800000\n'
        'q2\tc\t1\t0.300000\t0.200000\nunjudged\td\t1\t0.5\t0.5\n'
    )
    return path


def test_the_command_measures_and_draws(predictions, tmp_path, capsys):
    qrels = tmp_path / 'qrels.txt'
    qrels.write_text('q1 0 a 1\nq2 0 z 1\n')
    plot = tmp_path / 'plot.svg'
    flags = ['evaluate', 'calibration', str(predictions), '--qrels', str(qrels)]
    assert run(main, [*flags, '--plot', str(plot)]) == 0
    lines = [' '.join(line.split()) for line in capsys.readouterr().out.splitlines()]
    error = (0.1 + 0.1 + 0.3) / 3
    brier = (0.01 + 0.01 + 0.09) / 3
    assert f'| P(relevant) | 3 | 1.0000 | {error:.4f} | {brier:.4f} |' in lines
    assert '| P(answered) | 2 | 1.0000 | 0.2000 | 0.0400 |' in lines
    assert '| 50% | 0.0000 |' in lines
    assert '| 100% | 0.5000 |' in lines
    assert 'unjudged hits count as not relevant' in lines
    assert 'risk against coverage' in plot.read_text()


def test_unjudged_hits_are_left_out_beside_judged_ones(predictions, tmp_path, capsys):
    qrels = tmp_path / 'qrels.txt'
    qrels.write_text('q1 0 a 1\nq1 0 x 0\n')
    assert run(main, ['evaluate', 'calibration', str(predictions), '--qrels', str(qrels)]) == 0
    out = capsys.readouterr().out
    assert 'unjudged hits are left out' in out
    assert '| P(relevant) | 1 ' in ' '.join(out.split())


def test_another_file_is_refused(tmp_path, capsys):
    path = tmp_path / 'run.txt'
    path.write_text('q1 Q0 a 1 0.5 tag\n')
    qrels = tmp_path / 'qrels.txt'
    qrels.write_text('q1 0 a 1\n')
    assert run(main, ['evaluate', 'calibration', str(path), '--qrels', str(qrels)]) == 2
    assert 'run.txt:1: expected qid, docid, rank' in capsys.readouterr().err
