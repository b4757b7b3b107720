"""Calls into Lucene: exceptions translated to one line, and Lucene's version."""

from __future__ import annotations

from typing import Any

from pyserini_repbert.errors import JavaError, MismatchError, PyseriniRepbertError
from pyserini_repbert.lucene.jvm import java_calls, java_class, java_reason

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
