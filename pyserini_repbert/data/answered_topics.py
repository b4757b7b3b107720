"""Questions of data for question answering, as Anserini reads them.

In DPR's files, of Natural Questions, TriviaQA and others, a question has no qid: it is the number
of its line, from 0. EPIDEMIC-QA has a list of JSON.
"""

from __future__ import annotations

import csv
import re

from pyserini_repbert.data.trec_topics import FoundTopic, NumberedLines, Topics
from pyserini_repbert.data.values import has_surrogates, parse_json
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath

# A question, which is not a qid since it has white space, and the list of its answers
_ANSWERED = re.compile(r'[^\t]*[^\t\s]\s[^\t]*\t\s*"?\[.*\]"?\s*')
# EPIDEMIC-QA: 'CQ001' of consumers, 'EQ001' of experts. Anserini numbers them.
_QUESTION_ID = re.compile(r'[A-Z]*0*([0-9]+)')


def is_answered_line(line: str) -> bool:
    """Whether a line is of a table of questions and answers."""
    return _ANSWERED.fullmatch(line) is not None


def is_answered_record(line: str) -> bool:
    """Whether a line is a record of a question and its answers."""
    try:
        record = parse_json(line)
    except ValueError:
        return False
    return isinstance(record, dict) and {'question', 'answer'} <= record.keys()


def parse_answered_lines(path: StrPath, lines: NumberedLines) -> Topics:
    """`question<TAB>['answer', …]`; either may be in quotes."""
    for qid, (number, line) in enumerate(lines):
        try:
            row = next(csv.reader([line], delimiter='\t'))
        except csv.Error as error:
            problem = f"expected 'question<TAB>answers', found {line[:60]!r} ({error})"
            raise InputError.at(path, number, problem) from error
        if len(row) < 2:
            problem = f"expected 'question<TAB>answers', found {line[:60]!r}"
            raise InputError.at(path, number, problem)
        yield FoundTopic(number, str(qid), row[0].strip())


def parse_answered_records(path: StrPath, lines: NumberedLines) -> Topics:
    """`{"question": …, "answer": […]}` a line."""
    for qid, (number, line) in enumerate(lines):
        try:
            record = parse_json(line)
            text = record['question']
            if not isinstance(text, str) or has_surrogates(text):
                raise ValueError("'question' is not text")
        except (ValueError, TypeError, KeyError) as error:
            problem = f"expected a JSON object with 'question' and 'answer', found {line[:60]!r}"
            raise InputError.at(path, number, f'{problem} ({error})') from error
        yield FoundTopic(number, str(qid), text.strip())


def parse_question_list(path: StrPath, lines: NumberedLines) -> Topics:
    """A list of `{"question_id": "CQ001", "query": …}`. The qid is the number, as in Anserini."""
    numbered = list(lines)
    first_line = numbered[0][0]
    wanted = "expected a list of JSON objects with 'question_id' and 'query'"
    try:
        records = parse_json('\n'.join(line for _, line in numbered))
    except ValueError as error:
        raise InputError.at(path, first_line, f'{wanted} ({error})') from error
    if not isinstance(records, list):
        raise InputError.at(path, first_line, wanted)
    for position, record in enumerate(records, 1):
        values = record if isinstance(record, dict) else {}
        question_id = _QUESTION_ID.fullmatch(str(values.get('question_id')))
        text = values.get('query')
        if question_id is None or not isinstance(text, str) or has_surrogates(text):
            raise InputError.at(path, first_line, f'{wanted}; record {position} lacks them')
        yield FoundTopic(first_line, question_id[1], text.strip())
