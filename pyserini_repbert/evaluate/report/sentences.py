"""What the figures of a report mean, in plain sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyserini_repbert.evaluate.comparisons import RunComparison
from pyserini_repbert.evaluate.measures import NamedMeasure
from pyserini_repbert.evaluate.significance import LEVEL

# A p below this one is not shown as a number.
_LEAST_P = 0.0001
# "At least 25" questions (Buckley and Voorhees, Evaluating Evaluation Measure Stability, 2000).
_FEW_QUESTIONS = 25
# Below this share of judged hits, figures say little about unjudged ones.
_SMALL_SHARE = 0.5
# Of two judged shares: from here on, the ranking with the smaller one is at a disadvantage.
_UNEQUAL_SHARES = 0.1

_MEANINGS = {
    'nDCG': 'how close the order of {hits} comes to the best one: 1 if the documents of the '
    'highest grades come first, 0 if none is found',
    'RR': '1 divided by the rank of the first relevant document among {hits}; 0 without one',
    'R': 'the share of the relevant documents that are among {hits}',
    'P': 'the share of {hits} that is relevant',
    'AP': 'the precision at the rank of each relevant document among {hits}, averaged over all '
    'relevant documents',
    'Success': '1 if a relevant document is among {hits}, otherwise 0',
    'Judged': 'the share of {hits} that is judged',
}


def measure_meaning(named: NamedMeasure) -> str:
    """What a measure says of a question."""
    meaning = _MEANINGS.get(named.measure.NAME)
    if meaning is None:
        return 'a measure that https://ir-measur.es describes'
    cutoff = named.measure.params.get('cutoff')
    hits = f'the first {cutoff} hits' if cutoff else 'all hits'
    least_grade = named.measure.params.get('rel', 1)
    grades = f'; relevant are grades from {least_grade} on' if least_grade > 1 else ''
    return meaning.format(hits=hits) + grades


def verdict(compared: RunComparison, confidence: float) -> list[str]:
    """How a run compares with a baseline in a measure.

    If the difference may be chance, the higher mean says nothing about the systems. So no run is
    called better by its mean.

    Parameters
    ----------
    compared : the comparison
    confidence : of its interval
    """
    one = compared.comparison
    baseline = compared.baseline
    if not one.wins and not one.losses:
        return [f'{compared.run} and {baseline} have the same {one.measure} in every question.']
    mean = 'same'
    if one.difference > 0:
        mean = 'higher'
    elif one.difference < 0:
        mean = 'lower'
    sentences = [
        f'{compared.run} has the {mean} mean {one.measure}: {one.mean:.4f}, and {baseline} '
        f'{one.baseline:.4f} ({one.difference:+.4f}).'
    ]
    p = f'p {p_text(compared.p)}'
    if compared.p < LEVEL:
        sentences.append(f'The difference is more than chance explains ({p}).')
    else:
        sentences.append(f'The difference may be chance ({p}): more judged questions can tell.')
    if compared.interval is not None:
        sentences.append(
            f'With {100 * confidence:g}% confidence, it lies between {compared.interval.low:+.4f} '
            f'and {compared.interval.high:+.4f}.'
        )
    sentences.append(
        f'{compared.run} is better in {count(one.wins, "question")}, worse in {one.losses}, and '
        f'equal in {one.ties}.'
    )
    return sentences


def cautions(n_questions: int, n_without_relevant: int, shares: Mapping[str, float]) -> list[str]:
    """What to keep in mind with these judgments.

    Parameters
    ----------
    n_questions : judged questions
    n_without_relevant : how many of them have no relevant document
    shares : which share of its best hits is judged, by run
    """
    sentences = []
    if n_questions < _FEW_QUESTIONS:
        sentences.append(
            f'{count(n_questions, "judged question")}: few. Below {_FEW_QUESTIONS}, another set of '
            'questions may well turn the order of the rankings around.'
        )
    if n_without_relevant:
        sentences.append(
            f'{count(n_without_relevant, "question")} without any relevant document: every ranking '
            'has 0 there.'
        )
    sentences += _share_cautions(shares)
    return sentences


def model_cautions(judge: str | None) -> list[str]:
    """A sentence that the language model `judge` also judged; nothing if none did."""
    if judge is None:
        return []
    return [f"Grades of the language model '{judge}' are among the judgments: not people's alone."]


def _share_cautions(shares: Mapping[str, float]) -> list[str]:
    """What unjudged hits mean."""
    if not shares:
        return []
    sentences = []
    least = min(shares, key=lambda run: shares[run])
    most = max(shares, key=lambda run: shares[run])
    if shares[least] < _SMALL_SHARE:
        shown = joined([f'{shares[run]:.0%} of {run}' for run in shares])
        sentences.append(
            f'Many of the top hits are not judged: judged are {shown}. A hit that nobody judged '
            'counts as not relevant, so a ranking may be better than its figures.'
        )
    if shares[most] - shares[least] >= _UNEQUAL_SHARES:
        sentences.append(
            f'{most} has more judged top hits ({shares[most]:.0%}) than {least} '
            f'({shares[least]:.0%}). That favours {most}: judge the hits of {least}, too.'
        )
    return sentences


def p_text(p: float) -> str:
    """'= 0.0123', to follow 'p'."""
    if p < _LEAST_P:
        return f'< {_LEAST_P}'
    return f'= {p:.4f}'


def count(number: int, what: str) -> str:
    """'1 question', '2 questions'."""
    plural = '' if number == 1 else 's'
    return f'{number} {what}{plural}'


def joined(names: Sequence[str]) -> str:
    """'a, b and c'."""
    if len(names) < 2:
        return ''.join(names)
    return f'{", ".join(names[:-1])} and {names[-1]}'
