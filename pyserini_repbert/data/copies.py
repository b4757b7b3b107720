"""Hits of several files with the same text, which are shown as one hit with several places."""

from __future__ import annotations

from pyserini_repbert.ranking import Candidate, Ranking


def copies_of(hits: Ranking) -> dict[str, list[str]]:
    """The hits of other files with the same text, by the docid of the first of them."""
    first_of: dict[tuple[object, ...], Candidate] = {}
    copies: dict[str, list[str]] = {}
    for hit in hits:
        if not hit.excerpts or not hit.excerpts[0].file:
            continue
        passage = hit.excerpts[0]
        first = first_of.setdefault((passage.title, passage.start, passage.end, passage.text), hit)
        if first is not hit and first.excerpts[0].file != passage.file:
            copies.setdefault(first.docid, []).append(hit.docid)
    return copies
