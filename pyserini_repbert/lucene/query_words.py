"""What finds the words of queries in texts of a language."""

from __future__ import annotations

from collections.abc import Callable

from pyserini_repbert.data.snippets import WordMatch, find_words
from pyserini_repbert.lucene.languages import ENGLISH

WordFinder = Callable[[str, str], list[WordMatch]]
"""Finds the words of a query in a text."""


def word_finder(language: str | None) -> WordFinder:
    """What finds the words of queries in texts of a language, as BM25 does.

    English texts, and those without a language, need no Java: words match regardless of case and a
    plural ending.
    """
    if language is None or language == ENGLISH:
        return find_words
    from pyserini_repbert.lucene.analysis import analyzer_of

    return analyzer_of(language).find_words
