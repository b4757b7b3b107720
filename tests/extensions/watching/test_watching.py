"""The judged questions are asked again: newcomers are no losses, lost answers are."""

import json
import sqlite3

import pytest

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.judging import asking
from pyserini_repbert.collection.judging.asking import MeanOfQuestions
from pyserini_repbert.collection.judgments import Judgment
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.extensions.watching import measuring
from pyserini_repbert.extensions.watching.measured import MeasuredGeneration, MeasuredQuestion
from pyserini_repbert.extensions.watching.measuring import is_measured, measure_generation
from pyserini_repbert.extensions.watching.stored import stored_generations
from pyserini_repbert.ranking import Ranking

QUESTIONS = ['red cat', 'the moon', 'sea and sky', 'big dog']
FIRST = ('cat', 'moon', 'sea')
SECOND = ('tree', 'leaf', 'root', 'seed', 'bird', 'fish')
TEXTS = [f'{first} {second}' for first in FIRST for second in SECOND]


@pytest.fixture
def corpus(tmp_path):
    """write(documents) -> a file of (docid, text)."""

    def write(documents):
        path = tmp_path / 'corpus.tsv'
        lines = [f'{docid}\t{text}\n' for docid, text in documents.items()]
        path.write_text(''.join(lines), encoding='utf-8')
        return path

    return write


@pytest.fixture
def sync(corpus, tiny_checkpoint, tmp_path, capsys):
    """sync(documents, *flags) -> (status, output, errors) of `index sync` into 'mine'."""
    encoder = str(tiny_checkpoint())

    def act(documents, *flags):
        arguments = ['sync', '--corpus', corpus(documents), '--index', tmp_path / 'mine']
        arguments += ['--encoder', encoder, '--sparse', 'none', '--delete-most', *flags]
        status = run(main, ['index', *map(str, arguments)])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return act


@pytest.fixture
def documents():
    return {f'd{number:02d}': text for number, text in enumerate(TEXTS)}


@pytest.fixture
def judged(sync, documents, tmp_path):
    """A collection in which the best hit of each question is relevant, and the second is not."""
    sync(documents)
    folder = tmp_path / 'mine'
    with Collection.open(folder) as collection:
        for question in QUESTIONS:
            best, second = (hit.docid for hit in collection.search(question, 2))
            judgments_of(folder).add([Judgment(question, best, 2), Judgment(question, second, 0)])
    return folder


def best_of(folder, question):
    grades = judgments_of(folder).judgments(question=question)
    return next(judgment.docid for judgment in grades if judgment.grade)


def test_a_generation_is_measured_once(judged):
    assert not is_measured(judged)
    measured = measure_generation(judged)
    assert measured.ndcg.mean == measured.condensed.mean == 1
    assert (measured.ndcg.low, measured.ndcg.high) == (1, 1)
    assert measured.judged_share == pytest.approx(2 / 10)
    assert measured.answered is None
    assert measured.change is None
    assert is_measured(judged)
    assert measure_generation(judged) == measured
    judgments_of(judged).add([Judgment('new question', 'd01', 1)])
    assert not is_measured(judged)
    assert len(measure_generation(judged).questions) == len(QUESTIONS) + 1


def test_newcomers_are_no_losses(judged, sync, documents):
    best = best_of(judged, 'red cat')
    # Ten copies of the answer, whose docids come first.
    copies = {f'a{number}': documents[best] for number in range(10)}
    status, printed, said = sync(documents | copies, '--fail-if-worse')
    assert status == 0
    assert f'{best}: no longer among the best ten' in printed
    assert 'a0 (not judged), a1 (not judged), a2 (not judged), 7 more' in printed
    assert '? red cat\n      nDCG@10 1.000 -> 0.000, only judged 1.000 -> 1.000' in printed
    assert 'only judged documents     +0.0000' in printed
    assert '4 judged questions say little about others: judge 20 or more' in said
    # Nothing is published, and nothing is said, a second time.
    assert 'judged' not in sync(documents | copies, '--watch')[1]


