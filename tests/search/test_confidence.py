"""The models of confidence: how they are fitted, stored and read."""

import json

import numpy as np
import pytest

from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.search.confidence import (
    HIT_FEATURES,
    ConfidenceModel,
    LogisticModel,
    dump_model,
    fit_logistic,
    read_model,
    verdict,
)

N_FEATURES = len(HIT_FEATURES)
FLAT = LogisticModel((0.0,) * N_FEATURES, (1.0,) * N_FEATURES, (0.0,) * N_FEATURES, 0.0)


def test_probabilities_are_those_of_a_logistic_regression():
    model = LogisticModel((1.0,), (2.0,), (3.0,), 0.5)
    expected = 1 / (1 + np.exp(-(3 * (2 - 1) / 2 + 0.5)))
    assert model.probabilities(np.array([[2.0]])) == pytest.approx([expected])


def test_a_fit_follows_many_outcomes():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4000, 1))
    outcomes = rng.random(4000) < 1 / (1 + np.exp(-(2 * rows[:, 0] - 1)))
    model = fit_logistic(rows, outcomes)
    slope = model.weights[0] / model.scale[0]
    assert slope == pytest.approx(2, abs=0.2)
    assert model.intercept - slope * model.centre[0] == pytest.approx(-1, abs=0.15)


def test_few_outcomes_stay_near_the_prior():
    prior = LogisticModel((0.0, 0.0), (1.0, 1.0), (1.0, -1.0), 0.0)
    few = fit_logistic(np.array([[1.0, 1.0], [-1.0, -1.0]]), [False, True], prior)
    assert np.allclose(few.weights, prior.weights, atol=0.5)
    many = fit_logistic(np.array([[1.0, 1.0], [-1.0, -1.0]] * 200), [False, True] * 200, prior)
    assert sum(many.weights) < sum(few.weights)


def test_outcomes_of_one_kind_have_finite_weights():
    model = fit_logistic(np.array([[0.0], [1.0]]), [True, True])
    assert np.isfinite([*model.weights, model.intercept]).all()


def test_a_model_is_read_as_it_was_written(tmp_path):
    model = ConfidenceModel(FLAT, FLAT, 'prior', 0.59, 'sha')
    path = tmp_path / 'confidence.json'
    path.write_bytes(dump_model(model))
    assert read_model(path) == model
    assert not model.is_shown


@pytest.mark.parametrize(
    'change', [{'hits': None}, {'hard_auc': 2}, {'source': 'guess'}, {'other': 1}]
)
def test_another_file_is_refused(tmp_path, change):
    path = tmp_path / 'confidence.json'
    values = json.loads(dump_model(ConfidenceModel(FLAT, FLAT, 'prior', 0.7, '')))
    path.write_text(json.dumps(values | change))
    with pytest.raises(DamagedFileError, match='is no model of confidence'):
        read_model(path)


def test_a_model_of_other_features_is_refused(tmp_path):
    path = tmp_path / 'confidence.json'
    short = LogisticModel((0.0,), (1.0,), (0.0,), 0.0)
    path.write_bytes(dump_model(ConfidenceModel(short, FLAT, 'prior', 0.7, '')))
    with pytest.raises(DamagedFileError, match='other features'):
        read_model(path)


def test_verdicts():
    assert [verdict(p) for p in (0.5, 0.49, 0.2, 0.19)] == ['likely', 'weak', 'weak', 'nothing']
