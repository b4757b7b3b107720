"""Hits of several files with the same text, which are shown as one hit with several places."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyserini_repbert.ranking import Candidate, Ranking

# In so many hits, different texts are looked for.
_MOST_RANKED = 1000


@dataclass(frozen=True)
class DistinctHits:
    """The best hits of a ranking, each with another text.

    Attributes
    ----------
    rows : of the hits in the ranking
    hits : with their texts
    copies : the docids of other files with the same text, by the docid of a hit
    """

    rows: Sequence[int]
    hits: Ranking
    copies: Mapping[str, Sequence[str]]

    def are_too_few(self, n_wanted: int, ranking: Ranking, depth: int) -> bool:
        """Whether there may be more below a ranking of `depth` hits."""
        return len(self.rows) < n_wanted and len(ranking) >= depth


def depths_of(n_wanted: int) -> Iterator[int]:
    """How many hits are ranked to find `n_wanted` different texts: each time more, if those were
    too few.
    """
    depth = 2 * n_wanted
    yield depth
    while depth < _MOST_RANKED:
        depth = min(2 * depth, _MOST_RANKED)
        yield depth


def distinct_hits(
    ranking: Ranking, n_wanted: int, add_texts: Callable[[Ranking], Ranking]
) -> DistinctHits:
    """The best `n_wanted` hits of different texts; fewer if the ranking has no more.

    `add_texts` returns the hits that it is given with their texts.
    """
    n_read = n_wanted
    while True:
        hits = add_texts(ranking[:n_read])
        copies = _copies_of(hits)
        n_needed = n_wanted + sum(len(docids) for docids in copies.values())
        if n_read >= min(n_needed, len(ranking)):
            break
        n_read = n_needed
    left_out: set[str] = set()
    for docids in copies.values():
        left_out.update(docids)
    rows = [row for row, docid in enumerate(hits.docids) if docid not in left_out]
    shown = hits.select_rows(rows, [hits.scores[row] for row in rows])
    return DistinctHits(rows, shown, copies)


def _copies_of(hits: Ranking) -> dict[str, list[str]]:
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
