"""What history says of any syncs is what rankings and judgments give, counted by hand."""

import argparse
import contextlib
import io
import math
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from functools import cache, partial
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.judging import asking
from pyserini_repbert.collection.judgments import Judgment
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.extensions.watching.command import measure_before, status_after
from pyserini_repbert.extensions.watching.stored import stored_generations
from pyserini_repbert.systems import encoders

QUESTIONS = ('red cat', 'the moon', 'big dog')
FIRST = ('cat', 'moon', 'sea', 'dog')
SECOND = ('tree', 'leaf', 'root')
# A document has its text from the start, of another one, a new one, or is deleted.
DOCIDS = tuple('abcdefghijkl')
CHOICES = st.dictionaries(
    st.sampled_from(DOCIDS), st.sampled_from([*DOCIDS, None, 'new']), max_size=5
)
NEWCOMERS = st.integers(0, 4)
GRADES = st.lists(
    st.tuples(
        st.sampled_from(QUESTIONS),
        st.sampled_from(DOCIDS),
        st.sampled_from([0, 0, 1, 3]),
        st.sampled_from(['ann', 'bob']),
    ),
    max_size=3,
)
STEPS = st.lists(
    st.tuples(CHOICES, NEWCOMERS, GRADES, st.sampled_from([True, True, False])),
    min_size=2,
    max_size=5,
)


@dataclass
class Seen:
    """What a generation was asked, and found.

    Attributes
    ----------
    judgments : who gave which grade to which question, and when
    grades : {question: {docid: grade}} of all judged questions
    best : {question: the docids of the best ten}; None for a text that is gone
    figures : {question: (nDCG@10, nDCG@10 of the judged documents)} of those with a relevant one
    """

    judgments: list
    grades: dict
    best: dict
    figures: dict

    @property
    def lost(self):
        """The judged questions without a relevant document among the best ten."""
        lost = set()
        for question, grades in self.grades.items():
            if not any(grades.get(docid) for docid in self.best[question]):
                lost.add(question)
        return lost


def ndcg(docids, grades):
    """nDCG@10 with the grades as gains, from its definition."""
    ideal = sorted(grades.values(), reverse=True)
    gains = [sum(_gains(values)) for values in ([grades.get(d, 0) for d in docids], ideal)]
    return gains[0] / gains[1]


def _gains(values):
    return [grade / math.log2(rank + 2) for rank, grade in enumerate(values[:10])]


def look(folder, texts):
    """What a person finds who searches for each judged question, and reads the judgments."""
    judgments = judgments_of(folder).judgments()
    of_judges = defaultdict(lambda: defaultdict(list))
    for judgment in judgments:
        of_judges[judgment.question][judgment.docid].append(judgment.grade)
    grades = {}
    for question, given_to in of_judges.items():
        # The lower one of two judges.
        grades[question] = {docid: min(values) for docid, values in given_to.items()}
    best = {}
    figures = {}
    with Collection.open(folder) as collection:
        for question, own in grades.items():
            docids = [hit.docid for hit in collection.search(question, 100)]
            assert set(docids) == set(texts)
            best[question] = docids[:10]
            if any(own.values()):
                judged = [docid for docid in docids if docid in own]
                figures[question] = (ndcg(docids, own), ndcg(judged, own))
    said = sorted((j.question, j.judge, j.judged, j.grade) for j in judgments)
    return Seen(said, grades, best, figures)


def name_after(docid, before, after):
    """The docid that a document has after a sync; None for a text that is gone."""
    text = before.get(docid)
    if docid is None or text is None or after.get(docid) == text:
        return docid
    for name, other in after.items():
        if other == text:
            return name
    is_taken = after.get(docid) in before.values()
    return None if is_taken else docid


def follow(seen, before, after):
    """Lets the best documents have the docids that they have after a sync."""
    for question, docids in seen.best.items():
        names = [name_after(docid, before, after) for docid in docids]
        seen.best[question] = list(dict.fromkeys(names))


def check(newest, folder, texts, earlier):
    """Compares the newest generation of the history; returns what was seen of it."""
    seen = look(folder, texts)
    assert {q.question: (q.ndcg, q.condensed) for q in newest.questions} == {
        question: pytest.approx(values, abs=1e-5) for question, values in seen.figures.items()
    }
    for name, column in (('ndcg', 0), ('condensed', 1)):
        values = [figures[column] for figures in seen.figures.values()]
        assert getattr(newest, name).mean == pytest.approx(sum(values) / len(values), abs=1e-5)
    assert newest.n_asked == len(seen.grades)
    assert {question.question for question in newest.unanswered} == seen.lost
    assert {question.question for question in newest.without_relevant} == (
        set(seen.grades) - set(seen.figures)
    )
    assert f'best ten: {len(seen.lost)} of {len(seen.grades)} judged question' in history(folder)
    check_change(newest.change, earlier, seen, texts)
    return seen


