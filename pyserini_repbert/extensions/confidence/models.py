"""The probabilities that a hit is relevant, and that a question is answered: two small models.

Each is a logistic regression with few weights. It is fitted to judgments, and shrinks to 0
where these are few. The models never change the order of hits.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.files import StrPath

# Features of a hit, and of a question, in the order of a model's weights.
HIT_FEATURES = ('cosine', 'distance', 'words', 'agreement', 'margin')
# How strongly weights are drawn to 0: as by so many judgments.
SHRINKAGE = 2.0
# A spread below this share of the greatest feature is rounding, which differs between processors.
_ROUNDING = 1e-6
# Hits of a question that its probability looks at.
TOP = 10
# Questions of a model that does not say how many: learning needs so many.
_FEWEST_QUESTIONS = 20
# The 97.5th percentile of the normal distribution: the ends of a 95% interval.
_Z = 1.959964
LIKELY = 0.5
WEAK = 0.2

Verdict = Literal['likely', 'weak', 'nothing']
Source = Literal['learned']
Number = Annotated[float, Field(allow_inf_nan=False)]
Rows = NDArray[np.float64]


@dataclass(frozen=True, config=ConfigDict(strict=True, extra='forbid', defer_build=True))
class LogisticModel:
    """A logistic regression over standardised features.

    Attributes
    ----------
    centre, scale : of each feature
    weights : of each standardised feature
    intercept : of their sum
    n_questions : how many it was learned from, which bounds what it can know
    """

    centre: tuple[Number, ...]
    scale: tuple[Annotated[float, Field(gt=0, allow_inf_nan=False)], ...]
    weights: tuple[Number, ...]
    intercept: Number
    n_questions: Annotated[int, Field(ge=1)] = _FEWEST_QUESTIONS

    def probabilities(self, rows: Rows) -> Rows:
        """The probability of each row of features, (n,); rows are (n, features).

        None is above (n + 1) / (n + 2) for n questions, or below 1 / (n + 2): after n outcomes of
        one kind, the next one is of this kind with that probability (Laplace's rule of succession).
        """
        # Here and below: SciPy takes long to import, and searches seldom need it.
        from scipy.special import expit

        standard = (rows - np.array(self.centre)) / np.array(self.scale)
        values: Rows = expit(standard @ np.array(self.weights) + self.intercept)
        least = 1 / (self.n_questions + 2)
        return values.clip(least, 1 - least)


@dataclass(frozen=True, config=ConfigDict(strict=True, extra='forbid', defer_build=True))
class HeldOutTest:
    """Whether probabilities tell true from false ones on held-out questions.

    Attributes
    ----------
    auc : how often a true one has the greater probability; None if all outcomes are the same
    chance : the AUC that chance reaches in one of forty tests, see `chance_auc`
    """

    auc: Annotated[float, Field(ge=0, le=1)] | None
    chance: Annotated[float, Field(ge=0.5, allow_inf_nan=False)] | None

    @property
    def is_passed(self) -> bool:
        """Whether the AUC is above what chance reaches."""
        return self.auc is not None and self.chance is not None and self.auc > self.chance


def chance_auc(questions: Sequence[int], outcomes: Sequence[bool]) -> float | None:
    """The upper end of the 95% interval of the AUC where probabilities know nothing.

    By Mann and Whitney (1947), it is .5 + 1.96 * sqrt((m + n + 1) / (12 m n)) for m true and n
    false ones that are independent. The hits of one question are not: m and n are the effective
    numbers of questions (Kish 1965), (sum of c)^2 / (sum of c^2) of the counts c in each question,
    as if all of a question said the same. It is above 1 if no AUC would be enough.

    Parameters
    ----------
    questions : the number of the question of each outcome, (n,)
    outcomes : what came true, (n,)

    Returns None without a true one, or without a false one.
    """
    counts: dict[bool, Counter[int]] = {True: Counter(), False: Counter()}
    for question, outcome in zip(questions, outcomes, strict=True):
        counts[bool(outcome)][question] += 1
    if not (counts[True] and counts[False]):
        return None
    n_true = _effective_number(counts[True].values())
    n_false = _effective_number(counts[False].values())
    deviation = math.sqrt((n_true + n_false + 1) / (12 * n_true * n_false))
    return 0.5 + _Z * deviation


def _effective_number(counts: Iterable[int]) -> float:
    """The number of groups of the same size that say as much as groups of these sizes."""
    sizes = list(counts)
    return sum(sizes) ** 2 / sum(size**2 for size in sizes)


@dataclass(frozen=True, config=ConfigDict(strict=True, extra='forbid', defer_build=True))
class ConfidenceModel:
    """What a collection's, or an encoder's, probabilities are computed by.

    Attributes
    ----------
    hits : P(relevant)
    questions : P(answered)
    source : 'learned' from the collection's judgments
    hits_test : of P(relevant)
    questions_test : of P(answered), of questions against the same with their answers removed
    search : the search for which it holds, as `SearchedRankings.description` gives it
    encoder_weights : SHA-256 of the encoder for which it holds
    stages : the rerankers of its search, as NAME@K; with some, what the last one says of a hit is a
        further feature, behind `HIT_FEATURES`
    """

    hits: LogisticModel
    questions: LogisticModel
    source: Source
    hits_test: HeldOutTest
    questions_test: HeldOutTest
    search: dict[str, Any]
    encoder_weights: str
    format: Literal['pyserini_repbert.confidence'] = 'pyserini_repbert.confidence'
    version: Literal[2] = 2
    stages: tuple[str, ...] = ()

    def why_not_shown(self) -> str | None:
        """Which probability is not shown, because tests on held-out questions do not support it;
        None: all are.
        """
        for name, test in (('P(relevant)', self.hits_test), ('P(answered)', self.questions_test)):
            if test.is_passed:
                continue
            if test.auc is None or test.chance is None:
                return f'all judgments that test {name} say the same'
            if test.chance >= 1:
                return f'too few judgments test {name}'
            return (
                f'on held-out questions, {name} has an AUC of {test.auc:.2f}, and chance alone '
                f'reaches {test.chance:.2f} with so few judgments'
            )
        return None


_FORM = TypeAdapter(ConfidenceModel)


def dump_model(model: ConfidenceModel) -> bytes:
    """The JSON of a model."""
    return _FORM.dump_json(model, indent=1) + b'\n'


def parse_model(values: object, file: StrPath) -> ConfidenceModel:
    """A model from the values of its JSON. Raises DamagedFileError, which names the file."""
    try:
        # Lists are tuples in JSON.
        model = _FORM.validate_json(json.dumps(values))
    except ValidationError as error:
        problem = error.errors()[0]['msg']
        raise DamagedFileError(f'{file} is not a model of confidence ({problem})') from error
    n_features = len(HIT_FEATURES) + bool(model.stages)
    for part in (model.hits, model.questions):
        lengths = {len(part.centre), len(part.scale), len(part.weights)}
        if lengths != {n_features}:
            raise DamagedFileError(f'{file} does not have the features of this release')
    return model


def fit_logistic(
    rows: Rows, outcomes: Sequence[bool] | NDArray[np.bool_], *, n_questions: int
) -> LogisticModel:
    """A logistic regression whose weights are drawn to 0.

    A feature that is the same in all rows, except for rounding, has no part in it.

    Parameters
    ----------
    rows : features, (n, features)
    outcomes : (n,)
    n_questions : of how many questions these are
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    targets = np.asarray(outcomes, np.float64)
    centre = rows.mean(axis=0)
    spread = rows.std(axis=0)
    varies = spread > _ROUNDING * np.abs(rows).max(initial=0.0)
    scale = np.where(varies, spread, 1.0)
    standard = (rows - centre) / scale

    def loss(values: Rows) -> tuple[float, Rows]:
        logits = standard @ values[:-1] + values[-1]
        errors = expit(logits) - targets
        weights = values[:-1]
        total = (np.logaddexp(0, logits) - targets * logits).sum()
        gradient = np.append(standard.T @ errors + SHRINKAGE * weights, errors.sum())
        # A hair's weight, so that outcomes of one kind have a finite intercept.
        gradient[-1] += 0.01 * values[-1]
        total += SHRINKAGE / 2 * weights @ weights + 0.005 * values[-1] ** 2
        return float(total), gradient

    start = np.zeros(rows.shape[1] + 1)
    fitted = minimize(loss, start, jac=True, method='L-BFGS-B').x
    return LogisticModel(
        tuple(map(float, centre)),
        tuple(map(float, scale)),
        tuple(map(float, fitted[:-1])),
        float(fitted[-1]),
        n_questions,
    )


def verdict(probability: float) -> Verdict:
    """What a question's probability says: 'likely', 'weak' or 'nothing'."""
    if probability >= LIKELY:
        return 'likely'
    return 'weak' if probability >= WEAK else 'nothing'
