"""The report as an HTML page: one file, without scripts, that loads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.evaluate.comparisons import (
    ComparisonSettings,
    RunComparison,
    compare_with_first,
)
from pyserini_repbert.evaluate.measures import NamedMeasure
from pyserini_repbert.evaluate.report import chart
from pyserini_repbert.evaluate.report.document_texts import ReadDocuments
from pyserini_repbert.evaluate.report.questions import (
    QuestionViewer,
    Selection,
    ShownQuestion,
    differences,
    select_questions,
    shown_docids,
)
from pyserini_repbert.evaluate.report.rows import question_rows, ranking_rows, run_files
from pyserini_repbert.evaluate.report.runs import TOP_HITS, MeasuredRun, is_relevant
from pyserini_repbert.evaluate.report.sentences import (
    cautions,
    count,
    joined,
    measure_meaning,
    model_cautions,
    p_text,
    verdict,
)
from pyserini_repbert.evaluate.significance import SAMPLES, TEST_NAMES, SignificanceTest
from pyserini_repbert.evaluate.tables import page
from pyserini_repbert.files import StrPath, atomic_file
from pyserini_repbert.record import Input, plain, versions

# Those that compute measures and tests.
_PACKAGES = ('pyserini_repbert', 'python', 'ir-measures', 'pytrec-eval-terrier', 'numpy')


@dataclass(frozen=True)
class ReportSettings:
    """How a report compares, and what it says about its inputs.

    Attributes
    ----------
    measures : the first one decides which questions are shown
    inputs : the files read, except for the runs
    made_on : the day
    test : what p is of
    confidence : of the intervals
    samples, seed : of the bootstrap and the randomisation test
    judged_only : whether hits without a judgment were left out of the measures
    model_judge : the language model whose grades are among the judgments; None if only people
        judged
    """

    measures: Sequence[NamedMeasure]
    inputs: Sequence[Input]
    made_on: date
    test: SignificanceTest = SignificanceTest.T
    confidence: float = 0.95
    samples: int = SAMPLES
    seed: int = 0
    judged_only: bool = False
    model_judge: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, 'test', SignificanceTest(self.test))

    @property
    def measure(self) -> str:
        """The name of the first measure."""
        return self.measures[0].name


@dataclass(frozen=True)
class GainsAndLosses:
    """A run against the first one, question by question."""

    name: str
    sentences: tuple[str, ...]
    chart: chart.Chart
    losses: tuple[ShownQuestion, ...]
    gains: tuple[ShownQuestion, ...]


@dataclass(frozen=True)
class Judgments:
    """How much was judged."""

    n_questions: int
    n_documents: int
    n_relevant: int
    greatest_grade: int
    n_without_relevant: int


def write_report(
    path: StrPath,
    runs: Sequence[MeasuredRun],
    qrels: Qrels,
    *,
    settings: ReportSettings,
    words: Mapping[str, str],
    read_documents: ReadDocuments,
) -> None:
    """Write the page, atomically.

    Parameters
    ----------
    path : of the page
    runs : one or several; the others are compared with the first
    qrels : the judgments that they were measured by
    settings : how they are compared
    words : of the questions, by qid; may be empty
    read_documents : gives titles and texts of documents
    """
    selections = select_questions(runs, settings.measure, qrels)
    viewer = QuestionViewer(
        qrels=qrels,
        words=words,
        documents=read_documents(shown_docids(selections, qrels)),
        measure=settings.measure,
    )
    compared = _compare(runs, settings)
    gains_and_losses = []
    lowest: tuple[ShownQuestion, ...] = ()
    for selection in selections:
        if len(runs) == 1:
            lowest = _shown(selection.losses, selection, viewer)
        else:
            gains_and_losses.append(_gains_and_losses(selection, compared, viewer, settings))
    judgments = _count_judgments(qrels)
    rankings = ranking_rows(
        runs,
        qrels,
        confidence=settings.confidence,
        samples=settings.samples,
        seed=settings.seed,
    )
    shares = {row.name: row.judged_share for row in rankings if row.judged_share is not None}
    known_versions = versions()
    text = page(
        'evaluation',
        cautions=[
            *model_cautions(settings.model_judge),
            *cautions(judgments.n_questions, judgments.n_without_relevant, shares),
        ],
        chart_width=chart.WIDTH,
        chart_height=chart.HEIGHT,
        compared=compared,
        count=count,
        files=run_files(runs),
        gains_and_losses=gains_and_losses,
        judgments=judgments,
        lowest=lowest,
        meanings=[(named.name, measure_meaning(named)) for named in settings.measures],
        names=[run.name for run in runs],
        p_text=p_text,
        questions=question_rows(runs, words, settings.measure),
        rankings=rankings,
        settings=settings,
        test=TEST_NAMES[settings.test],
        title=joined([run.name for run in runs]),
        top_hits=TOP_HITS,
        versions={name: known_versions[name] for name in _PACKAGES if name in known_versions},
    )
    with atomic_file(path) as stream:
        # A file's name may hold bytes that are not UTF-8.
        stream.write(plain(text))


def _compare(runs: Sequence[MeasuredRun], settings: ReportSettings) -> list[RunComparison]:
    """The comparisons with the first run; a single question tells nothing."""
    n_questions = len(runs[0].evaluation.values[settings.measure])
    if n_questions < 2:
        return []
    how = ComparisonSettings(
        test=settings.test,
        confidence=settings.confidence,
        samples=settings.samples,
        seed=settings.seed,
    )
    return compare_with_first({run.name: run.evaluation for run in runs}, how)


def _gains_and_losses(
    selection: Selection,
    compared: Sequence[RunComparison],
    viewer: QuestionViewer,
    settings: ReportSettings,
) -> GainsAndLosses:
    """The gains and losses of a selection's second run against the first one."""
    baseline, run = selection.runs
    sentences: list[str] = []
    for one in compared:
        if one.run == run.name and one.comparison.measure == settings.measure:
            sentences = verdict(one, settings.confidence)
    changes = differences(baseline, run, settings.measure)
    return GainsAndLosses(
        name=run.name,
        sentences=tuple(sentences),
        chart=chart.make_chart(changes),
        losses=_shown(selection.losses, selection, viewer),
        gains=_shown(selection.gains, selection, viewer),
    )


def _shown(
    qids: Sequence[str], selection: Selection, viewer: QuestionViewer
) -> tuple[ShownQuestion, ...]:
    return tuple(viewer.show(qid, selection.runs) for qid in qids)


def _count_judgments(qrels: Qrels) -> Judgments:
    n_documents = 0
    n_relevant = 0
    n_without_relevant = 0
    greatest_grade = 0
    for grades in qrels.values():
        n_of_question = sum(map(is_relevant, grades.values()))
        n_documents += len(grades)
        n_relevant += n_of_question
        n_without_relevant += not n_of_question
        greatest_grade = max(greatest_grade, max(grades.values(), default=0))
    return Judgments(len(qrels), n_documents, n_relevant, greatest_grade, n_without_relevant)
