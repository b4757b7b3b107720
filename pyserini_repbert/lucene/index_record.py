"""What a Lucene index that this package built says of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyserini_repbert.data.word_forms import WordForms
from pyserini_repbert.lucene.languages import ENGLISH

# Beside Lucene's files in an index that this package built.
MANIFEST = 'pyserini_repbert.json'
# The variant whose index holds EPIC's weights instead of words.
EPIC_IMPACT = 'epic-impact'


def record_of(folder: Path) -> dict[str, Any]:
    """The record of an index that this package built.

    Empty for other indexes, and for a damaged record.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding='utf-8'))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(manifest, dict):
        return {}
    return manifest


def recorded_language(folder: Path) -> str | None:
    """The language of an index's analyzer by its own record.

    English if the record names none, as earlier versions knew no other. None without a record, and
    for an index of EPIC's impacts.
    """
    record = record_of(folder)
    if not record or record.get('variant') == EPIC_IMPACT:
        return None
    return str(record.get('language', ENGLISH))


def recorded_word_forms(folder: Path) -> WordForms:
    """The form of an index's words, according to its record; without a record, as written."""
    is_united = record_of(folder).get('word_forms') == WordForms.UNITED
    return WordForms.UNITED if is_united else WordForms.WRITTEN


def built_variant(folder: Path) -> str | None:
    """The variant of an index ('bm25', 'deepct', 'epic-impact', …) by its own record.

    None without a record.
    """
    variant = record_of(folder).get('variant')
    return variant if isinstance(variant, str) else None