def check_change(change, earlier, seen, texts):
    """Compares what a generation says of the one before it."""
    is_comparable = earlier is not None and earlier.judgments == seen.judgments
    pairs = [q for q in seen.figures if is_comparable and q in earlier.figures]
    assert (change is not None) == bool(pairs)
    if not pairs:
        return
    moved = {}
    for question in pairs:
        old = earlier.best[question]
        new = seen.best[question]
        grades = seen.grades[question]
        left = [docid for docid in old if docid and grades.get(docid) and docid not in new]
        entered = [docid for docid in new if docid not in old]
        has_moved = seen.figures[question] != pytest.approx(earlier.figures[question], abs=1e-6)
        if has_moved or left:
            moved[question] = {
                'left': left,
                'deleted': [docid for docid in left if docid not in texts],
                'entered': entered,
                'unjudged': [docid for docid in entered if docid not in grades],
            }
    said = {}
    for question in change.questions:
        parts = ('left', 'deleted', 'entered', 'unjudged')
        said[question.after.question] = {part: list(getattr(question, part)) for part in parts}
    assert said == moved
    differences = [seen.figures[q][0] - earlier.figures[q][0] for q in pairs]
    assert change.ndcg.mean == pytest.approx(sum(differences) / len(pairs), abs=1e-5)
    fallen = [q for q in pairs if seen.figures[q][1] < earlier.figures[q][1] - 1e-6]
    assert change.n_fallen == len(fallen)


def history(folder):
    """What `index history` prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert run(main, ['index', 'history', '--index', str(folder)]) == 0
    return printed.getvalue()


def change_texts(texts, choices, n_newcomers, numbers):
    """The texts after a sync, in which each text is in one document."""
    wanted = {docid: docid for docid in texts} | choices
    wanted |= {f'n{next(numbers)}': 'new' for _ in range(n_newcomers)}
    after = {}
    for docid, choice in wanted.items():
        number = next(numbers)
        text = texts.get(choice)
        if choice == 'new':
            text = f'{FIRST[number % 4]} {number}'
        if text is not None and text not in after.values():
            after[docid] = text
    return after


class Watched:
    """A collection whose syncs are watched, and what was seen of the generation asked last."""

    def __init__(self, folder, encoder):
        self.folder = folder
        self.encoder = encoder
        self.texts = {}
        self.newest = None
        self.seen = None

    def judge(self, grades):
        judgments_of(self.folder).add([Judgment(*values) for values in grades])

    def sync(self, texts, is_watched):
        """`index sync`, with --watch or without."""
        options = argparse.Namespace(index=str(self.folder), device='cpu', fail_if_worse=None)
        if is_watched:
            measure_before(options)
            self._check()
        documents = [{'id': docid, 'text': text} for docid, text in texts.items()]
        with Collection.open(self.folder, encoder=self.encoder, sparse='none') as collection:
            changes = collection.sync(documents, 'mine', delete_most=True)
        if self.seen is not None:
            follow(self.seen, self.texts, texts)
        self.texts = texts
        if is_watched:
            status_after(options, changes)
            self._check()

    def _check(self):
        """Compares the newest generation, if it was asked now."""
        measured = stored_generations(judgments_of(self.folder))
        if measured and measured[-1] != self.newest:
            self.newest = measured[-1]
            self.seen = check(self.newest, self.folder, self.texts, self.seen)


@pytest.fixture
def encoder(tiny_checkpoint):
    return encoders.document_encoder(str(tiny_checkpoint()))


@pytest.fixture
def _quick_measuring(monkeypatch):
    """Opens the encoder of questions once, and draws few samples for intervals.

    So twice as many examples take about as long: no interval is compared here.
    """
    monkeypatch.setattr(encoders, 'query_encoder', cache(encoders.query_encoder))
    few = partial(asking.bootstrap_interval, samples=10)
    monkeypatch.setattr(asking, 'bootstrap_interval', few)


@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@pytest.mark.usefixtures('_quick_measuring')
@given(STEPS)
def test_the_history_of_any_syncs_is_that_of_their_rankings(encoder, steps):
    numbers = count()
    pairs = [f'{first} {second}' for first in FIRST for second in SECOND]
    with tempfile.TemporaryDirectory() as work:
        watched = Watched(Path(work) / 'mine', encoder)
        watched.sync(dict(zip(DOCIDS, pairs, strict=True)), is_watched=False)
        watched.judge([(QUESTIONS[0], 'a', 2, 'ann')])
        for choices, n_newcomers, grades, is_watched in steps:
            watched.judge(grades)
            watched.sync(change_texts(watched.texts, choices, n_newcomers, numbers), is_watched)


def test_a_document_with_the_text_of_a_lower_one_left_nothing(encoder, tmp_path):
    """The best document has the text of the last one now: that was never among the best ten."""
    watched = Watched(tmp_path / 'mine', encoder)
    pairs = [f'{first} {second}' for first in FIRST for second in SECOND]
    watched.sync(dict(zip(DOCIDS, pairs, strict=True)), is_watched=False)
    with Collection.open(watched.folder) as collection:
        best, *_, last = (hit.docid for hit in collection.search(QUESTIONS[0], 100))
    watched.judge([(QUESTIONS[0], last, 3, 'ann')])
    after = watched.texts | {best: watched.texts[last]}
    del after[last]
    watched.sync(after, is_watched=True)
    assert watched.newest.change.questions == ()
