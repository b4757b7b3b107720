"""The languages for which Anserini has an analyzer of Lucene."""

from __future__ import annotations

from pyserini_repbert.errors import InputError

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
            f"language '{language}' has no analyzer: expected one of {', '.join(LANGUAGES)}"
        )
