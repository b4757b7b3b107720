"""`evaluate calibration`: how far the probabilities of `search --confidence` can be believed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyserini_repbert.commands.command import parser
from pyserini_repbert.commands.flags import add_flags, parse_flags, write_values
from pyserini_repbert.commands.model_grades import load_judgments
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.data.values import decimal
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.plots import draw_panels
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.files import StrPath, existing_file

if TYPE_CHECKING:
    from pyserini_repbert.extensions.confidence.reliability import ReliabilityBin

# A question is answered by a relevant document among so many.
_TOP = 10
_COVERAGES = (0.25, 0.5, 0.75, 1.0)


@dataclass
class _Predictions:
    """Probabilities, and what came true."""

    probabilities: list[float] = field(default_factory=list)
    outcomes: list[bool] = field(default_factory=list)


def calibration(arguments: Sequence[str]) -> None:
    """Print AUC, ECE and Brier score, and risk against coverage; draw both on request."""
    flags = parser(
        'evaluate calibration',
        'How far the probabilities that `search --topics --confidence FILE.tsv` writes can be '
        'believed: AUC, expected calibration error, Brier score, and the risk of a wrong answer '
        'against the share of questions that are answered.',
    )
    flags.add_argument(
        'file', metavar='FILE.tsv', help='qid, docid, rank, P(relevant), P(answered)'
    )
    add_flags(flags, 'qrels', 'csv', 'plot', 'overwrite')
    options = parse_flags(flags, arguments)
    from pyserini_repbert.evaluate.measures import counts_unjudged
    from pyserini_repbert.extensions.confidence.reliability import (
        area_under_roc,
        brier_score,
        expected_calibration_error,
        reliability,
        risk_by_coverage,
    )

    qrels = load_judgments(options.qrels)
    takes_unjudged = counts_unjudged(qrels)
    hits, questions = _read_predictions(options.file, qrels, takes_unjudged)
    rows = []
    for name, predictions in (('P(relevant)', hits), ('P(answered)', questions)):
        probabilities = predictions.probabilities
        outcomes = predictions.outcomes
        auc = area_under_roc(probabilities, outcomes)
        rows.append(
            [
                name,
                str(len(probabilities)),
                'none' if auc is None else f'{auc:.4f}',
                f'{expected_calibration_error(probabilities, outcomes):.4f}',
                f'{brier_score(probabilities, outcomes):.4f}',
            ]
        )
    print(markdown(['', 'n', 'AUC', 'ECE', 'Brier'], rows))
    treated = 'count as not relevant' if takes_unjudged else 'are left out'
    print(f'unjudged hits {treated}\n')
    risks = risk_by_coverage(questions.probabilities, questions.outcomes)
    cells = []
    for coverage in _COVERAGES:
        risk = risks[max(round(coverage * len(risks)), 1) - 1]
        cells.append([f'{coverage:.0%}', f'{risk:.4f}'])
    print(markdown(['questions answered', 'without a relevant document'], cells))
    if options.csv or options.plot:
        diagrams = {
            'P(relevant)': reliability(hits.probabilities, hits.outcomes),
            'P(answered)': reliability(questions.probabilities, questions.outcomes),
        }
        write_values(options.csv, ['curve', 'x', 'y'], _curves(diagrams, risks))
    if options.plot:
        plot_calibration(options.plot, diagrams, risks)
        print(options.plot)


def _curves(
    diagrams: Mapping[str, Sequence[ReliabilityBin]], risks: Sequence[float]
) -> dict[str, dict[float, float]]:
    """What the plot shows: observed by predicted shares, and risk by coverage."""
    curves: dict[str, dict[float, float]] = {}
    for name, bins in diagrams.items():
        curves[name] = {group.predicted: group.observed for group in bins}
    coverage = [(number + 1) / len(risks) for number in range(len(risks))]
    curves['risk'] = dict(zip(coverage, risks, strict=True))
    return curves


def _read_predictions(
    path: str, qrels: Qrels, takes_unjudged: bool
) -> tuple[_Predictions, _Predictions]:
    """The predictions of hits and of judged questions.

    Raises InputError for a line of another form, and for judgments of other topics.
    """
    hits = _Predictions()
    answered: dict[str, float] = {}
    has_answer: dict[str, bool] = {}
    text = existing_file(path, 'file of confidence').read_text(encoding='utf-8')
    for number, line in enumerate(text.splitlines(), 1):
        try:
            qid, docid, rank, relevant, of_question = line.split('\t')
            depth = int(rank)
            probability = decimal(relevant)
            question = decimal(of_question)
        except ValueError as error:
            raise InputError(
                f'{path}:{number}: expected qid, docid, rank, P(relevant) and P(answered), with '
                'tabs between'
            ) from error
        grades = qrels.get(qid)
        if grades is None:
            continue
        is_relevant = grades.get(docid, 0) > 0
        if takes_unjudged or docid in grades:
            hits.probabilities.append(probability)
            hits.outcomes.append(is_relevant)
        answered[qid] = question
        has_answer[qid] = has_answer.get(qid, False) or (is_relevant and depth <= _TOP)
    if not hits.probabilities:
        raise InputError(f'{path} has no judged hit: give the judgments of its topics')
    return hits, _Predictions(list(answered.values()), [has_answer[qid] for qid in answered])


def plot_calibration(
    path: StrPath, diagrams: Mapping[str, Sequence[ReliabilityBin]], risks: Sequence[float]
) -> None:
    """Reliability diagrams in one panel, and risk against coverage beside it.

    Parameters
    ----------
    path : the file to write
    diagrams : the bins of each kind of probability, by its name
    risks : of `risk_by_coverage`
    """

    def draw_reliability(axis: Any) -> None:
        axis.plot(
            [0, 1], [0, 1], color='0.6', marker='', linestyle='-', linewidth=1, label='perfect'
        )
        for name, bins in diagrams.items():
            predicted = [group.predicted for group in bins]
            axis.plot(predicted, [group.observed for group in bins], label=name)
        axis.set(xlabel='predicted', ylabel='observed', title='reliability')
        axis.legend()

    def draw_risk(axis: Any) -> None:
        coverage = [(number + 1) / len(risks) for number in range(len(risks))]
        axis.step(coverage, list(risks), where='post', marker='')
        axis.set(xlabel='share of questions answered', ylabel='share without a relevant document')
        axis.set(ylim=(0, 1), title='risk against coverage')

    def draw(axis: Any, label: str, draw_panel: Callable[[Any], None]) -> None:
        draw_panel(axis)
        axis.grid(alpha=0.3)

    draw_panels(path, {'reliability': draw_reliability, 'risk': draw_risk}, draw)
