"""The questions that teach most come first, and every third at random."""

import pytest

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.judging import next_questions
from pyserini_repbert.collection.judging.next_questions import _Asked, _take_turns, order_questions
from pyserini_repbert.collection.judgments import Judgment, NextQuestion, WhyNext
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.errors import InputError
from pyserini_repbert.ranking import Query, Ranking


def asked(qid, agreement, doubt):
    return _Asked(Query(qid, f'question {qid}'), agreement, doubt)


def test_reasons_take_turns():
    questions = [
        asked('1', 0.9, 0.01),
        asked('2', 0.1, 0.4),
        asked('3', 0.2, 0.3),
        asked('4', 0.8, 0.02),
        asked('5', 0.7, 0.5),
        asked('6', 0.6, 0.49),
    ]
    ordered = list(_take_turns(questions))
    assert sorted(question.qid for question in ordered) == ['1', '2', '3', '4', '5', '6']
    assert [question.reason for question in ordered] == [*WhyNext, *WhyNext]
    assert ordered[0].qid == '2'
    assert ordered[1].qid == '1'
    # What is random is so whatever the rankings say.
    others = [asked(str(number), 1.0, None) for number in range(1, 7)]
    at_random = list(_take_turns(others))
    assert {question.reason for question in at_random} == {WhyNext.RANDOM}
    left = [question.qid for question in at_random if question.qid not in ('1', '2')]
    assert ordered[2].qid == left[0]


def test_agreement_is_of_each_two_rankings():
    runs = {
        'dense': {'1': Ranking(['a', 'b'], [2.0, 1.0]), '2': Ranking(['a'], [1.0])},
        'bm25': {'1': Ranking(['a', 'b'], [2.0, 1.0]), '2': Ranking(['c'], [1.0])},
    }
    assert next_questions._agreement('1', runs) == 1
    assert next_questions._agreement('2', runs) == 0
    assert next_questions._agreement('1', {'dense': runs['dense']}) == 1


@pytest.fixture
def folder(tiny_checkpoint, tmp_path):
    """A collection without Lucene, with four questions, of which one is judged."""
    path = tmp_path / 'mine'
    with Collection.open(path, encoder=str(tiny_checkpoint()), sparse='none') as collection:
        collection.sync([('a', 'cat mat'), ('b', 'sea moon')])
    store = judgments_of(path)
    store.add_questions(['cat', 'sea', 'moon', 'mat'])
    store.add([Judgment('sea', 'b', 1)])
    return path


def test_the_order_is_stored_and_only_unjudged_questions_have_one(folder, tmp_path):
    ordered = order_questions(folder)
    assert sorted(question.text for question in ordered) == ['cat', 'mat', 'moon']
    store = judgments_of(folder)
    assert store.next_questions() == [question.text for question in ordered]
    # A single ranking differs from nothing.
    assert store.chosen_qids() == set()
    assert list(store.problems()) == []
    with pytest.raises(InputError, match='is not a collection'):
        order_questions(tmp_path)


def test_estimates_leave_out_what_was_chosen(folder, tmp_path, capsys):
    store = judgments_of(folder)
    qid_of = {question.text: question.qid for question in store.questions()}
    chosen = NextQuestion(qid_of['cat'], 'cat', WhyNext.DIFFERENT)
    store.set_next_questions([chosen, NextQuestion(qid_of['mat'], 'mat', WhyNext.RANDOM)])
    store.add([Judgment('cat', 'a', 1), Judgment('mat', 'a', 1)])
    # It is known after another order, too.
    flags = ['index', 'judgments', '--index', str(folder)]
    assert run(main, [*flags, '--order']) == 0
    printed = capsys.readouterr().out
    assert printed.startswith('1 question to judge, in this order:\n  moon (at random)\n')
    assert '1 of the questions were chosen' in printed
    qrels = tmp_path / 'qrels.txt'
    assert run(main, [*flags, '--export-qrels', str(qrels), '--only-random']) == 0
    assert sorted(line.split()[0] for line in qrels.read_text().splitlines()) == sorted(
        [qid_of['sea'], qid_of['mat']]
    )
    assert run(main, [*flags, '--only-random']) == 2
