"""Why a request is not answered: the errors of a service that the library below it does not know."""

from __future__ import annotations

from pyserini_repbert.errors import PyseriniRepbertError


class OverloadedError(PyseriniRepbertError):
    """Too many requests wait already; `retry_after` says in how many seconds it is worth trying again."""

    retry_after = 1


class NotReadyError(PyseriniRepbertError):
    """The indexes are being opened; `retry_after` as above."""

    retry_after = 1


class TooLateError(PyseriniRepbertError):
    """The answer took longer than the service allows."""


class NotFoundError(PyseriniRepbertError):
    """There is no such passage, topic or address."""
