"""Why a request is not answered: the errors that only a service raises."""

from __future__ import annotations

from pyserini_repbert.errors import PyseriniRepbertError


class OverloadedError(PyseriniRepbertError):
    """Too many jobs wait already; `retry_after` is the seconds after which to try again."""

    retry_after = 1


class NotReadyError(PyseriniRepbertError):
    """The indexes are not open yet; `retry_after` is the seconds after which to try again."""

    retry_after = 1


class TooLateError(PyseriniRepbertError):
    """The answer took longer than the service allows."""


class NotFoundError(PyseriniRepbertError):
    """There is no such document, topic, request or address, or no judgments."""
