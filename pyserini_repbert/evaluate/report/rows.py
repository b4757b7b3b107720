"""The rows of a report's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.evaluate.report.questions import differences
from pyserini_repbert.evaluate.report.runs import MeasuredRun
from pyserini_repbert.evaluate.significance import Interval, bootstrap_interval
from pyserini_repbert.record import read_record


@dataclass(frozen=True)
class MeanCell:
    """A run's mean; `interval` is None for a sum such as NumRet, and of a single question."""

    value: float
    interval: Interval | None
    is_best: bool


@dataclass(frozen=True)
class RankingRow:
    """A run in the table of rankings.

    Attributes
    ----------
    means : one a measure
    judged_share : of its top hits; None if it has no hits
    n_without_hits : questions
    """

    name: str
    means: tuple[MeanCell, ...]
    judged_share: float | None
    n_without_hits: int


@dataclass(frozen=True)
class RunFile:
    """Where a run comes from; `command` wrote it, '' if no record says so."""

    name: str
    path: str
    command: str


@dataclass(frozen=True)
class QuestionRow:
    """A question in the table of all questions: each run's value, and the differences of the
    others from the first.
    """

    qid: str
    text: str
    values: tuple[float, ...]
    differences: tuple[float, ...]


def ranking_rows(
    runs: Sequence[MeasuredRun], qrels: Qrels, *, confidence: float, samples: int, seed: int
) -> list[RankingRow]:
    """The runs with their means, and the bootstrap intervals of these.

    Parameters
    ----------
    runs, qrels : what was measured
    confidence, samples, seed : of the intervals
    """
    best = {}
    for measure in runs[0].evaluation.means:
        best[measure] = max(run.evaluation.means[measure] for run in runs)
    rows = []
    for run in runs:
        cells = []
        for measure, mean in run.evaluation.means.items():
            values = list(run.evaluation.values[measure].values())
            interval = None
            if len(values) > 1 and not run.evaluation.is_sum(measure):
                zeros = [0.0] * len(values)
                interval = bootstrap_interval(values, zeros, confidence, samples, seed)
            is_best = len(runs) > 1 and mean == best[measure]
            cells.append(MeanCell(mean, interval, is_best))
        row = RankingRow(
            name=run.name,
            means=tuple(cells),
            judged_share=run.judged_share(qrels),
            n_without_hits=len(run.evaluation.without_hits),
        )
        rows.append(row)
    return rows


def run_files(runs: Sequence[MeasuredRun]) -> list[RunFile]:
    """Where the runs come from."""
    files = []
    for run in runs:
        record = read_record(run.path)
        command = ''
        if record is not None:
            command = ' '.join(record.command)
        files.append(RunFile(run.name, run.path, command))
    return files


def question_rows(
    runs: Sequence[MeasuredRun], words: Mapping[str, str], measure: str
) -> list[QuestionRow]:
    """All questions, in the order of the judgments.

    Parameters
    ----------
    runs : whose values are shown
    words : of the questions, by qid
    measure : of the values
    """
    baseline = runs[0]
    changes = [differences(baseline, run, measure) for run in runs[1:]]
    rows = []
    for qid in baseline.evaluation.values[measure]:
        row = QuestionRow(
            qid=qid,
            text=words.get(qid, ''),
            values=tuple(run.evaluation.values[measure][qid] for run in runs),
            differences=tuple(change[qid] for change in changes),
        )
        rows.append(row)
    return rows