def test_where_answers_alone_are_judged_unjudged_documents_count(judged, sync, documents):
    store = judgments_of(judged)
    for judgment in store.judgments():
        if not judgment.grade:
            store.delete(judgment.question, judgment.docid)
    best = best_of(judged, 'red cat')
    copies = {f'a{number}': documents[best] for number in range(10)}
    assert sync(documents | copies, '--fail-if-worse')[0] == 4


def test_a_lost_answer_fails_the_sync(judged, sync, documents):
    best = best_of(judged, 'red cat')
    others = {docid: text for docid, text in documents.items() if docid != best}
    status, printed, _ = sync(others, '--fail-if-worse', '0.5')
    assert status == 0
    assert f'{best}: deleted' in printed
    sync(documents, '--watch')
    assert sync(others, '--fail-if-worse')[0] == 4
    change = stored_generations(judgments_of(judged))[-1].change
    assert change.n_fallen >= 1
    assert change.questions[0].deleted == (best,)
    assert change.condensed.low <= change.condensed.mean < 0


def test_a_sync_that_changes_no_answer_prints_nothing_of_it(judged, sync, documents):
    worst = {'z': 'and and and'}
    measure_generation(judged)
    before = stored_generations(judgments_of(judged))[-1]
    _, printed, said = sync(documents | worst, '--watch')
    change = stored_generations(judgments_of(judged))[-1].change
    assert change.since == before.generation
    assert ('judged questions' in printed) == bool(change.questions)
    assert (said == '') == (not change.questions)


def test_without_judgments_there_is_nothing_to_watch(sync, documents):
    status, _, said = sync(documents, '--watch')
    assert status == 0
    assert 'nothing to watch: no question has a relevant document yet' in said
    status, _, said = sync(documents, '--fail-if-worse')
    assert status == 2
    assert said.startswith('error: judged questions are to be compared')


def test_other_judgments_begin_anew(judged, sync, documents):
    measure_generation(judged)
    with Collection.open(judged) as collection:
        collection.add([('new', 'big dog')])
    judgments_of(judged).add([Judgment('red cat', 'new', 1)])
    assert measure_generation(judged).change is None


def test_a_renamed_document_is_the_same(judged, sync, documents):
    measure_generation(judged)
    best = best_of(judged, 'red cat')
    renamed = {('other' if docid == best else docid): text for docid, text in documents.items()}
    sync(renamed, '--watch')
    change = stored_generations(judgments_of(judged))[-1].change
    assert change is not None
    assert not any(question.left for question in change.questions)


def test_a_document_with_the_name_of_a_deleted_one_keeps_its_grade(judged, sync, documents, caplog):
    store = judgments_of(judged)
    taken = {judgment.docid for judgment in store.judgments()}
    plan, todo = [docid for docid in documents if docid not in taken][:2]
    store.add([Judgment('which plan?', plan, 2, 'ann'), Judgment('which plan?', todo, 0, 'bob')])
    kept = {docid: text for docid, text in documents.items() if docid != todo}
    assert sync(kept, '--watch')[0] == 0
    renamed = {todo if docid == plan else docid: text for docid, text in kept.items()}
    status, printed, _ = sync(renamed, '--watch')
    assert (status, '1 renamed' in printed) == (0, True)
    # The grade of the deleted text is gone, that of the renamed one has followed it.
    (grades,) = [grades for grades in store.qrels().values() if todo in grades]
    assert grades == {todo: 2}
    (record,) = caplog.records
    assert record.getMessage().startswith('1 judgments were of texts that are gone')
    assert len(stored_generations(store)[-1].questions) == len(QUESTIONS) + 1
    # Bob judges the renamed one: the question has no relevant document any more.
    store.add([Judgment('which plan?', todo, 0, 'bob')])
    assert sync(renamed | {'new': 'big leaf'}, '--watch')[0] == 0
    assert len(stored_generations(store)[-1].questions) == len(QUESTIONS)


