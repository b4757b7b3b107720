"""A language model judges beside people: its grades are never among theirs."""

import json
import re
import sqlite3

import pytest
from chat_server import chat_server
from folders import question_documents

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.judging.asking import judged_questions
from pyserini_repbert.collection.judging.from_judgments import learn_from_judgments, use_learning
from pyserini_repbert.collection.judging.model_grades import (
    JudgmentsWithModel,
    ModelGrade,
    ModelGradeStore,
    ModelJudge,
)
from pyserini_repbert.collection.judgments import Judgment
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.extensions.language_models.judge import LanguageModelJudge, parse_grade
from pyserini_repbert.extensions.language_models.settings import LanguageModelSettings
from pyserini_repbert.names.topics import load_qrels

ASKED = re.compile(r'^Search query: (.*)\n\nPassage: (.*)$', re.MULTILINE)
JUDGE = ModelJudge('m', '0123456789' + 54 * 'f')


@pytest.mark.parametrize(
    ('answer', 'grade'),
    [
        ('2', 2),
        (' **3** \n', 3),
        ('Grade: 1', 1),
        ('<think>a 3, or a 2?</think>0', 0),
        ('M: 2\nT: 1\n##final score: 1', 1),
        ('score 2 ... no: score: 3', 3),
        ('2, so 2', 2),
        ('1 or 2', None),
        ('7', None),
        ('-1', None),
        ('2.5', None),
        ('score: 2.5', None),
        ('Grade (0-3): 2', 2),
        ('Score (0 to 3): 2', 2),
        ('on the 0-3 scale it is fully relevant', None),
        ('score: 10.0', None),
        ('grade 12.5', None),
        ('score: -1', None),
        ('Yes, it answers.', None),
        ('', None),
    ],
)
def test_a_grade_is_read_or_there_is_none(answer, grade):
    assert parse_grade(answer) == grade


def test_a_malformed_answer_is_asked_for_again_and_replayed(tmp_path):
    answers = iter(['well', 'perhaps 1 or 2', '2', 'no', 'no', 'no'])
    path = str(tmp_path / 'a.sqlite')
    with chat_server(lambda prompt: next(answers)) as server:
        judge = LanguageModelJudge(LanguageModelSettings('m', server.address, path))
        assert [judge.grade('q', 'first'), judge.grade('q', 'second')] == [2, None]
        assert len(set(server.prompts)) == 6
    assert judge.work.calls == judge.work.answers == 6 and judge.work.malformed == 5
    again = LanguageModelJudge(LanguageModelSettings('m', None, path))
    assert [again.grade('q', 'first'), again.grade('q', 'second')] == [2, None]
    assert again.work.calls == 0 and again.work.malformed == 5


@pytest.fixture
def store(tmp_path):
    """Judgments of people, and grades of a model, of two questions."""
    store = judgments_of(tmp_path)
    store.add_questions(['q', 'other'])
    store.add([Judgment('q', 'a', 3, 'ann'), Judgment('q', 'a', 1, 'bob', version='old')])
    store.add([Judgment('q', 'b', 0, 'ann')])
    grades = [
        ModelGrade('q', 'a', 3, version='new'),
        ModelGrade('q', 'b', 1, version='new'),
        ModelGrade('q', 'c', 2, version='new'),
        ModelGrade('other', 'd', 1, version='new'),
    ]
    ModelGradeStore(store.path).add_grades(JUDGE, grades)
    return store


def test_grades_of_a_model_are_not_among_judgments(store):
    assert store.count() == 3
    assert store.qrels() == {'1': {'a': 1, 'b': 0}}
    assert [topic.text for topic in store.topics()] == ['q']
    assert list(store.problems()) == []
    # Bob saw another text than the model.
    agreement = ModelGradeStore(store.path).agreement_with_people(JUDGE.name)
    assert agreement.n_grades == 4 and agreement.pairs == ((3, 3), (0, 1))
    assert agreement.kappa == pytest.approx((0.5 - 0.25) / (1 - 0.25))


def test_who_asks_gets_both_and_people_come_first(store):
    both = JudgmentsWithModel(store.path, 'llm:m:01234567')
    assert both.qrels() == {'1': {'a': 1, 'b': 0, 'c': 2}, '2': {'d': 1}}
    assert both.count() == 5 and [topic.qid for topic in both.topics()] == ['1', '2']
    assert [judgment.docid for judgment in both.judgments(judge=JUDGE.name)] == ['c', 'd']
    assert [judgment.docid for judgment in both.judgments('ann', 'other')] == []
    with pytest.raises(InputError, match="expected one of 'llm:m:01234567'"):
        JudgmentsWithModel(store.path, 'llm:m')


def test_no_person_is_named_as_a_model_and_grades_follow_documents(store):
    with pytest.raises(InputError, match='marks language models'):
        store.add([Judgment('q', 'a', 1, JUDGE.name)])
    store.rename({'c': 'd/c'}, {'d/c': 'v1'})
    docids = [grade.docid for grade in ModelGradeStore(store.path).grades(JUDGE.name)]
    assert docids == ['a', 'b', 'd/c', 'd']


