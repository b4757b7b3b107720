"""Errors of language models."""

from __future__ import annotations

from pyserini_repbert.errors import OtherServerError


class LanguageModelError(OtherServerError):
    """A language model's server cannot be reached, fails, refuses, or gives an invalid answer."""

    server = 'the language model'
