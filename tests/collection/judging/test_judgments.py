"""The file of judgments: what people judged, by question, document and judge."""

import sqlite3
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from pyserini_repbert.collection.judgments import Judgment, JudgmentStore, Learning, cohens_kappa
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.ranking import Query


@pytest.fixture
def store(tmp_path):
    return JudgmentStore(tmp_path / 'judgments.sqlite')


def test_nothing_is_made_before_the_first_judgment(store):
    assert store.judgments() == []
    assert store.questions() == []
    assert store.qrels() == {}
    assert store.count() == 0
    assert store.in_use() is None
    assert store.delete('slugs', 'a') == 0
    assert not store.path.exists()


def test_judgments_come_back_by_question_and_judge(store):
    store.add_questions(['what  eats slugs', 'are snails edible'])
    store.add([Judgment('are snails edible', 'b', 3, 'ann', 'a recipe', pool='p1')])
    store.add([Judgment('what eats slugs', 'a', 2, 'ann'), Judgment('what eats slugs', 'a', 0)])
    shown = [(j.question, j.docid, j.grade, j.judge, j.comment) for j in store.judgments()]
    assert sorted(shown[:2]) == [
        ('what eats slugs', 'a', 0, '', ''),
        ('what eats slugs', 'a', 2, 'ann', ''),
    ]
    assert shown[2] == ('are snails edible', 'b', 3, 'ann', 'a recipe')
    assert [j.grade for j in store.judgments(judge='ann', question='what eats  slugs')] == [2]
    assert all(j.judged.endswith('+00:00') for j in store.judgments())


def test_the_same_judge_replaces_her_grade(store):
    store.add([Judgment('q', 'a', 1, 'ann')])
    store.add([Judgment('q', 'a', 3, 'ann')])
    assert [j.grade for j in store.judgments()] == [3]
    assert store.delete('q', 'a', 'ann') == 1
    assert store.judgments() == []


@pytest.mark.parametrize(
    ('judgment', 'problem'),
    [
        (Judgment('q', 'a', -1), 'grade -1'),
        (Judgment('q', 'a', 128), 'grade 128'),
        (Judgment('q', 'a b', 1), 'docid'),
        (Judgment(' \n', 'a', 1), 'a question is empty'),
        (Judgment('q' * 2001, 'a', 1), 'a question has 2,001 characters'),
        (Judgment('q', 'a', 1, comment='\ud800'), 'surrogate'),
        (Judgment('q', 'a', 1, judge='j' * 101), 'a judge has 101 characters'),
    ],
)
def test_a_wrong_judgment_is_refused_with_all_others(store, judgment, problem):
    with pytest.raises(InputError, match=problem):
        store.add([Judgment('q', 'good', 1), judgment])
    assert store.count() == 0


def test_the_grade_of_several_judges_is_the_middle_one(store):
    for judge, grade in [('ann', 3), ('bob', 1), ('cy', 2)]:
        store.add([Judgment('q', 'three', grade, judge)])
    for judge, grade in [('ann', 3), ('bob', 1)]:
        store.add([Judgment('q', 'two', grade, judge)])
    assert store.qrels() == {'1': {'three': 2, 'two': 1}}
    assert store.topics() == [Query('1', 'q')]


def test_imported_topics_keep_their_qids(store):
    store.add_questions(['first'])
    topics = [Query('7', 'seven'), Query('x', 'other'), Query('1x', 'unjudged')]
    assert (
        store.add_qrels(topics, {'7': {'a': 2, 'b': -2}, 'x': {'c': 1}, 'unknown': {'d': 1}}) == 3
    )
    assert store.qrels() == {'7': {'a': 2, 'b': 0}, 'x': {'c': 1}}
    assert [(q.qid, q.text) for q in store.questions()] == [
        ('1', 'first'),
        ('7', 'seven'),
        ('x', 'other'),
        ('1x', 'unjudged'),
    ]
    # said again, nothing changes
    assert store.add_qrels(topics, {'7': {'a': 2}}) == 1
    with pytest.raises(InputError, match="topic '7'"):
        store.add_qrels([Query('7', 'another text')], {'7': {'a': 1}})
    with pytest.raises(InputError, match="topic 'new'"):
        store.add_qrels([Query('new', 'seven')], {})


def test_a_question_does_not_take_the_qid_of_a_topic(store):
    store.add_qrels([Query('2', 'second')], {'2': {'a': 1}})
    store.add_questions(['mine'])
    assert [(q.qid, q.text) for q in store.questions()] == [('2', 'second'), ('q2', 'mine')]


