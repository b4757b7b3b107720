"""A grade belongs to the text that it was given to, whichever document has this text."""

import tempfile
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.judgments import Judgment, JudgmentStore
from pyserini_repbert.collection.writing import Writer
from pyserini_repbert.systems.encoders import document_encoder

BEFORE = {'a': 'red cat', 'b': 'big dog', 'c': 'small moon', 'd': 'old sea'}
# What one sync makes of it, and the grades after it: 1 for a, 2 for b, 3 for c, none for d.
CHANGES = {
    'swap': ({'a': 'big dog', 'b': 'red cat'}, {'a': 2, 'b': 1, 'c': 3}),
    'ring': ({'a': 'big dog', 'b': 'small moon', 'c': 'red cat'}, {'a': 2, 'b': 3, 'c': 1}),
    'chain, the last one is new': (
        {'a': 'big dog', 'b': 'small moon', 'c': 'new leaf'},
        {'a': 2, 'b': 3},
    ),
    'chain, the last one is gone': (
        {'a': 'big dog', 'b': 'small moon', 'c': None},
        {'a': 2, 'b': 3},
    ),
    'chain from a new document': (
        {'e': 'red cat', 'a': 'big dog', 'b': 'new leaf'},
        {'e': 1, 'a': 2, 'c': 3},
    ),
    'over another document': ({'a': None, 'b': 'red cat'}, {'b': 1, 'c': 3}),
    'from a document that nobody judged': (
        {'a': 'old sea', 'd': 'red cat'},
        {'d': 1, 'b': 2, 'c': 3},
    ),
    'kept under another name, then edited': (
        {'e': 'red cat', 'a': 'red cats'},
        {'e': 1, 'b': 2, 'c': 3},
    ),
    'copy of a judged one': ({'b': 'red cat'}, {'a': 1, 'c': 3}),
    'copy of one that nobody judged': ({'b': 'old sea'}, {'a': 1, 'b': 2, 'c': 3}),
    'copy of one that is renamed': ({'a': None, 'e': 'red cat', 'b': 'red cat'}, {'e': 1, 'c': 3}),
    'new copy': ({'e': 'red cat'}, {'a': 1, 'b': 2, 'c': 3}),
    'two with one new text': ({'a': 'moved', 'b': 'moved'}, {'a': 1, 'b': 2, 'c': 3}),
    'edited': ({'a': 'red cats'}, {'a': 1, 'b': 2, 'c': 3}),
}


@pytest.fixture
def encoder(tiny_checkpoint):
    return document_encoder(str(tiny_checkpoint()))


def sync(collection, texts):
    """Brings the collection to these texts, by docid."""
    documents = [{'id': docid, 'text': text} for docid, text in texts.items()]
    return collection.sync(documents, 'mine', delete_most=True)


def grades_in(folder):
    """{docid: grade} of the judgments in a collection."""
    return {judgment.docid: judgment.grade for judgment in judgments_of(folder).judgments()}


def judge(collection, docid, grade, is_imported=False):
    """Grades a document as the page does, or as imported judgments: they name no text."""
    version = '' if is_imported else collection.generation.versions([docid])[0]
    judgments_of(collection.folder).add([Judgment('which?', docid, grade, version=version)])


@pytest.mark.parametrize('is_imported', [False, True])
@pytest.mark.parametrize('name', CHANGES)
def test_grades_follow_texts_within_one_sync(open_collection, name, is_imported):
    changes, expected = CHANGES[name]
    with open_collection() as collection:
        sync(collection, BEFORE)
        for grade, docid in enumerate('abc', 1):
            judge(collection, docid, grade, is_imported)
        after = {docid: text for docid, text in (BEFORE | changes).items() if text}
        sync(collection, after)
        live = {
            docid: grade for docid, grade in grades_in(collection.folder).items() if docid in after
        }
        assert live == expected
        check_collection(collection.folder)


@pytest.mark.parametrize('is_imported', [False, True])
@pytest.mark.parametrize(
    ('gone', 'back', 'expected'),
    [
        ({'a': None}, {'e': 'red cat'}, {'e': 1, 'b': 2, 'c': 3}),
        ({'a': None}, {'b': 'red cat'}, {'b': 1, 'c': 3}),
        ({'a': None, 'b': None}, {'a': 'big dog', 'b': 'red cat'}, {'a': 2, 'b': 1, 'c': 3}),
        ({'a': None}, {'a': 'red cat'}, {'a': 1, 'b': 2, 'c': 3}),
        ({'a': None}, {'a': 'red cats'}, {'a': 1, 'b': 2, 'c': 3}),
        ({'a': None}, {'e': 'red cats'}, {'b': 2, 'c': 3}),
        # Another text has the docid by now.
        ({'a': 'red cats'}, {'e': 'red cat'}, {'a': 1, 'b': 2, 'c': 3}),
    ],
)
def test_a_grade_is_there_again_with_its_text(open_collection, gone, back, expected, is_imported):
    """A text that was gone for a sync, and came back elsewhere, had lost its grade."""
    with open_collection() as collection:
        sync(collection, BEFORE)
        for grade, docid in enumerate('abc', 1):
            judge(collection, docid, grade, is_imported)
        texts = BEFORE
        for changes in (gone, back):
            texts = {docid: text for docid, text in (texts | changes).items() if text}
            sync(collection, texts)
        live = {
            docid: grade for docid, grade in grades_in(collection.folder).items() if docid in texts
        }
        assert live == expected
        check_collection(collection.folder)


