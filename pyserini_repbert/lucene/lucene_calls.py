"""Calls into Lucene: exceptions translated to one line, arguments checked, and Lucene's version."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any

from pyserini_repbert.errors import InputError, JavaError, MismatchError, PyseriniRepbertError
from pyserini_repbert.lucene.jvm import java_calls, java_class, java_reason
from pyserini_repbert.ranking import NO_HITS, Run

# Lucene's messages about an index that a newer or a much older Lucene wrote
_OTHER_LUCENE = (
    'indexCreatedVersionMajor is in the future',
    'IndexFormatTooNewException',
    'IndexFormatTooOldException',
    'org.apache.lucene.codecs.Codec with name',
)


def lucene_major() -> int:
    """The major version of the Lucene in Anserini's jar: 9 with Pyserini 1.6, 10 with 2.x."""
    with java_calls():
        return int(java_class('org.apache.lucene.util.Version').LATEST.major)


def calling(method: Any, *arguments: Any) -> Any:
    """The result of a Java method or constructor; raises its exceptions as JavaError or MismatchError of one line."""
    import jnius

    try:
        return method(*arguments)
    except jnius.JavaException as error:
        raise _translated(error) from error


def unanswered(queries: Sized, qids: Sequence[str], k: int, threads: int) -> Run:
    """A run with empty rankings, for checked queries that Lucene is to answer.

    Raises InputError for lengths that differ, a qid that occurs twice, k or threads below 1.
    """
    if len(queries) != len(qids):
        raise InputError(f'{len(queries)} queries and {len(qids)} qids were given: expected as many of each')
    if k < 1 or threads < 1:
        raise InputError(f'k={k}, threads={threads}: both have to be at least 1')
    run: Run = dict.fromkeys(qids, NO_HITS)
    if len(run) != len(qids):
        twice = next(qid for place, qid in enumerate(qids) if qid in qids[:place])
        raise InputError(f"qid '{twice}' was given twice: give every query a qid of its own")
    return run


def _translated(error: Any) -> PyseriniRepbertError:
    reason = java_reason(error)
    if any(phrase in reason for phrase in _OTHER_LUCENE):
        return MismatchError(
            f'the index was built by another Lucene than the {lucene_major()} of the installed Pyserini ({reason}): '
            'build it again, or search it with the Pyserini that it was built with (1.6 has Lucene 9, 2.x has 10)'
        )
    if 'without position data' in reason:
        return MismatchError(f'the index has no positions, which SDM needs ({reason}): build it with `index lucene`')
    if error.classname == 'java.lang.OutOfMemoryError':
        return JavaError(f'Java ran out of memory ({reason}): set PYSERINI_REPBERT_JAVA_HEAP, to 8g say')
    return JavaError(f'Lucene failed ({reason}): check the index with `doctor` or build it again')
