"""Errors of language models."""

from __future__ import annotations

from pyserini_repbert.errors import OtherServerError


class LanguageModelError(OtherServerError):
    """A language model's server cannot be reached, fails, refuses, or gives what it should not."""

    server = 'the language model'
