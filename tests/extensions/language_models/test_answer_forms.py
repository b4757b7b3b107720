"""What answers say: an order of passages, a thought without an end, a grade."""

import json

import pytest
from chat_server import chat_server, reply

from pyserini_repbert.extensions.language_models.client import ChatClient
from pyserini_repbert.extensions.language_models.judge import parse_grade
from pyserini_repbert.extensions.language_models.model import LanguageModel
from pyserini_repbert.extensions.language_models.permutation import (
    is_thought_open,
    parse_permutation,
    without_thought,
)
from pyserini_repbert.extensions.language_models.settings import LanguageModelSettings
from pyserini_repbert.extensions.language_models.windows import sliding_windows


@pytest.mark.parametrize(
    'text',
    [
        '[2] > [1] > [3]',
        'Passage [3] is of weather, [1] of soil, [2] answers.\n\nRanking: [2] > [1] > [3]',
        'Here is the order of the 3 passages: [2, 1, 3]',
        '1. Passage 2\n2. Passage 1\n3. Passage 3',
        '1. [2]\n2. [1]\n3. [3]',
        'The passages:\n1. 1\n2. 2\n3. 3\nThe order:\n1. 2\n2. 1\n3. 3\n',
        '[3] > [2] > [1] was wrong. Final: [2] > [1] > [3].',
        '2 > 1 > 3',
        '[2]\n[1]\n[3]',
        '<think>[3] > [1] > [2]</think>[2] > [1] > [3]',
        '```json\n{"ranking": [2, 1, 3]}\n```',
        '**[2]** > **[1]** > **[3]**',
        '【2】 > 【1】 > 【3】',
    ],
)
def test_the_last_whole_order_counts(text):
    permutation = parse_permutation(text, 3)
    assert permutation.rows == (1, 0, 2)
    assert not permutation.is_repaired


@pytest.mark.parametrize(
    ('text', 'rows'),
    [
        ('<think>\nPassage [3] is wrong. So [2] is', (0, 1, 2)),
        ('[2] > [1]', (1, 0, 2)),
        ('[2] > [2] > [1]', (1, 0, 2)),
        ('[2] > [2] > [9] > [3]', (1, 2, 0)),
        ('', (0, 1, 2)),
    ],
)
def test_what_is_no_whole_order_is_repaired(text, rows):
    permutation = parse_permutation(text, 3)
    assert permutation.rows == rows
    assert permutation.is_repaired


def test_a_thought_ends_with_its_sign():
    assert without_thought('<think>a</think> b') == ' b'
    assert without_thought('a</think>b') == 'b'
    assert without_thought('<think>a') == ''
    assert is_thought_open('<think>a</think>b<think>') and not is_thought_open('a</think>b')


def test_orders_are_found_in_linear_time():
    for part in ('[1]', '1,', '1. ', ' ', '[1] >'):
        assert parse_permutation(part * 100_000, 20).is_repaired


def test_parts_of_type_text_are_the_content():
    thought = {'type': 'thinking', 'thinking': [{'type': 'text', 'text': '[3]'}]}
    parts = [thought, {'type': 'text', 'text': '[2] > '}, {'type': 'text', 'text': '[1]'}, 7]
    body = json.dumps({'choices': [{'message': {'content': parts}}]}).encode()
    with chat_server(lambda prompt: body) as server:
        answer = ChatClient(server.address).complete(
            {'model': 'm', 'messages': [{'role': 'user', 'content': 'x'}]}
        )
    assert answer.text == '[2] > [1]'


def test_a_thought_without_an_end_is_asked_for_again(tmp_path):
    answers = iter(['<think> so', '<think> so </think>[1]'])
    path = str(tmp_path / 'answers.sqlite')
    with chat_server(lambda prompt: reply(next(answers))) as server:
        model = LanguageModel(LanguageModelSettings('m', server.address, path))
        assert model.ask('q', 'prompt', 9).answer.text == '<think> so'
        assert model.ask('q', 'prompt', 9).answer.text.endswith('[1]')
        assert not model.ask('q', 'prompt', 9).is_new
    assert len(server.bodies) == 2


@pytest.mark.parametrize(
    ('text', 'grade'),
    [
        ('Grade 3 would need an exact answer, so the grade is 1.', 1),
        ('Final answer: 2\nGrade 0: nothing to do\nGrade 3: exact', 2),
        ('**Score:** 2', 2),
        ('Grade 2', 2),
        ('2', 2),
        ('<think>the grade is 3', None),
        ('1 or 2', None),
        ('Grade: 2/3', 2),
        ('Grade: 2 out of 3', 2),
        ('Grade - 2', 2),
        ('##final score: 2', 2),
        ('{"score": 2}', 2),
        ('{"grade": 2, "reason": "names 3 plants"}', 2),
        ('A grade of 3 asks for more. Final grade: 1', 1),
        ('The passage deserves a score of 2', 2),
        ('The grade is 2.', 2),
        ('score is [[2]]. It is scored 2/3', 2),
        ('0-3 scale: 2', 2),
        ('O: 2', 2),
        ('２', 2),
        ('I refuse to grade 18+ content', None),
        ('grade:-1', None),
        # The model is asked again.
        ('{"M": 2, "T": 3, "O": 1}', None),
        ('I would grade this 1 because it has 3 facts', None),
        ('Relevance: 2 - partially relevant\n\nReason: mentions 2020', None),
        ('Grade: two', None),
        ('Score: 2.0', None),
    ],
)
def test_a_stated_grade_counts(text, grade):
    assert parse_grade(text) == grade


@pytest.mark.parametrize(
    ('n', 'window', 'step'), [(3, 2, 2), (21, 20, 20), (5, 2, 2), (41, 20, 10)]
)
def test_no_window_has_one_passage(n, window, step):
    windows = sliding_windows(n, window, step)
    assert all(2 <= len(rows) <= window for rows in windows)
    assert {row for rows in windows for row in rows} == set(range(n))
