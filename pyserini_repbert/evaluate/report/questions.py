"""The questions to look at: where a ranking gains and loses most, with the hits of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.data.snippets import TextPart, cut_around, mark_words
from pyserini_repbert.data.spelling import mended
from pyserini_repbert.evaluate.report.runs import MeasuredRun, is_relevant

# Questions of each kind: the greatest losses, the greatest gains.
_MOST_QUESTIONS = 5
# How many hits of each ranking, and how many relevant documents, such a question shows.
_MOST_HITS = 5
_MOST_RELEVANT = 10
_SNIPPET_CHARACTERS = 240
# Characters of a document that are searched for the words of the question.
_READ_CHARACTERS = 20_000


@dataclass(frozen=True)
class ShownHit:
    """A hit of a question: its rank from 1, its document, and how it was judged.

    Attributes
    ----------
    title : of the document, '' if it has none or is not known
    parts : its text around the words of the question; none if it is not known
    grade : None: not judged
    """

    rank: int
    docid: str
    title: str
    parts: tuple[TextPart, ...]
    grade: int | None


@dataclass(frozen=True)
class ShownRanking:
    """The best hits of a run for a question, and its value in the first measure."""

    run: str
    value: float
    hits: tuple[ShownHit, ...]


@dataclass(frozen=True)
class RelevantDocument:
    """A relevant document of a question, and its rank in each run; None: not found."""

    docid: str
    title: str
    grade: int
    ranks: tuple[int | None, ...]


@dataclass(frozen=True)
class ShownQuestion:
    """A question to look at.

    Attributes
    ----------
    text : its words, '' if they are not known
    difference : of the second run from the first; None if there is one run
    relevant : the relevant documents, the highest grades first
    n_relevant : how many there are, with those that are not shown
    """

    qid: str
    text: str
    difference: float | None
    rankings: tuple[ShownRanking, ...]
    relevant: tuple[RelevantDocument, ...]
    n_relevant: int


@dataclass(frozen=True)
class Selection:
    """The qids of the questions to look at.

    Attributes
    ----------
    runs : the first run and the one that gains and loses against it, or the only run
    losses : the greatest losses, the greatest first; of an only run, the lowest values
    gains : the greatest gains, the greatest first
    """

    runs: tuple[MeasuredRun, ...]
    losses: tuple[str, ...]
    gains: tuple[str, ...]


def select_questions(
    runs: Sequence[MeasuredRun], measure: str, qrels: Qrels
) -> tuple[Selection, ...]:
    """The questions to look at: a selection for each run but the first, or for an only run.

    Parameters
    ----------
    runs : all that the report tells of
    measure : by which they gain and lose
    qrels : the judgments
    """
    baseline = runs[0]
    if len(runs) == 1:
        lowest = _lowest(baseline.evaluation.values[measure], qrels)
        return (Selection((baseline,), lowest, ()),)
    selections = []
    for run in runs[1:]:
        changes = differences(baseline, run, measure)
        falling = sorted(changes, key=lambda qid: -changes[qid])
        rising = sorted(changes, key=lambda qid: changes[qid])
        losses = [qid for qid in rising[:_MOST_QUESTIONS] if changes[qid] < 0]
        gains = [qid for qid in falling[:_MOST_QUESTIONS] if changes[qid] > 0]
        selections.append(Selection((baseline, run), tuple(losses), tuple(gains)))
    return tuple(selections)


def differences(baseline: MeasuredRun, run: MeasuredRun, measure: str) -> dict[str, float]:
    """By qid, how much more a run has than the baseline in a measure."""
    values = run.evaluation.values[measure]
    return {qid: values[qid] - value for qid, value in baseline.evaluation.values[measure].items()}


def _lowest(values: Mapping[str, float], qrels: Qrels) -> tuple[str, ...]:
    """The qids of the lowest values, among questions that have a relevant document."""
    answerable = [qid for qid in values if any(map(is_relevant, qrels[qid].values()))]
    lowest = sorted(answerable, key=lambda qid: values[qid])
    return tuple(lowest[:_MOST_QUESTIONS])


@dataclass(frozen=True)
class QuestionViewer:
    """Shows questions with the hits of runs.

    Attributes
    ----------
    qrels : the judgments
    words : of the questions, by qid
    documents : those whose title and text are known
    measure : the one whose values are shown
    """

    qrels: Qrels
    words: Mapping[str, str]
    documents: Mapping[str, Document]
    measure: str

    def show(self, qid: str, runs: Sequence[MeasuredRun]) -> ShownQuestion:
        """A question with the hits of one run, or of a baseline and another run."""
        rankings = []
        for run in runs:
            value = run.evaluation.values[self.measure][qid]
            rankings.append(ShownRanking(run.name, value, self._hits(qid, run)))
        difference = None
        if len(rankings) > 1:
            difference = rankings[1].value - rankings[0].value
        docids = _relevant_docids(self.qrels[qid])
        relevant = []
        for docid in docids[:_MOST_RELEVANT]:
            ranks = tuple(run.relevant_ranks[qid].get(docid) for run in runs)
            grade = self.qrels[qid][docid]
            relevant.append(RelevantDocument(docid, self._title(docid), grade, ranks))
        return ShownQuestion(
            qid=qid,
            text=self.words.get(qid, ''),
            difference=difference,
            rankings=tuple(rankings),
            relevant=tuple(relevant),
            n_relevant=len(docids),
        )

    def _hits(self, qid: str, run: MeasuredRun) -> tuple[ShownHit, ...]:
        query = self.words.get(qid, '')
        hits = []
        for rank, docid in enumerate(run.top[qid][:_MOST_HITS], 1):
            hit = ShownHit(
                rank=rank,
                docid=docid,
                title=self._title(docid),
                parts=self._snippet(query, docid),
                grade=self.qrels[qid].get(docid),
            )
            hits.append(hit)
        return tuple(hits)

    def _title(self, docid: str) -> str:
        document = self.documents.get(docid)
        return document.title if document else ''

    def _snippet(self, query: str, docid: str) -> tuple[TextPart, ...]:
        """A document's text around the words of the question."""
        document = self.documents.get(docid)
        if document is None:
            return ()
        text = mended(' '.join(document.text[:_READ_CHARACTERS].split()))
        return tuple(mark_words(query, cut_around(query, text, _SNIPPET_CHARACTERS)))


def shown_docids(selections: Iterable[Selection], qrels: Qrels) -> list[str]:
    """The docids that the selected questions show, each once."""
    docids: dict[str, None] = {}
    for selection in selections:
        for qid in (*selection.losses, *selection.gains):
            for run in selection.runs:
                docids.update(dict.fromkeys(run.top[qid][:_MOST_HITS]))
            docids.update(dict.fromkeys(_relevant_docids(qrels[qid])[:_MOST_RELEVANT]))
    return list(docids)


def _relevant_docids(grades: Mapping[str, int]) -> list[str]:
    """The relevant documents of a question, the highest grades first."""
    relevant = [docid for docid, grade in grades.items() if is_relevant(grade)]
    return sorted(relevant, key=lambda docid: -grades[docid])
