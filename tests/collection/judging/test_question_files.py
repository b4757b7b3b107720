"""Questions to judge, from a list or from a log."""

import pytest

from pyserini_repbert.collection.judging.question_files import read_questions
from pyserini_repbert.errors import InputError

SEARCH = '{"event": "request", "path": "/v1/mine/search", "query": "query=%s&hits=10"}\n'
OTHER = '{"event": "request", "path": "/v1/indexes", "query": ""}\n'


def test_a_list_keeps_its_order(tmp_path):
    path = tmp_path / 'questions.txt'
    path.write_text('what eats slugs\n\nare snails edible\nwhat eats slugs\n')
    assert read_questions(path) == ['what eats slugs', 'are snails edible']


def test_a_log_gives_the_most_frequent_questions_first(tmp_path):
    path = tmp_path / 'log.jsonl'
    path.write_text(SEARCH % 'once' + OTHER + SEARCH % 'caf%C3%A9+au+lait' * 2)
    assert read_questions(path) == ['café au lait', 'once']


@pytest.mark.parametrize(
    ('text', 'problem'),
    [
        ('\n', 'has no questions'),
        (OTHER, 'has no questions'),
        ('{"path": "/v1/mine/search"}\n', '`log_queries` of a service'),
        ('{broken\n', 'expected a line of a log'),
    ],
)
def test_another_file_is_refused(tmp_path, text, problem):
    path = tmp_path / 'log.jsonl'
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        read_questions(path)
