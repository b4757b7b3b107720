"""Questions to judge, from a list or from a service's log of searches."""

from __future__ import annotations

from collections import Counter
from typing import Any
from urllib.parse import parse_qs

from pyserini_repbert.data.values import parse_json
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath, numbered_lines


def read_questions(path: StrPath) -> list[str]:
    """The questions of a file: one a line, or the searches in a service's log of requests.

    Questions of a list keep their order. Of a log, the most frequent questions come first.

    Raises InputError, with file and line, for a log without the text of searches, and for a file
    without questions.
    """
    asked: Counter[str] = Counter()
    is_log = False
    for number, line in numbered_lines(path, 'file of questions'):
        text = line.strip()
        if not text:
            continue
        if text.startswith('{'):
            is_log = True
            text = _logged_question(path, number, text)
        if text:
            asked[text] += 1
    if not asked:
        raise InputError(
            f'{path} has no questions: write one on each line, or give a log of searches'
        )
    if is_log:
        return [text for text, _ in asked.most_common()]
    return list(asked)


def _logged_question(path: StrPath, number: int, line: str) -> str:
    """The question of a line of a log; '' for a request that is not a search."""
    try:
        entry: Any = parse_json(line)
    except ValueError as error:
        raise InputError.at(path, number, f'expected a line of a log, as JSON ({error})') from error
    if not isinstance(entry, dict) or not str(entry.get('path', '')).endswith('/search'):
        return ''
    if 'query' not in entry:
        problem = (
            'the log has no text of searches: give one that has it (`log_queries` of a service)'
        )
        raise InputError.at(path, number, problem)
    values = parse_qs(str(entry['query'])).get('query', [''])
    return ' '.join(values[0].split())
