"""The languages for which Anserini has an analyzer of Lucene."""

from __future__ import annotations

from pyserini_repbert.errors import InputError
from pyserini_repbert.ranking import Ranker

ENGLISH = 'en'
# Anserini's AnalyzerMap, and English, which is its default.
LANGUAGES = (
    'ar', 'bn', 'da', 'de', 'en', 'es', 'fa', 'fi', 'fr', 'hi', 'hu', 'id', 'it', 'ja', 'ko', 'nl',
    'no', 'pl', 'pt', 'ru', 'sv', 'te', 'th', 'tr', 'uk', 'zh',
)  # fmt: skip


def check_language(language: str) -> None:
    """Raises InputError for a language without an analyzer."""
    if language not in LANGUAGES:
        raise InputError(
            f"language '{language}' has no analyzer: expected one of {', '.join(LANGUAGES)}",
            parameters=('language',),
        )


def language_of(ranker: Ranker) -> str | None:
    """The language of the first analyzer among the parts of a ranker; None if it has none."""
    for leaf in ranker.leaves():
        language = getattr(leaf, 'language', None)
        if isinstance(language, str):
            return language
    return None
