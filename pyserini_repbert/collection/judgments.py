"""People's judgments, the judged questions, and what was learned from them.

They are in one SQLite file, `judgments.sqlite` in a collection. It outlives a rebuild of the
collection, and several programs may write it at a time. Grades of language models are in a separate
table, which `model_grades.py` reads.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import chain, combinations
from typing import Any

from pyserini_repbert.collection.judgment_file import ADVICE, JudgmentFile, is_json, table_problems
from pyserini_repbert.data.model_judges import MODEL_PREFIX
from pyserini_repbert.data.qrels import MAX_GRADE, Qrels
from pyserini_repbert.data.values import HALF_PAIR, has_surrogates, identifier_problem
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.ranking import Query
from pyserini_repbert.sqlite_files import integrity_problems

# The kind of a report of what a person set.
SETTINGS = 'settings'
MAX_MODEL_GRADE = 3
# The greatest length, in characters, of a question, a comment and a judge's name.
_MOST_CHARACTERS = {'question': 2000, 'comment': 2000, 'judge': 100}
# Tables and their columns that hold JSON: a list or an object.
_JSON_COLUMNS = (
    ('pools', 'docids', list),
    ('learnings', 'report', dict),
    ('progress', 'state', dict),
    ('measured', 'report', dict),
    ('measured_rankings', 'docids', list),
)


@dataclass(frozen=True)
class Judgment:
    """How well a document answers a question, as one person sees it.

    Attributes
    ----------
    question : its text
    docid : of the document
    grade : 0 for a document that does not answer, up to 127; the page gives 0 to 3
    judge : who judged; '' if nobody said it
    comment : of the judge
    pool : the pool from which the document was shown; '' for none
    judged : when, in ISO's form and UTC; '' before it is stored
    generation : digest of the collection's generation in which it was seen; '' for a frozen index
    version : digest of the document's title and text as they were judged; '' if not known
    """

    question: str
    docid: str
    grade: int
    judge: str = ''
    comment: str = ''
    pool: str = ''
    judged: str = ''
    generation: str = ''
    version: str = ''


class WhyNext(StrEnum):
    """Why a question should be judged next."""

    DIFFERENT = 'rankings differ'
    UNSURE = 'the answer is unsure'
    RANDOM = 'at random'


@dataclass(frozen=True)
class NextQuestion:
    """A question to judge, and why it comes so early."""

    qid: str
    text: str
    reason: WhyNext


@dataclass(frozen=True)
class Agreement:
    """How far two judges agree on the documents that both judged.

    Attributes
    ----------
    judges : their names
    documents : pairs of question and document that both judged
    kappa : Cohen's kappa of their grades (Cohen 1960); None if chance alone would always agree
    """

    judges: tuple[str, str]
    documents: int
    kappa: float | None


@dataclass(frozen=True)
class Learning:
    """What was learned from judgments, and on what.

    Attributes
    ----------
    number : from 1
    folder : what `adapt` wrote, beside the file of judgments
    learned : when, in ISO's form and UTC
    generation : number of the collection's generation
    judgments : how many judgments there were
    encoder_weights : SHA-256 of the encoder's weights, or of all models' of a collection
    in_use : whether it is how the collection is searched
    report : what the learning gained, as JSON has it; of settings, `before`: the number of what was
        in use before them, `learned`: of the learning that they are set over, and `by_sync` where a
        sync has set them
    """

    number: int
    folder: str
    learned: str
    generation: int
    judgments: int
    encoder_weights: str
    in_use: bool
    report: Mapping[str, Any]

    @property
    def is_settings(self) -> bool:
        """Whether a person set it, with `index settings`; otherwise it was learned."""
        return self.report.get('kind') == SETTINGS


def question_text(text: str) -> str:
    """A question as stored: with single spaces between its words."""
    return ' '.join(text.split())


class JudgmentStore(JudgmentFile):
    """The judgments in one file, which is made when the first is written."""

    def add_questions(self, texts: Iterable[str]) -> int:
        """Add questions; returns how many are new.

        Raises InputError for one that is empty or too long.
        """
        questions = [_checked_text(text) for text in texts]
        with self.writing() as connection:
            return sum(_add_question(connection, text) for text in questions)

    def questions(self) -> list[Query]:
        """All questions, in the order in which they came."""
        rows = self.select('SELECT qid, text FROM questions ORDER BY number')
        return [Query(qid, text) for qid, text in rows]

    def set_next_questions(self, questions: Sequence[NextQuestion]) -> None:
        """Judge questions in this order from now on, and remember why each was chosen."""
        rows = [
            (question.qid, place, str(question.reason)) for place, question in enumerate(questions)
        ]
        with self.writing() as connection:
            # The reasons of questions that were judged since stay.
            connection.execute('UPDATE next_questions SET place = NULL')
            connection.executemany('INSERT OR REPLACE INTO next_questions VALUES (?, ?, ?)', rows)

    def next_questions(self) -> list[str]:
        """The texts of the questions to judge first, in order."""
        rows = self.select(
            'SELECT text FROM next_questions JOIN questions USING (qid) WHERE place IS NOT NULL '
            'ORDER BY place',
        )
        return [text for (text,) in rows]

    def chosen_qids(self) -> set[str]:
        """The qids of questions that were chosen to be judged early, and not at random."""
        rows = self.select(
            'SELECT qid FROM next_questions WHERE reason <> :random',
            random=str(WhyNext.RANDOM),
        )
        return {qid for (qid,) in rows}

    def add_pool(self, pool: str, question: str, docids: Sequence[str]) -> None:
        """Remember which documents were shown together to be judged.

        Parameters
        ----------
        pool : its identifier
        question : its text
        docids : in the order in which they are shown
        """
        text = _checked_text(question)
        with self.writing() as connection:
            _add_question(connection, text)
            connection.execute(
                'INSERT OR REPLACE INTO pools VALUES (?, ?, ?, ?)',
                [pool, text, json.dumps(list(docids)), _now()],
            )

    def pool_sizes(self) -> dict[str, int]:
        """How many documents the newest pool of each question has, by the question's text."""
        rows = self.select('SELECT question, docids FROM pools ORDER BY made')
        return {question: len(self.parsed(docids, list)) for question, docids in rows}

    def add(self, judgments: Sequence[Judgment]) -> None:
        """Store judgments, all or none; one of the same question, document and judge is replaced.

        Raises InputError, which names the judgment, for a grade outside 0 to 127, a docid that no
        run file can hold, and a text that is too long.
        """
        checked = [_checked(judgment) for judgment in judgments]
        with self.writing() as connection:
            for judgment in checked:
                _add_question(connection, judgment.question)
                _replace_judgment(connection, replace(judgment, judged=judgment.judged or _now()))

    def delete(self, question: str, docid: str, judge: str = '') -> int:
        """Take a judgment back; returns how many there were: 0 or 1."""
        if not self.path.is_file():
            return 0
        with self.writing() as connection:
            cursor = connection.execute(
                'DELETE FROM judgments WHERE question = ? AND docid = ? AND judge = ?',
                [question_text(question), docid, judge],
            )
            return cursor.rowcount

    def judged_docids(self) -> set[str]:
        """The documents with a judgment, of a person or a language model."""
        docids = {docid for (docid,) in self.select('SELECT DISTINCT docid FROM judgments')}
        rows = self.select('SELECT DISTINCT docid FROM model_grades')
        return docids | {docid for (docid,) in rows}

    def judged_versions(self) -> dict[str, list[str]]:
        """The versions that were judged, of a person or a language model, by docid."""
        rows = self.select("SELECT docid, version FROM judgments WHERE version <> ''")
        rows += self.select("SELECT docid, version FROM model_grades WHERE version <> ''")
        versions: dict[str, list[str]] = {}
        for docid, version in rows:
            versions.setdefault(docid, []).append(version)
        return versions

    def rename(
        self, docids: Mapping[str, str], versions: Mapping[str, str], generation: str = ''
    ) -> int:
        """Let judgments, pools and measured rankings follow texts that have other docids now.

        A judgment that was given to the text under its new docid stays, instead of the one that
        would follow. A judgment of another text that had this docid is deleted.

        Parameters
        ----------
        docids : the new docid by the old one; '' for a text that is gone, if its document has the
            text of another document now
        versions : the versions that documents have now, by docid; '' for a deleted document
        generation : the checksum of the generation's manifest, for which this is done once; '' to
            do it in any case

        Returns ------- How many of people's judgments were deleted together with their text.
        """
        if not self.path.is_file():
            return 0
        n_displaced = 0
        with self.writing() as connection:
            known = connection.execute('SELECT 1 FROM followed WHERE manifest = ?', [generation])
            if known.fetchone():
                return 0
            for table in ('judgments', 'model_grades'):
                n_deleted = _rename_judged(connection, table, docids=docids, versions=versions)
                if table == 'judgments':
                    n_displaced = n_deleted
            for table in ('pools', 'measured_rankings'):
                rows = connection.execute(f'SELECT rowid, docids FROM {table}').fetchall()
                for row, text in rows:
                    before = self.parsed(text, list)
                    # A pool asks about documents, a ranking has texts.
                    after = _renamed(before, docids, keeps_gone=table == 'pools')
                    if after != before:
                        connection.execute(
                            f'UPDATE {table} SET docids = ? WHERE rowid = ?',
                            [json.dumps(after), row],
                        )
            if generation:
                connection.execute('DELETE FROM followed')
                connection.execute('INSERT INTO followed VALUES (?)', [generation])
        return n_displaced

    def docids_without_version(self) -> list[str]:
        """The documents with a judgment that does not say which text was judged."""
        rows = self.select("SELECT DISTINCT docid FROM judgments WHERE version = '' ORDER BY docid")
        return [docid for (docid,) in rows]

    def set_versions(self, versions: Mapping[str, str]) -> None:
        """Store which text was judged, for judgments that do not say it.

        Parameters
        ----------
        versions : of documents that are deleted now, by docid
        """
        rows = [(version, docid) for docid, version in versions.items()]
        with self.writing() as connection:
            connection.executemany(
                "UPDATE judgments SET version = ? WHERE docid = ? AND version = ''", rows
            )

    def judgments(self, judge: str | None = None, question: str | None = None) -> list[Judgment]:
        """The judgments, by question and time.

        Parameters
        ----------
        judge : only her judgments; None: all judges'
        question : only judgments for this question; None: for all questions
        """
        rows = self.select(
            'SELECT question, docid, grade, judge, comment, pool, judged, generation, version '
            'FROM judgments JOIN questions ON questions.text = question '
            'WHERE (:judge IS NULL OR judge = :judge) '
            'AND (:question IS NULL OR question = :question) '
            'ORDER BY questions.number, judged, docid, judge',
            judge=judge,
            question=None if question is None else question_text(question),
        )
        judgments = [Judgment(*row) for row in rows]
        for judgment in judgments:
            if not isinstance(judgment.grade, int):
                raise DamagedFileError(
                    f'{self.path} is damaged, a grade is {judgment.grade!r:.40}: {ADVICE}'
                )
        return judgments

    def count(self) -> int:
        """How many judgments there are."""
        rows = self.select('SELECT COUNT(*) FROM judgments')
        return rows[0][0] if rows else 0

    def topics(self) -> list[Query]:
        """The questions with a judgment, as topics."""
        rows = self.select(
            'SELECT qid, text FROM questions WHERE text IN (SELECT question FROM judgments) '
            'ORDER BY number'
        )
        return [Query(qid, text) for qid, text in rows]

    def qrels(self) -> Qrels:
        """One grade for each document of each question, by qid.

        Where several people judged, it is the middle one of their grades, of an even number of them
        the lower of the two in the middle.
        """
        qid_of = {question.text: question.qid for question in self.questions()}
        grades: dict[tuple[str, str], list[int]] = {}
        for judgment in self.judgments():
            key = (qid_of[judgment.question], judgment.docid)
            grades.setdefault(key, []).append(judgment.grade)
        qrels: Qrels = {}
        for (qid, docid), given in grades.items():
            qrels.setdefault(qid, {})[docid] = middle_grade(given)
        return qrels

    def add_qrels(self, topics: Sequence[Query], qrels: Qrels, judge: str = '') -> int:
        """Store topics with their qids, and their judgments; returns how many judgments.

        Raises InputError for a qid that has another question here, or a question that has another
        qid.
        """
        texts: dict[str, str] = {topic.qid: _checked_text(topic.text) for topic in topics}
        now = _now()
        judgments = []
        for qid, grades in qrels.items():
            if qid not in texts:
                continue
            for docid, grade in grades.items():
                # Grades below 0 say that a document is worse than irrelevant (spam).
                kept = max(grade, 0)
                judgments.append(Judgment(texts[qid], docid, kept, judge, judged=now))
        checked = [_checked(judgment) for judgment in judgments]
        with self.writing() as connection:
            for qid, text in texts.items():
                _add_topic(connection, qid, text)
            for judgment in checked:
                _replace_judgment(connection, judgment)
        return len(checked)

    def agreements(self) -> list[Agreement]:
        """The agreement of each two judges who judged a document in common."""
        grades: dict[str, dict[tuple[str, str], int]] = {}
        for judgment in self.judgments():
            own = grades.setdefault(judgment.judge, {})
            own[judgment.question, judgment.docid] = judgment.grade
        agreements = []
        for first, second in combinations(sorted(grades), 2):
            common = [key for key in grades[first] if key in grades[second]]
            if common:
                pairs = [(grades[first][key], grades[second][key]) for key in common]
                agreements.append(Agreement((first, second), len(pairs), cohens_kappa(pairs)))
        return agreements

    def add_learning(self, learning: Learning) -> None:
        """Store what was learned; it is not used before `use` says so."""
        values = {**asdict(learning), 'report': json.dumps(learning.report), 'in_use': 0}
        with self.writing() as connection:
            connection.execute(
                'INSERT INTO learnings VALUES (:number, :folder, :learned, :generation, '
                ':judgments, :encoder_weights, :in_use, :report)',
                values,
            )

    def learnings(self) -> list[Learning]:
        """All that was learned or set, the newest last."""
        rows = self.select(
            'SELECT number, folder, learned, generation, judgments, encoder_weights, in_use, '
            'report FROM learnings ORDER BY number'
        )
        learnings = []
        for row in rows:
            learning = Learning(*row)
            in_use = bool(learning.in_use)
            report = self.parsed(learning.report, dict)
            learnings.append(replace(learning, in_use=in_use, report=report))
        return learnings

    def learned(self) -> list[Learning]:
        """All that was learned from judgments, the newest last."""
        return [learning for learning in self.learnings() if not learning.is_settings]

    def next_learning(self) -> int:
        """The number of a learning that comes next."""
        return 1 + max((known.number for known in self.learnings()), default=0)

    def use(self, number: int | None) -> None:
        """Search as a learning says; None: as before any learning."""
        with self.writing() as connection:
            connection.execute('UPDATE learnings SET in_use = (number IS ?)', [number])

    def in_use(self) -> Learning | None:
        """The learning by which the collection is searched; None for none."""
        used = [learning for learning in self.learnings() if learning.in_use]
        return used[-1] if used else None

    def set_progress(self, state: Mapping[str, Any]) -> None:
        """Say how far a learning is, for all programs that ask."""
        with self.writing() as connection:
            connection.execute('INSERT OR REPLACE INTO progress VALUES (1, ?)', [json.dumps(state)])

    def progress(self) -> dict[str, Any]:
        """What `set_progress` said last; empty before."""
        rows = self.select('SELECT state FROM progress')
        return self.parsed(rows[0][0], dict) if rows else {}

    def problems(self) -> Iterator[str]:
        """What is wrong with the file, one problem a line; nothing if there is no file.

        Compares its tables with those that this release makes, and its rows with what may be
        stored.
        """
        if not self.path.is_file():
            return
        with self._reading() as connection:
            if connection is None:
                return
            problems = list(integrity_problems(connection))
            problems += table_problems(connection) or _row_problems(connection)
            for problem in problems:
                yield f'{self.path}: {problem}'