def test_a_question_with_zeros_alone_found_nothing(judged, capsys):
    judgments_of(judged).add([Judgment('what is not there', 'd03', 0)])
    measured = measure_generation(judged)
    assert measured.ndcg.mean == 1
    assert [question.question for question in measured.unanswered] == ['what is not there']
    assert run(main, ['index', 'history', '--index', str(judged)]) == 0
    printed = capsys.readouterr().out
    assert 'without a relevant document among the best ten: 1 of 5 judged questions' in printed
    assert '? what is not there' in printed
    assert '1 of them: nobody judged any document relevant, so nDCG@10 leaves them out' in printed


def test_questions_of_two_generations_are_paired_by_their_qids():
    def measured(number, values):
        questions = [
            MeasuredQuestion(qid, qid, value, value, None) for qid, value in values.items()
        ]
        mean = MeanOfQuestions(0, 0, 0)
        return MeasuredGeneration(number, '', '', '', 1, mean, mean, None, tuple(questions), None)

    run_now = {qid: Ranking(['a'], [1.0]) for qid in 'xyz'}
    qrels = {qid: {'a': 1} for qid in 'xyz'}
    before = measured(1, {'x': 0.5, 'y': 1.0})
    change = measuring._change(before, measured(2, {'y': 0.25, 'z': 1.0}), {}, run_now, qrels)
    assert change.ndcg.mean == -0.75
    assert [question.after.qid for question in change.questions] == ['y']
    assert measuring._change(before, measured(2, {'z': 1.0}), {}, run_now, qrels) is None


@pytest.fixture
def history(judged, capsys):
    """history(*flags) -> (status, output, errors) of `index history`."""

    def act(*flags):
        status = run(main, ['index', 'history', '--index', str(judged), *flags])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return act


def test_the_history_is_a_table_and_a_curve(history, sync, documents, judged):
    status, _, said = history()
    assert status == 2
    assert said.endswith('ask them now, or while you sync (--ask, --watch)\n')
    best = best_of(judged, 'red cat')
    assert history('--ask')[0] == 0
    others = {docid: text for docid, text in documents.items() if docid != best}
    sync(others, '--watch')
    status, printed, said = history()
    assert status == 0
    rows = printed.splitlines()
    assert rows[2].split()[1:7] == ['1', '|', rows[2].split()[3], '|', '4', '|']
    assert rows[4].endswith('█▁')
    # What the newest generation changed, and what it cannot answer.
    assert rows[5] == '4 judged questions, since generation 1:'
    assert f'      {best}: deleted' in rows
    assert rows[-3:] == [
        'without a relevant document among the best ten: 2 of 4 judged questions',
        '  ? red cat',
        '  ? big dog',
    ]
    assert 'has changed since' not in said
    as_json = json.loads(history('--json')[1])
    assert [generation['generation'] for generation in as_json] == [1, 2]
    with Collection.open(judged) as collection:
        collection.add([('new', 'big dog')])
    assert 'has changed since' in history()[2]


def test_a_damaged_history_is_said(judged):
    measure_generation(judged)
    store = judgments_of(judged)
    with sqlite3.connect(store.path) as connection:
        connection.execute("""UPDATE measured SET report = '{"generation": 1}'""")
    connection.close()
    with pytest.raises(DamagedFileError, match='its measurements'):
        stored_generations(store)


def test_questions_without_an_answer_cannot_be_asked(sync, documents, tmp_path):
    sync(documents)
    with pytest.raises(InputError, match='nobody has judged a document'):
        measure_generation(tmp_path / 'mine')


def test_answers_are_as_likely_as_an_extension_says(judged, monkeypatch):
    def use(probability):
        def answered(topics, run, notes):
            return {topic.qid: probability for topic in topics}

        monkeypatch.setattr(asking, 'open_by_extension', lambda *_, **__: answered)

    use(0.5)
    assert measure_generation(judged).answered == 0.5
    with Collection.open(judged) as collection:
        collection.add([('far', 'and and and')])
    # It is more than .1 below.
    use(0.3)
    measured = measure_generation(judged)
    assert measured.answered == pytest.approx(0.3)
    assert len(measured.change.questions) == len(QUESTIONS)
    assert measured.change.questions[0].before.answered == 0.5
