"""`python -m pyserini_repbert.evaluate --html`: the report as a page."""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Sequence

from pyserini_repbert.commands.evaluate_comparing import settings_of
from pyserini_repbert.commands.model_grades import model_judge_of
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.evaluate.measures import Evaluation, NamedMeasure
from pyserini_repbert.evaluate.report.document_texts import open_documents
from pyserini_repbert.evaluate.report.runs import MeasuredRun, measured_run
from pyserini_repbert.evaluate.report.sentences import count
from pyserini_repbert.evaluate.report.writing import ReportSettings, write_report
from pyserini_repbert.names.inputs import input_of
from pyserini_repbert.names.topics import load_topics
from pyserini_repbert.ranking import Run
from pyserini_repbert.record import Input

_CONFIDENCE = 0.95


class HtmlReport:
    """What the report shows, collected while runs are read one after the other.

    Topics, and the index or corpus of documents, are opened at once, so that a missing one is
    noticed before runs are read.
    """

    def __init__(
        self, options: argparse.Namespace, measures: Sequence[NamedMeasure], qrels: Qrels
    ) -> None:
        self._options = options
        self._measures = measures
        self._qrels = qrels
        self._words: dict[str, str] = {}
        if options.topics:
            self._words = {query.qid: query.text for query in load_topics(options.topics)}
        self._read_documents = open_documents(options.index, options.corpus)
        self._runs: list[MeasuredRun] = []

    def add(self, name: str, path: str, run: Run, evaluation: Evaluation) -> None:
        """Add a run with all its hits, unjudged ones too.

        Parameters
        ----------
        name : of the run in the page
        path : of its file
        run : all its hits
        evaluation : its measured values
        """
        measured = measured_run(name, path, run, evaluation=evaluation, qrels=self._qrels)
        self._runs.append(measured)

    def write(self) -> str:
        """Write the page, and return a line that says so."""
        options = self._options
        compared = settings_of(options)
        settings = ReportSettings(
            measures=self._measures,
            inputs=self._inputs(),
            made_on=datetime.datetime.now(datetime.UTC).date(),
            test=compared.test,
            confidence=compared.confidence or _CONFIDENCE,
            samples=compared.samples,
            seed=compared.seed,
            judged_only=options.judged_only,
            model_judge=model_judge_of(options.qrels),
        )
        write_report(
            options.html,
            self._runs,
            self._qrels,
            settings=settings,
            words=self._words,
            read_documents=self._read_documents,
        )
        rankings = count(len(self._runs), 'ranking')
        return f'{options.html}: {rankings}, {count(len(self._qrels), "judged question")}'

    def _inputs(self) -> list[Input]:
        inputs = []
        for role in ('qrels', 'topics', 'index', 'corpus'):
            name = getattr(self._options, role)
            if name:
                inputs.append(input_of(role, name))
        return inputs
