"""Grades of language models, beside people's judgments and never among them.

They are in a separate table of the file of judgments, so code that reads judgments does not see
them. `JudgmentsWithModel` combines both on request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from pyserini_repbert.collection.judgments import (
    Judgment,
    JudgmentStore,
    cohens_kappa,
    middle_grade,
    question_text,
)
from pyserini_repbert.data.model_judges import MODEL_PREFIX
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.ranking import Query

_DIGITS = 8  # of a prompt's checksum, in a judge's name


@dataclass(frozen=True)
class ModelJudge:
    """A language model with a prompt, as a judge.

    Attributes
    ----------
    model : its name at its server
    prompt_sha256 : of the prompt that says how it grades
    """

    model: str
    prompt_sha256: str

    @property
    def name(self) -> str:
        """'llm:MODEL:1a2b3c4d': with another prompt, it is another judge."""
        return f'{MODEL_PREFIX}{self.model}:{self.prompt_sha256[:_DIGITS]}'


@dataclass(frozen=True)
class ModelGrade:
    """How well a document answers a question, as a language model says.

    Attributes
    ----------
    question : its text
    docid : of the document
    grade : 0 to 3
    generation : digest of the collection's generation that had the document
    version : digest of the document's title and text
    """

    question: str
    docid: str
    grade: int
    generation: str = ''
    version: str = ''


@dataclass(frozen=True)
class ModelAgreement:
    """How far a language model agrees with people, on the documents that both judged.

    Attributes
    ----------
    judge : the model's name as a judge
    n_grades : how many grades it gave
    pairs : the people's grade and the model's, of each question and document that both judged
    kappa : Cohen's kappa of these; None without any, and if chance alone would always agree
    """

    judge: str
    n_grades: int
    pairs: Sequence[tuple[int, int]]
    kappa: float | None


class ModelGradeStore(JudgmentStore):
    """The grades of language models in a file of judgments, whose other methods are of people's."""

    def model_judges(self) -> list[str]:
        """The names of the models that have given grades, in order."""
        rows = self.select('SELECT DISTINCT judge FROM model_grades')
        return sorted(judge for (judge,) in rows)

    def add_grades(self, judge: ModelJudge, grades: Sequence[ModelGrade]) -> None:
        """Store grades, all or none; one of the same question, document and judge is replaced.

        The grade of a question that is no longer here is left out.
        """
        judged = datetime.now(UTC).isoformat(timespec='milliseconds')
        rows = []
        for grade in grades:
            values = asdict(grade) | asdict(judge)
            rows.append(values | {'judge': judge.name, 'judged': judged})
        with self.writing() as connection:
            connection.executemany(
                'INSERT OR REPLACE INTO model_grades SELECT :question, :docid, :judge, :grade, '
                ':judged, :generation, :version, :model, :prompt_sha256 '
                'WHERE EXISTS (SELECT 1 FROM questions WHERE text = :question)',
                rows,
            )

    def grades(self, judge: str) -> list[ModelGrade]:
        """The grades of a model, which `judge` names, by question and docid."""
        rows = self.select(
            'SELECT question, docid, grade, generation, version FROM model_grades '
            'JOIN questions ON questions.text = question WHERE judge = :judge '
            'ORDER BY questions.number, docid',
            judge=judge,
        )
        grades = [ModelGrade(*row) for row in rows]
        for grade in grades:
            if not isinstance(grade.grade, int):
                raise DamagedFileError(
                    f"{self.path} is damaged, a model's grade is {grade.grade!r:.40}: restore it "
                    'from a copy'
                )
        return grades

    def agreement_with_people(self, judge: str) -> ModelAgreement:
        """How far a model agrees with people.

        Where several people judged a document, the middle grade counts, as in `qrels`. A document
        that has changed between the two is left out.
        """
        judgments: dict[tuple[str, str], list[Judgment]] = {}
        for judgment in self.judgments():
            judgments.setdefault((judgment.question, judgment.docid), []).append(judgment)
        pairs = []
        grades = self.grades(judge)
        for grade in grades:
            of_people = [
                judgment.grade
                for judgment in judgments.get((grade.question, grade.docid), [])
                if judgment.version in ('', grade.version)
            ]
            if of_people:
                pairs.append((middle_grade(of_people), grade.grade))
        kappa = cohens_kappa(pairs) if pairs else None
        return ModelAgreement(judge, len(grades), tuple(pairs), kappa)


class JudgmentsWithModel(JudgmentStore):
    """People's judgments, and a language model's grades of what no person judged.

    A model's judgment has the model's name as its judge.

    Parameters
    ----------
    path : of the file of judgments
    judge : the model's name as a judge

    Raises InputError for a model that has given no grade here.
    """

    def __init__(self, path: Path, judge: str) -> None:
        super().__init__(path)
        self.judge = judge
        self._grades = ModelGradeStore(path)
        known = self._grades.model_judges()
        if judge not in known:
            names = ', '.join(f"'{name}'" for name in known) or 'none'
            raise InputError(
                f"'{judge}' is not a language model that has judged here: expected one of {names}",
                parameters=('with_model_grades',),
            )

    def judgments(self, judge: str | None = None, question: str | None = None) -> list[Judgment]:
        """As in `JudgmentStore`: people's, then the model's."""
        by_people = super().judgments(None, question)
        judged = {(judgment.question, judgment.docid) for judgment in by_people}
        judgments = [judgment for judgment in by_people if judge in (None, judgment.judge)]
        if judge not in (None, self.judge):
            return judgments
        text = None if question is None else question_text(question)
        for grade in self._grades.grades(self.judge):
            is_wanted = text in (None, grade.question)
            if is_wanted and (grade.question, grade.docid) not in judged:
                judgments.append(Judgment(judge=self.judge, **asdict(grade)))
        return judgments

    def count(self) -> int:
        return len(self.judgments())

    def topics(self) -> list[Query]:
        judged = {judgment.question for judgment in self.judgments()}
        return [question for question in self.questions() if question.text in judged]