def test_documents_that_are_added_swap_their_texts(open_collection):
    with open_collection() as collection:
        collection.add([{'id': 'a', 'text': 'red cat'}, {'id': 'b', 'text': 'big dog'}])
        judge(collection, 'a', 3)
        store = judgments_of(collection.folder)
        store.add_pool('p1', 'which?', ['a', 'b'])
        collection.add([{'id': 'a', 'text': 'big dog'}, {'id': 'b', 'text': 'red cat'}])
        assert grades_in(collection.folder) == {'b': 3}
        assert store.pool_sizes() == {'which?': 2}


def test_a_pool_has_each_document_once(tmp_path):
    """The text of `a` is in `b` now, whose own is gone: `b` was in the pool twice."""
    store = JudgmentStore(tmp_path / 'judgments.sqlite')
    store.add_pool('p1', 'which?', ['a', 'b', 'c'])
    store.rename({'a': 'b', 'b': ''}, versions={'b': 'red', 'a': '', '': ''})
    assert store.pool_sizes() == {'which?': 2}


@pytest.mark.parametrize('killed', ['before the judgments follow', 'before that is noted'])
def test_a_swap_survives_a_kill(open_collection, monkeypatch, killed):
    """The next writer lets judgments follow, once."""
    with open_collection() as collection:
        sync(collection, BEFORE)
        judge(collection, 'a', 1)
        judge(collection, 'b', 2)
        swapped = BEFORE | {'a': 'big dog', 'b': 'red cat'}
        follow = Writer._rename_judged

        def leave_note(writer):
            rows = writer.connection.execute('SELECT old, new FROM renamed').fetchall()
            if killed == 'before that is noted':
                follow(writer)
            writer.connection.executemany('INSERT OR REPLACE INTO renamed VALUES (?, ?)', rows)

        with monkeypatch.context() as patched:
            patched.setattr(Writer, '_rename_judged', leave_note)
            sync(collection, swapped)
        sync(collection, swapped)
        assert grades_in(collection.folder) == {'a': 2, 'b': 1}
        sync(collection, BEFORE)
        assert grades_in(collection.folder) == {'a': 1, 'b': 2}


DOCIDS = 'abcdef'
# Of each document: what it has after a sync. The text of another document, none, a new one, or one
# that was there before.
STEPS = st.fixed_dictionaries(
    {docid: st.sampled_from([*DOCIDS, None, 'new', 'back']) for docid in DOCIDS}
)
JUDGED = st.dictionaries(st.sampled_from(DOCIDS), st.booleans(), max_size=3)


@dataclass
class Given:
    """A grade, and the text to which it was given: None where nobody said it."""

    grade: int
    text: str | None


class Oracle:
    """Which text each grade is of: by hand, without docids of judgments and digests."""

    def __init__(self):
        self.texts = {}
        self.grades = {}
        self.dormant = {}
        self.gone = []
        self.numbers = count()

    def step(self, choices):
        """The texts after a sync, in which each text is in one document."""
        before = self.texts
        after = self._chosen_texts(choices)
        came = {docid: text for docid, text in after.items() if before.get(docid) != text}
        owners = self._owners_of_returned(came, before)
        for docid, text in before.items():
            if text in after.values() or text not in self.grades:
                continue
            given = self.grades.pop(text)
            if docid not in after:
                self.dormant[docid] = Given(given.grade, given.text or text)
            elif came[docid] not in before.values() and docid not in owners:
                # It was edited.
                self.grades[came[docid]] = given
        awake = {docid: self.dormant.pop(owner) for docid, owner in owners.items()}
        for docid, text in came.items():
            dormant = self.dormant.pop(docid, None) if docid not in before else None
            if docid in awake:
                self.grades[text] = awake[docid]
            elif dormant is not None and text not in before.values():
                self.grades[text] = dormant
        self.gone = [text for text in [*before.values(), *self.gone] if text not in after.values()]
        self.texts = after

    def _chosen_texts(self, choices):
        """The texts that documents have next."""
        after = {}
        for docid, choice in choices.items():
            text = self.texts.get(choice)
            if choice == 'new':
                text = f'cat {next(self.numbers)}'
            if choice == 'back':
                text = next((own for own in self.gone if own not in after.values()), None)
            if text is not None and text not in after.values():
                after[docid] = text
        return after

    def _owners_of_returned(self, came, before):
        """Of documents to which a judged text came back: the deleted document that had it."""
        owners = {}
        for docid, text in came.items():
            had = [old for old, given in self.dormant.items() if given.text == text]
            if had and docid not in had and text not in before.values():
                owners[docid] = max(had)
        return owners

    def graded(self):
        """{docid: grade} of the documents that are there."""
        graded = {}
        for docid, text in self.texts.items():
            if text in self.grades:
                graded[docid] = self.grades[text].grade
        return graded


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(st.tuples(STEPS, JUDGED), min_size=2, max_size=5))
def test_after_any_syncs_each_grade_is_of_its_text(encoder, steps):
    oracle = Oracle()
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / 'mine'
        with Collection.open(folder, encoder=encoder, sparse='none') as collection:
            sync(collection, {})
            for grade, (choices, judged) in enumerate(steps):
                oracle.step(choices)
                sync(collection, oracle.texts)
                live = {
                    docid: given
                    for docid, given in grades_in(folder).items()
                    if docid in oracle.texts
                }
                assert live == oracle.graded()
                for docid, is_imported in judged.items():
                    if docid in oracle.texts:
                        judge(collection, docid, grade, is_imported)
                        text = oracle.texts[docid]
                        oracle.grades[text] = Given(grade, None if is_imported else text)