@pytest.mark.parametrize(
    ('change', 'problem'),
    [
        ("grade = 'x'", "is 'x', expected 0 to 3"),
        ('grade = 4', 'is 4, expected 0 to 3'),
        ("judge = 'ann'", 'which is not a language model'),
        ("question = 'none'", 'of a question that does not exist'),
    ],
)
def test_a_damaged_grade_is_said(store, change, problem):
    with sqlite3.connect(store.path) as connection:
        connection.execute(f"UPDATE model_grades SET {change} WHERE docid = 'c'")
    assert problem in '\n'.join(store.problems())
    if 'x' in change:
        with pytest.raises(DamagedFileError, match='grade is'):
            ModelGradeStore(store.path).grades(JUDGE.name)


def by_word(prompt):
    """3 where the passage has the last word of the question, else 0."""
    question, passage = ASKED.search(prompt).groups()
    return '3' if question.split()[-1] in passage.split() else '0'


@pytest.fixture
def folder(tiny_checkpoint, tmp_path, monkeypatch):
    """A collection without Lucene, of two documents a question, which a test may replace."""
    monkeypatch.chdir(tmp_path)
    with Collection.open('mine', encoder=str(tiny_checkpoint()), sparse='none') as collection:
        collection.add(question_documents())
    return tmp_path / 'mine'


def test_a_pool_is_graded_once(folder, capsys):
    store = judgments_of(folder)
    store.add_questions(['cat w1', 'mat'])
    store.add([Judgment('cat w1', 'wanted7', 0, 'ann'), Judgment('cat w1', 'gone', 1, 'ann')])
    words = ['index', 'judgments', '--index', 'mine', '--judge', 'llm', '--llm-model', 'm']
    words += ['--llm-answers', 'a.sqlite', '--pool-depth', '4']
    with chat_server(by_word) as server:
        assert run(main, [*words, '--llm', server.address]) == 0
        assert len(server.bodies) == 9
    out = capsys.readouterr().out
    assert 'graded 9 documents, 0 had a grade' in out
    assert '9 answers asked for, 0 kept; 90 tokens of prompts, 18 of answers' in out
    assert "9 grades, none of them a person's; people judged 1 document of these" in out
    assert 'people 0' in out
    # The same again asks nothing, and a lost grade is replayed.
    with sqlite3.connect(folder / 'judgments.sqlite') as connection:
        connection.execute("DELETE FROM model_grades WHERE docid = 'wanted7'")
    assert run(main, words) == 0
    assert 'graded 1 document, 8 had a grade\n  0 answers asked for, 1 kept' in (
        capsys.readouterr().out
    )
    assert load_qrels('mine') == {'1': {'wanted7': 0, 'gone': 1}}
    assert [topic.text for topic in judged_questions(folder).topics] == ['cat w1']
    # What has changed is graded anew.
    with Collection.open('mine') as collection:
        collection.add([('wanted7', 'w7 w1 mat')])
    with chat_server(by_word) as server:
        assert run(main, [*words, '--llm', server.address]) == 0
        assert any('w7 w1 mat' in prompt for prompt in server.prompts)


def test_exports_have_a_models_grades_only_where_asked(folder, capsys):
    store = judgments_of(folder)
    store.add([Judgment('cat w1', 'wanted1', 2, 'ann')])
    ModelGradeStore(store.path).add_grades(JUDGE, [ModelGrade('cat w1', 'plain1', 1)])
    words = ['index', 'judgments', '--index', 'mine', '--export-qrels']
    assert run(main, [*words, 'people.txt']) == 0
    assert (folder.parent / 'people.txt').read_text('utf-8') == '1 0 wanted1 2\n'
    both = [*words, 'both.txt', '--export', 'both.jsonl', '--with-model-grades', JUDGE.name]
    assert run(main, both) == 0
    assert (folder.parent / 'both.txt').read_text('utf-8') == '1 0 wanted1 2\n1 0 plain1 1\n'
    lines = (folder.parent / 'both.jsonl').read_text('utf-8').splitlines()
    assert [json.loads(line)['judge'] for line in lines] == ['ann', JUDGE.name]
    # They become no person's judgments, and who learns from them is told.
    words = ['index', 'judgments', '--index', 'mine', '--export-topics', 'topics.tsv']
    assert run(main, words) == 0
    words = ['index', 'judgments', '--index', 'mine', '--topics', 'topics.tsv']
    capsys.readouterr()
    assert run(main, [*words, '--qrels', 'both.txt', '--judge', 'ben']) == 2
    assert 'give judgments of people alone' in capsys.readouterr().err
    assert [judgment.judge for judgment in store.judgments()] == ['ann']
    # A run that the same model has ranked is refused.
    (folder.parent / 'run.txt').write_text('1 Q0 plain1 1 2.0 x\n', encoding='utf-8')
    record = json.loads((folder.parent / 'both.txt.record.json').read_text('utf-8'))
    assert record['settings']['with_model_grades'] == JUDGE.name
    evaluate = ['evaluate', '--qrels', 'both.txt', 'run.txt', '--measures', 'P@1']
    capsys.readouterr()
    assert run(main, evaluate) == 0
    captured = capsys.readouterr()
    assert f"has grades of the language model '{JUDGE.name}'" in captured.err
    assert '1.0000' in captured.out
    assert run(main, [*evaluate, '--html', 'report.html']) == 0
    page = (folder.parent / 'report.html').read_text('utf-8')
    assert 'Grades of the language model' in page and JUDGE.name in page
    write_run_record('run.txt', 'm')
    assert run(main, evaluate) == 2
    assert "'m' would judge its own ranking" in capsys.readouterr().err
    assert run(main, [*evaluate, '--even-if-circular']) == 0
    # So is one that was made of such a run.
    (folder.parent / 'plain.txt').write_text('1 Q0 plain1 1 2.0 x\n', encoding='utf-8')
    fuse = ['fusion', '--runs', 'plain.txt', 'run.txt', '--method', 'rrf', '--output', 'fused.txt']
    assert run(main, fuse) == 0
    fused = ['evaluate', '--qrels', 'both.txt', 'fused.txt', '--measures', 'P@1']
    capsys.readouterr()
    assert run(main, fused) == 2
    assert 'it ranked run.txt, an input of fused' in capsys.readouterr().err
    write_run_record('run.txt', 'another')
    assert run(main, evaluate) == 0
    assert run(main, fused) == 0