def test_kappa_of_two_judges_by_hand():
    # 20 + 15 of 50 agreed; chance: .5 * .6 + .5 * .4 = .5; (.7 - .5) / (1 - .5) = .4
    grades = [(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15
    assert cohens_kappa(grades) == pytest.approx(0.4)
    assert cohens_kappa([(2, 2), (2, 2)]) is None
    assert cohens_kappa([(0, 1), (1, 0)]) == pytest.approx(-1)


def test_agreement_counts_what_both_judged(store):
    store.add([Judgment('q', docid, 1, 'ann') for docid in 'abc'])
    store.add([Judgment('q', 'a', 1, 'bob'), Judgment('q', 'b', 0, 'bob')])
    store.add([Judgment('r', 'a', 2, 'cy')])
    (agreement,) = store.agreements()
    assert agreement.judges == ('ann', 'bob')
    assert agreement.documents == 2
    assert agreement.kappa == 0


def test_twenty_judges_at_once_lose_nothing(store):
    failures = []

    def judge(name):
        own = JudgmentStore(store.path)
        try:
            for number in range(20):
                own.add([Judgment(f'question {number}', f'd{number}', number % 4, name)])
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=judge, args=[f'judge {n}']) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert store.count() == 400
    assert len(store.questions()) == 20
    assert len({q.qid for q in store.questions()}) == 20


def test_one_learning_is_in_use(store):
    for number in (1, 2):
        store.add_learning(
            Learning(number, f'adapted/{number}', '2026-01-01', 3, 60, 'ab', False, {'gain': 0.1})
        )
    assert store.in_use() is None
    store.use(1)
    store.use(2)
    assert store.in_use().number == 2
    assert store.in_use().report == {'gain': 0.1}
    store.use(None)
    assert store.in_use() is None


def test_pools_are_counted_by_question(store):
    store.add_pool('p1', 'q', ['a', 'b'])
    store.add_pool('p2', 'q', ['a', 'b', 'c'])
    assert store.pool_sizes() == {'q': 3}


def test_another_file_is_refused(tmp_path):
    path = tmp_path / 'judgments.sqlite'
    path.write_bytes(b'no database' * 100)
    with pytest.raises(DamagedFileError, match='restore it from a copy'):
        JudgmentStore(path).add([Judgment('q', 'a', 1)])
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute('CREATE TABLE other (a)')
    connection.close()
    with pytest.raises(DamagedFileError, match='does not hold judgments'):
        JudgmentStore(path).add([Judgment('q', 'a', 1)])


def test_a_grade_belongs_to_the_text_that_it_was_given_to(store):
    """plan has the name of todo now, which was deleted; soon has that of a future document."""
    store.add(
        [
            Judgment('which?', 'plan', 3, version='p'),
            Judgment('which?', 'todo', 0, version='t'),
            Judgment('which?', 'todo', 1, judge='bob', version='t'),
            Judgment('which?', 'todo', 2, judge='eve', version='p'),
            Judgment('which?', 'soon', 3),
            Judgment('which?', 'later', 1),
        ]
    )
    versions = {'todo': 'p', 'later': 's'}
    assert store.rename({'plan': 'todo', 'soon': 'later'}, versions) == 2
    kept = {(each.docid, each.judge, each.grade) for each in store.judgments()}
    assert kept == {('todo', '', 3), ('todo', 'eve', 2), ('later', '', 1)}


def test_grades_without_a_text_are_given_that_of_a_deleted_document(store):
    assert store.docids_without_version() == []
    store.add([Judgment('which?', 'a', 1), Judgment('which?', 'b', 1, version='seen')])
    assert store.docids_without_version() == ['a']
    store.set_versions({'a': 'last', 'b': 'last'})
    assert [each.version for each in store.judgments()] == ['last', 'seen']


JUDGES = st.sets(st.sampled_from(['ann', 'bob', 'eve']))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(JUDGES, JUDGES, JUDGES), min_size=1, max_size=4))
def test_whatever_is_renamed_each_grade_counts_for_its_text(pairs):
    """Of each document: who judged it before; who judged another text that had its new docid, and
    was deleted; and who judged it under its new docid already. A grade is the number of its text.
    """
    expected = set()
    n_displaced = 0
    with tempfile.TemporaryDirectory() as work:
        store = JudgmentStore(Path(work) / 'judgments.sqlite')
        for number, (before, of_deleted, already) in enumerate(pairs):
            old = f'old{number}'
            new = f'new{number}'
            store.add([Judgment('q', old, number, judge, version=f'v{number}') for judge in before])
            for judge in of_deleted - already:
                store.add([Judgment('q', new, 100 + number, judge, version=f'gone{number}')])
                n_displaced += 1
            store.add(
                [Judgment('q', new, number, judge, version=f'v{number}') for judge in already]
            )
            expected |= {(new, judge, number) for judge in before | already}
        renamed = {f'old{number}': f'new{number}' for number in range(len(pairs))}
        versions = {f'new{number}': f'v{number}' for number in range(len(pairs))}
        assert store.rename(renamed, versions) == n_displaced
        # Said again, as after a kill between the generation and its judgments.
        assert store.rename(renamed, versions) == 0
        assert {(each.docid, each.judge, each.grade) for each in store.judgments()} == expected
