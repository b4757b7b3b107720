"""The models of confidence: how they are fitted, stored and read."""

import json
from dataclasses import replace

import numpy as np
import pytest

from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.extensions.confidence.models import (
    HIT_FEATURES,
    ConfidenceModel,
    HeldOutTest,
    LogisticModel,
    chance_auc,
    dump_model,
    fit_logistic,
    parse_model,
    verdict,
)
from pyserini_repbert.extensions.confidence.reliability import area_under_roc

N_FEATURES = len(HIT_FEATURES)
PASSED = HeldOutTest(auc=0.8, chance=0.6)
FLAT = LogisticModel((0.0,) * N_FEATURES, (1.0,) * N_FEATURES, (0.0,) * N_FEATURES, 0.0)


def flat_model(hits_test=PASSED, questions_test=PASSED):
    return ConfidenceModel(
        FLAT, FLAT, 'learned', hits_test, questions_test, {'fusion': None}, 'sha'
    )


def test_probabilities_are_those_of_a_logistic_regression():
    model = LogisticModel((1.0,), (2.0,), (3.0,), 0.5)
    expected = 1 / (1 + np.exp(-(3 * (2 - 1) / 2 + 0.5)))
    assert model.probabilities(np.array([[2.0]])) == pytest.approx([expected])


def test_a_fit_follows_many_outcomes():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4000, 1))
    outcomes = rng.random(4000) < 1 / (1 + np.exp(-(2 * rows[:, 0] - 1)))
    model = fit_logistic(rows, outcomes, n_questions=4000)
    slope = model.weights[0] / model.scale[0]
    assert slope == pytest.approx(2, abs=0.2)
    assert model.intercept - slope * model.centre[0] == pytest.approx(-1, abs=0.15)


def test_few_outcomes_have_small_weights():
    rows = np.array([[1.0], [-1.0]])
    few = fit_logistic(rows, [False, True], n_questions=2)
    many = fit_logistic(np.tile(rows, (200, 1)), [False, True] * 200, n_questions=400)
    assert many.weights[0] < few.weights[0] < 0


def test_outcomes_of_one_kind_have_finite_weights():
    model = fit_logistic(np.array([[0.0], [1.0]]), [True, True], n_questions=2)
    assert np.isfinite([*model.weights, model.intercept]).all()


def test_rounding_teaches_nothing():
    """A feature that is the same in all rows differs in its last bits on some processors."""
    rng = np.random.default_rng(0)
    outcomes = np.arange(40) % 2 == 0
    constant = np.where(outcomes, np.nextafter(1.0, 2.0), 1.0)
    model = fit_logistic(
        np.stack([constant, rng.normal(size=40)], axis=1), outcomes, n_questions=40
    )
    assert model.scale[0] == 1.0
    assert model.weights[0] == pytest.approx(0, abs=1e-9)
    seen = model.probabilities(np.array([[1.0, 0.0]]))
    assert model.probabilities(np.array([[1.001, 0.0]])) == pytest.approx(seen)


@pytest.mark.parametrize('n_questions', [20, 500])
def test_a_probability_says_no_more_than_its_questions_can_know(n_questions):
    """Laplace: after 20 outcomes of one kind, the next one is of this kind with 21 / 22."""
    outcomes = np.arange(n_questions) < n_questions / 2
    separable = np.where(outcomes, 1.0, -1.0)[:, None]
    model = fit_logistic(separable, outcomes, n_questions=n_questions)
    far = model.probabilities(np.array([[1e6], [-1e6]]))
    most = (n_questions + 1) / (n_questions + 2)
    assert far == pytest.approx([most, 1 - most])


def test_a_stored_model_without_a_number_of_questions_has_the_fewest():
    values = json.loads(dump_model(flat_model()))
    del values['hits']['n_questions']
    assert parse_model(values, 'report').hits.n_questions == 20


def test_a_model_is_read_as_it_was_written():
    model = flat_model()
    assert parse_model(json.loads(dump_model(model)), 'report') == model
    assert model.why_not_shown() is None


@pytest.mark.parametrize(
    'change',
    [{'hits': None}, {'hits_test': {'auc': 2, 'chance': 0.6}}, {'source': 'guess'}, {'other': 1}],
)
def test_other_values_are_refused(change):
    values = json.loads(dump_model(flat_model()))
    with pytest.raises(DamagedFileError, match='is not a model of confidence'):
        parse_model(values | change, 'report')


def test_a_model_of_other_features_is_refused():
    short = LogisticModel((0.0,), (1.0,), (0.0,), 0.0)
    values = json.loads(dump_model(replace(flat_model(), hits=short)))
    with pytest.raises(DamagedFileError, match='does not have the features'):
        parse_model(values, 'report')


def test_verdicts():
    assert [verdict(p) for p in (0.5, 0.49, 0.2, 0.19)] == ['likely', 'weak', 'weak', 'nothing']


def test_chance_is_by_mann_and_whitney_with_questions_for_judgments():
    # 20 questions with one true and nine false ones each: as 20 true and 20 false ones.
    questions = np.repeat(range(20), 10).tolist()
    outcomes = ([True] + [False] * 9) * 20
    by_hand = 0.5 + 1.959964 * np.sqrt((20 + 20 + 1) / (12 * 20 * 20))
    assert chance_auc(questions, outcomes) == pytest.approx(by_hand)
    # A question with ten of the 19 true ones counts for most of them: 19 ** 2 / (100 + 9) of them.
    uneven = [True] * 10 + ([True] + [False] * 9) * 9
    effective = 19**2 / 109
    by_hand = 0.5 + 1.959964 * np.sqrt((effective + 9 + 1) / (12 * effective * 9))
    assert chance_auc(questions[:100], uneven) == pytest.approx(by_hand)
    assert chance_auc([0, 1], [True, True]) is None


def test_chance_seldom_passes():
    """Probabilities that know nothing pass in 2.5% of tests at most, also where those of a
    question are alike.
    """
    rng = np.random.default_rng(0)
    questions = np.repeat(range(20), 10)
    for share_of_question in (0.0, 0.5, 1.0):
        passed = 0
        for _ in range(2000):
            outcomes = rng.random(200) < rng.beta(0.3, 1.2, 20)[questions]
            of_question = rng.normal(size=20)[questions] * np.sqrt(share_of_question)
            scores = of_question + rng.normal(size=200) * np.sqrt(1 - share_of_question)
            test = HeldOutTest(
                area_under_roc(scores, outcomes), chance_auc(questions.tolist(), outcomes.tolist())
            )
            passed += test.is_passed
        assert passed <= 0.025 * 2000 + 3 * np.sqrt(0.025 * 2000)


@pytest.mark.parametrize(
    ('test', 'problem'),
    [
        (HeldOutTest(0.167, 0.75), 'AUC of 0.17, and chance alone reaches 0.75'),
        (HeldOutTest(1.0, 1.01), 'too few judgments'),
        (HeldOutTest(None, None), 'say the same'),
    ],
)
def test_what_no_test_supports_is_not_shown(test, problem):
    assert problem in flat_model(hits_test=test).why_not_shown()
    assert 'P(answered)' in flat_model(questions_test=test).why_not_shown()
