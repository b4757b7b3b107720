"""The file of answers: asked once, found ever after."""

import contextlib
import sqlite3
import threading
from pathlib import Path

import pytest
from chat_server import chat_server

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.extensions.language_models.answers import AnswerFile
from pyserini_repbert.extensions.language_models.client import ModelAnswer
from pyserini_repbert.extensions.language_models.errors import LanguageModelError
from pyserini_repbert.extensions.language_models.model import LanguageModel
from pyserini_repbert.extensions.language_models.settings import LanguageModelSettings

ANSWER = ModelAnswer('yes\n', 3, 1, (('yes', -0.1),))


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'answers.sqlite'


def test_an_answer_is_asked_for_once(path):
    with chat_server(lambda prompt: f'to {prompt}') as server:
        settings = LanguageModelSettings('m', server.address, str(path))
        first = LanguageModel(settings).ask('q', 'a', 5)
        again = LanguageModel(settings).ask('q', 'a', 5)
        assert len(server.bodies) == 1
        for prompt, tokens, top_tokens in (('b', 5, 0), ('a', 6, 0), ('a', 5, 3)):
            assert LanguageModel(settings).ask('q', prompt, tokens, top_tokens).is_new
        assert LanguageModel(LanguageModelSettings('n', server.address, str(path))).ask('q', 'a', 5)
        assert len(server.bodies) == 5
    assert first.is_new and not again.is_new and first.answer == again.answer
    replayed = LanguageModel(LanguageModelSettings('m', None, str(path))).ask('q', 'a', 5)
    assert replayed == again


def test_without_a_file_answers_are_kept_in_memory():
    with chat_server(lambda prompt: 'once') as server:
        model = LanguageModel(LanguageModelSettings('m', server.address))
        assert [model.ask('q', 'a', 5).is_new for _ in range(2)] == [True, False]


@pytest.mark.parametrize('address', [None, 'http://127.0.0.1:9/v1'])
def test_what_is_missing_is_said(path, address, monkeypatch):
    if address:
        monkeypatch.setenv('PYSERINI_REPBERT_OFFLINE', '1')
    model = LanguageModel(LanguageModelSettings('m', address, str(path)))
    why = 'this process is offline' if address else 'no address was given'
    with pytest.raises(LanguageModelError, match=f"about 'why\\\\nso' .* and {why}") as missing:
        model.ask('why\nso', 'a prompt\n', 5)
    assert '\n' not in str(missing.value) and not path.exists()


def test_the_first_answer_stays(path):
    answers = AnswerFile(path)
    assert answers.find('d') is None
    assert answers.store('d', 'm', ANSWER) == ANSWER
    assert answers.store('d', 'm', ModelAnswer('no')) == ANSWER
    assert AnswerFile(path).find('d') == ANSWER


def test_costs_are_of_each_model_and_run(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    answers = AnswerFile(path)
    answers.store('d', 'm', ANSWER)
    answers.store('e', 'm', ModelAnswer('no', 7, 2))
    answers.store('f', 'n', ModelAnswer('', 1_000_000, 500_000))
    (tmp_path / 'run.txt').write_text('1 Q0 a 1 2.0 x\n', encoding='utf-8')
    words = ['evaluate', 'costs', 'answers.sqlite']
    prices = ['--prompt-price', '2', '--answer-price', '8']
    assert run(main, [*words, *prices]) == 0
    rows = [line.split('|') for line in capsys.readouterr().out.splitlines()[2:4]]
    assert [[cell.strip() for cell in row[2:-1]] for row in rows] == [
        ['m', '2', '10', '3', '0.0000'],
        ['n', '1', '1000000', '500000', '6.0000'],
    ]
    assert run(main, [*words, 'run.txt']) == 2
    assert 'run.txt is not a file of answers, and has no record' in capsys.readouterr().err
    assert run(main, [*words, *prices[:2]]) == 2
    assert '--prompt-price and --answer-price go together' in capsys.readouterr().err


def test_several_writers_share_a_file(path):
    stored = []

    def write(number):
        for digest in range(10):
            stored.append(
                (digest, AnswerFile(path).store(str(digest), 'm', ModelAnswer(str(number))))
            )

    threads = [threading.Thread(target=write, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for digest, answer in stored:
        assert AnswerFile(path).find(str(digest)) == answer
    assert len(stored) == 40


def test_another_file_is_refused(path, tmp_path):
    with pytest.raises(InputError, match='a file in an existing folder'):
        AnswerFile(tmp_path / 'none' / 'answers.sqlite')
    with pytest.raises(InputError, match='a file in an existing folder'):
        AnswerFile(tmp_path)
    path.write_bytes(b'no database' * 100)
    with pytest.raises(DamagedFileError, match='is damaged'):
        AnswerFile(path).find('d')
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute('CREATE TABLE mine (a)')
    with pytest.raises(DamagedFileError, match='does not hold answers'):
        AnswerFile(path).store('d', 'm', ANSWER)


@pytest.mark.parametrize(
    'statement',
    [
        "UPDATE answers SET answer = 'x'",
        "UPDATE answers SET answer = '{}'",
        "UPDATE answers SET answer = replace(answer, '-0.1', 'NaN')",
        'CREATE TRIGGER t AFTER INSERT ON answers BEGIN DELETE FROM answers; END',
        'PRAGMA user_version = 9',
    ],
)
def test_a_changed_file_is_refused(path, statement):
    AnswerFile(path).store('d', 'm', ANSWER)
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    with pytest.raises(DamagedFileError, match='damaged|format version'):
        AnswerFile(path).find('d')


def test_costs_write_nothing(tmp_path, monkeypatch, capsys):
    """A file without answers became one of answers, though it was only to be read."""
    monkeypatch.chdir(tmp_path)
    with contextlib.closing(sqlite3.connect('other.sqlite')) as connection:
        connection.execute('CREATE TABLE own (value)')
        connection.execute('DROP TABLE own')
        connection.commit()
    before = Path('other.sqlite').read_bytes()
    assert run(main, ['evaluate', 'costs', 'other.sqlite']) != 0
    assert 'does not hold answers' in capsys.readouterr().err
    assert Path('other.sqlite').read_bytes() == before