def middle_grade(grades: Sequence[int]) -> int:
    """The middle one of the grades, of an even number of them the lower of the two in the middle.

    `grades` are at least one.
    """
    return sorted(grades)[(len(grades) - 1) // 2]


def cohens_kappa(grades: Sequence[tuple[int, int]]) -> float | None:
    """Cohen's kappa of two judges: how far they agree beyond chance (Cohen 1960).

    Parameters
    ----------
    grades : of both judges for each document, at least one

    None if both gave one and the same grade only, so that chance alone would agree.
    """
    n = len(grades)
    agreed = sum(first == second for first, second in grades) / n
    by_chance = 0.0
    for grade in set(chain.from_iterable(grades)):
        share_of_first = sum(first == grade for first, _ in grades) / n
        share_of_second = sum(second == grade for _, second in grades) / n
        by_chance += share_of_first * share_of_second
    if by_chance == 1:
        return None
    return (agreed - by_chance) / (1 - by_chance)


def _row_problems(connection: sqlite3.Connection) -> Iterator[str]:
    """What is wrong with the rows of a file of judgments, one phrase each."""
    for (number,) in connection.execute(
        'SELECT rowid FROM judgments WHERE question NOT IN (SELECT text FROM questions)'
    ):
        yield f'judgment {number} is of a question that does not exist'
    rows = connection.execute(
        'SELECT rowid, question, docid, grade, judge, comment FROM judgments ORDER BY rowid'
    )
    for number, *values in rows:
        judgment = Judgment(*values)
        if not isinstance(judgment.grade, int):
            yield f'judgment {number} has the grade {judgment.grade!r:.40}'
            continue
        try:
            _checked(judgment)
        except (InputError, TypeError, AttributeError) as error:
            yield f'judgment {number}: {error}'
    yield from _model_grade_problems(connection)
    for table, column, kind in _JSON_COLUMNS:
        for number, text in connection.execute(f'SELECT rowid, {column} FROM {table}'):
            if not is_json(text, kind):
                yield f'row {number} of {table} has invalid JSON in {column}'


def _model_grade_problems(connection: sqlite3.Connection) -> Iterator[str]:
    """What is wrong with the grades of language models, one phrase each."""
    rows = connection.execute(
        'SELECT rowid, judge, grade, question IN (SELECT text FROM questions) FROM model_grades '
        'ORDER BY rowid'
    )
    for number, judge, grade, has_question in rows:
        if not has_question:
            yield f'model grade {number} is of a question that does not exist'
        if not str(judge).startswith(MODEL_PREFIX):
            yield f'model grade {number} is of {judge!r:.40}, which is not a language model'
        if not isinstance(grade, int) or not 0 <= grade <= MAX_MODEL_GRADE:
            yield f'model grade {number} is {grade!r:.40}, expected 0 to {MAX_MODEL_GRADE}'


def _add_question(connection: sqlite3.Connection, text: str) -> bool:
    """Add a question under a new qid; returns whether it is new."""
    known = connection.execute('SELECT 1 FROM questions WHERE text = ?', [text]).fetchone()
    if known is not None:
        return False
    (last,) = connection.execute('SELECT COALESCE(MAX(number), 0) FROM questions').fetchone()
    number = last + 1
    qid = str(number)
    # Imported topics bring their qids.
    while connection.execute('SELECT 1 FROM questions WHERE qid = ?', [qid]).fetchone():
        qid = f'q{qid}'
    connection.execute('INSERT INTO questions VALUES (?, ?, ?)', [number, qid, text])
    return True


def _add_topic(connection: sqlite3.Connection, qid: str, text: str) -> None:
    """Add a topic under its qid."""
    rows = connection.execute(
        'SELECT qid, text FROM questions WHERE qid = ? OR text = ?', [qid, text]
    ).fetchall()
    if rows == [(qid, text)]:
        return
    if rows:
        known_qid, known_text = rows[0]
        raise InputError(
            f"topic '{qid}' ({text[:60]!r}) was given, and '{known_qid}' ({known_text[:60]!r}) is "
            'here: give topics whose qids and questions are new, or the same ones'
        )
    connection.execute('INSERT INTO questions (qid, text) VALUES (?, ?)', [qid, text])


def _renamed(before: Sequence[str], docids: Mapping[str, str], keeps_gone: bool) -> list[str]:
    """A list of docids as `JudgmentStore.rename` says, each once.

    Parameters
    ----------
    before : the list
    docids : the new docid by the old one; '' for a text that is gone
    keeps_gone : whether the document of such a text stays, although it has another text now
    """
    after = []
    for old in before:
        new = docids.get(old, old)
        if not new and keeps_gone:
            new = old
        if new:
            after.append(new)
    return list(dict.fromkeys(after))


def _rename_judged(
    connection: sqlite3.Connection,
    table: str,
    *,
    docids: Mapping[str, str],
    versions: Mapping[str, str],
) -> int:
    """Let the rows of a table follow their texts, as `JudgmentStore.rename` says.

    Returns how many rows were deleted because their text no longer exists.
    """
    judged = {docid for (docid,) in connection.execute(f'SELECT docid FROM {table}')}
    # No docid begins with a space: all rows leave their documents before one gets to another.
    for old in judged.intersection(docids):
        connection.execute(
            f"UPDATE {table} SET docid = ' ' || docid "
            "WHERE docid = ? AND (version = '' OR version <> ?)",
            [old, versions.get(old, '')],
        )
    n_deleted = 0
    for old, new in docids.items():
        if new and (old in judged or new in judged):
            displaced = connection.execute(
                f"DELETE FROM {table} WHERE docid = ? AND version NOT IN ('', ?)",
                [new, versions[new]],
            )
            n_deleted += displaced.rowcount
        if old not in judged:
            continue
        if new:
            connection.execute(
                f"UPDATE OR IGNORE {table} SET docid = ? WHERE docid = ' ' || ?", [new, old]
            )
        rest = connection.execute(f"DELETE FROM {table} WHERE docid = ' ' || ?", [old])
        if not new:
            n_deleted += rest.rowcount
    return n_deleted


def _replace_judgment(connection: sqlite3.Connection, judgment: Judgment) -> None:
    connection.execute(
        'INSERT OR REPLACE INTO judgments VALUES '
        '(:question, :docid, :judge, :grade, :comment, :pool, :judged, :generation, :version)',
        asdict(judgment),
    )


def _checked(judgment: Judgment) -> Judgment:
    """The judgment as stored."""
    if not 0 <= judgment.grade <= MAX_GRADE:
        raise InputError(
            f'grade {judgment.grade} was given for document {judgment.docid[:60]!r}, expected 0 to '
            f'{MAX_GRADE}'
        )
    problem = identifier_problem(judgment.docid)
    if problem:
        raise InputError(f'docid {judgment.docid[:60]!r} {problem}')
    for name in ('comment', 'judge'):
        _check_characters(name, getattr(judgment, name))
    if judgment.judge.startswith(MODEL_PREFIX):
        raise InputError(
            f"a judge's name begins with '{MODEL_PREFIX}', which marks language models: give "
            "a person's name"
        )
    return replace(judgment, question=_checked_text(judgment.question))


def _checked_text(text: str) -> str:
    question = question_text(text)
    if not question:
        raise InputError('a question is empty: give it words')
    _check_characters('question', question)
    return question


def _check_characters(name: str, text: str) -> None:
    most = _MOST_CHARACTERS[name]
    if len(text) > most:
        raise InputError(f'a {name} has {len(text):,} characters, at most {most:,} are stored')
    if has_surrogates(text):
        raise InputError(f'a {name} has {HALF_PAIR}')


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec='milliseconds')
