"""Relevance judgments from TREC's files."""

from __future__ import annotations

import logging
from pathlib import Path

from pyserini_repbert.data.values import columns, integer
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath, numbered_lines

logger = logging.getLogger(__name__)

MAX_GRADE = 127  # evaluators spend time and memory on each grade up to the greatest

Qrels = dict[str, dict[str, int]]


def read_qrels(path: StrPath) -> Qrels:
    """TREC relevance judgments, `qid iteration docid grade` a line.

    Returns {qid: {docid: grade}} in the file's order. A grade is an integer from -127 to 127.
    Where a document is judged more than once for a topic, the last grade counts, as for trec_eval;
    a warning says how often grades differ. Raises InputError for a malformed line (with file and
    line), or a file without judgments.
    """
    qrels: Qrels = {}
    changed: list[int] = []
    for number, line in numbered_lines(path, 'qrels file'):
        try:
            values = columns(line)
            if not values:
                continue
            qid, _, docid, grade_text = values
            grade = integer(grade_text, -MAX_GRADE, MAX_GRADE)
        except ValueError as error:
            wanted = f"expected 'qid 0 docid grade', found {line[:60]!r}"
            raise InputError.at(path, number, f'{wanted} ({error})') from error
        judged = qrels.setdefault(qid, {})
        if judged.get(docid, grade) != grade:
            changed.append(number)
        judged[docid] = grade
    if not qrels:
        raise InputError(f'qrels file {Path(path)} has no judgments')
    if changed:
        message = (
            '%s:%d: a document judged before gets another grade; the last one counts (%d such '
            'lines)'
        )
        logger.warning(message, path, changed[0], len(changed))
    return qrels
