"""Tokenised text in ordinary spelling, to show to people."""

from __future__ import annotations

import re

# Separate punctuation, and punctuation at a word: tokenised text has only the first.
_APART = re.compile(r'(?<=\s)[.,;](?=\s|$)|-LRB-|(?<!\S)``(?=\s)')
_ATTACHED = re.compile(r'\w[,;:?!](?=\s|$)')
# Undo tokenisation, which the demo's passages have; applied in this order. Each takes time in
# proportion to the text: a run of spaces is read once, from its first.
_MENDED = (
    (re.compile(r"(?<!\S)``\s*+|(?<!\s)\s*+''(?=\W|$)"), '"'),
    (re.compile(r'-LRB-\s*'), '('),
    (re.compile(r'(?<!\s)\s*+-RRB-'), ')'),
    (re.compile(r'(?<!\s)\s++([,.;:?!%)\]}])(?=\s|$|["\')\]},.;:])'), r'\1'),
    (re.compile(r'([(\[{])\s+'), r'\1'),
    (re.compile(r"\b(\w++) (n't|'s|'re|'ve|'ll|'d|'m)\b"), r'\1\2'),
    (re.compile(r"(s) '(?=\s|$)"), r"\1'"),
    (re.compile(r'(?<=[^\W\d_]) - (?=[^\W\d_])'), '-'),
    (re.compile(r'(?<=\S) --(?= \S)'), ' –'),
)


def mended(text: str) -> str:
    """Tokenised text in ordinary spelling: quotes for `` and '', no spaces before commas.

    Other text is not changed. Text is other text if a comma follows a word directly, or if no
    punctuation is separate.
    """
    if not _APART.search(text) or _ATTACHED.search(text):
        return text
    for pattern, replacement in _MENDED:
        text = pattern.sub(replacement, text)
    return text