def write_run_record(path, model):
    """A record beside a run, as of a command that asked a model."""
    from pyserini_repbert.record import Record, checksum, versions, write_record

    command = ('python', '-m', 'pyserini_repbert.search')
    settings = {'llm_model': model}
    write_record(path, Record(command, checksum(path), (), (), settings, versions()))


def test_learning_takes_a_models_grades_only_where_asked(folder, capsys, monkeypatch):
    store = judgments_of(folder)
    questions = [f'cat w{number}' for number in range(24)]
    store.add_questions(questions)
    grades = [ModelGrade(text, f'wanted{number}', 3) for number, text in enumerate(questions)]
    ModelGradeStore(store.path).add_grades(JUDGE, grades)
    with pytest.raises(InputError, match='nobody has judged'):
        learn_from_judgments(folder)
    assert run(main, ['adapt', '--index', 'mine', '--with-model-grades', JUDGE.name]) == 0
    assert f"Grades of the language model '{JUDGE.name}' taught it" in capsys.readouterr().out
    use_learning(folder, in_use=True, even_if_worse=True)
    # What the model taught, it does not judge.
    words = ['index', 'judgments', '--index', 'mine', '--judge', 'llm', '--pool-depth', '1']
    with chat_server(by_word) as server:
        words += ['--llm', server.address, '--llm-model']
        assert run(main, [*words, 'm']) == 2
        assert 'a search that its own grades taught' in capsys.readouterr().err
        assert run(main, [*words, 'm', '--even-if-circular']) == 0
        assert run(main, [*words, 'another']) == 0
    # Nor a run by that search.
    export = ['index', 'judgments', '--index', 'mine', '--with-model-grades', JUDGE.name]
    assert run(main, [*export, '--export-qrels', 'q.txt', '--export-topics', 't.tsv']) == 0
    ask = ['search', '--index', 'mine', '--query', 'cat w1', '--quiet']
    with monkeypatch.context() as patches:
        # Only a record says who taught the search.
        patches.delattr('pyserini_repbert.collection.judging.own_settings.teacher_of')
        assert run(main, ask) == 0
    search = ['search', '--index', 'mine', '--topics', 't.tsv', '--hits', '3', '--output', 'r.txt']
    evaluate = ['evaluate', '--qrels', 'q.txt', 'r.txt', '--measures', 'P@1']
    assert run(main, search) == 0
    capsys.readouterr()
    assert run(main, evaluate) == 2
    assert 'its grades taught the search that gave r,' in capsys.readouterr().err
    # Settings in its place were taught by nobody.
    assert run(main, ['index', 'settings', '--index', 'mine', '--aggregate', 'first']) == 0
    assert run(main, [*search, '--overwrite']) == 0
    assert run(main, evaluate) == 0


@pytest.mark.parametrize(
    ('words', 'problem'),
    [
        (['--judge', 'llm'], '--judge llm takes --llm-model'),
        (['--llm-model', 'm'], '--llm-model is for --judge llm'),
        (['--judge', 'llm', '--llm-model', 'm'], 'neither an address nor a file of answers'),
        (['--judge', 'llm', '--llm-model', 'm', '--llm-answers', 'a'], 'has no questions'),
        (['--with-model-grades', 'x'], '--with-model-grades is for --export-topics'),
        (
            ['--with-model-grades', 'x', '--export', 'e'],
            "'x' is not a language model that has judged here: expected one of none",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(folder, capsys, words, problem):
    assert run(main, ['index', 'judgments', '--index', 'mine', *words]) == 2
    assert problem in capsys.readouterr().err
