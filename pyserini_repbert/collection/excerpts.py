"""Passages of documents as hits show them: their texts, and their locations in their sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pyserini_repbert.collection.answering_parts import (
    MOST_PARTS,
    MOST_PASSAGES,
    PassagePart,
    answering_part,
)
from pyserini_repbert.collection.generation import FIELDS_WITH_URL, Generation, StoredPassage
from pyserini_repbert.data.code_blocks import code_blocks
from pyserini_repbert.data.origins import Origin, TextSpan
from pyserini_repbert.data.snippets import find_words
from pyserini_repbert.data.suffixes import SOURCES, has_suffix_or_packed
from pyserini_repbert.ranking import Excerpt, Excerpts

_TEXTS_AT_ONCE = 100


def read_excerpts(
    generation: Generation, numbers: Mapping[int, Sequence[int]], query: str = ''
) -> dict[int, Excerpts]:
    """Passages with their texts, by the document's number.

    Parameters
    ----------
    generation : has the documents
    numbers : of the passages wanted, in the order of the result, by the document's number
    query : the question that they answer; '' for none

    Raises DamagedFileError for a text that does not match its digest, and for a missing passage.
    """
    excerpts = {}
    for docno, of_document in _placed_passages(generation, numbers).items():
        chosen = []
        for own in of_document:
            alone = {own.passage.number: 0.0}
            part = answering_part(query, alone, own.numbered_parts())
            chosen.append(_excerpt(generation, own, part.row, query))
        excerpts[docno] = tuple(chosen)
    return excerpts


def answering_excerpts(
    generation: Generation, scores: Mapping[int, Mapping[int, float]], query: str
) -> dict[int, Excerpts]:
    """The passage of each document that answers a question, by the document's number.

    A document without passages has none.

    Parameters
    ----------
    generation : has the documents
    scores : what the vectors of all passages have above the background, by the passage's number, by
        the document's number
    query : the question

    Raises the errors of `read_excerpts`.
    """
    nearest = {}
    for docno, of_passages in scores.items():
        order = sorted(of_passages, key=lambda number: (-of_passages[number], number))
        nearest[docno] = order[:MOST_PASSAGES]
    excerpts: dict[int, Excerpts] = {}
    for docno, of_document in _placed_passages(generation, nearest).items():
        by_number = {}
        parts = []
        for placed in of_document:
            by_number[placed.passage.number] = placed
            parts += placed.numbered_parts()
        excerpts[docno] = ()
        if parts:
            part = answering_part(query, scores[docno], parts)
            answering = by_number[part.number]
            excerpts[docno] = (_excerpt(generation, answering, part.row, query),)
    return excerpts


def _excerpt(generation: Generation, placed: _PlacedPassage, row: int, query: str) -> Excerpt:
    """A passage as hits show it, of whose parts one answers the question, with its address."""
    if placed.answers_as_whole(row, query):
        excerpt = placed.whole_excerpt()
    else:
        excerpt = placed.excerpt(row)
    address = generation.address(placed.own_address, placed.source, excerpt.file, excerpt.anchor)
    return replace(excerpt, url=address)


def _placed_passages(
    generation: Generation, numbers: Mapping[int, Sequence[int]]
) -> dict[int, list[_PlacedPassage]]:
    """Passages with their texts, in the order of `numbers`, by the document's number.

    Raises the errors of `read_excerpts`.
    """
    spans = generation.passages(numbers)
    docnos = list(numbers)
    placed: dict[int, list[_PlacedPassage]] = {}
    for first in range(0, len(docnos), _TEXTS_AT_ONCE):
        rows = generation.select(
            'SELECT docno, docid, title, text, text_digest, source, '
            f'{FIELDS_WITH_URL}, fields.digest '
            'FROM texts JOIN fields USING (docno) JOIN documents USING (docno) '
            'WHERE fields.since <= :generation AND fields.until > :generation '
            'AND texts.since <= :generation AND texts.until > :generation '
            'AND docno IN (SELECT value FROM json_each(:rows))',
            docnos[first : first + _TEXTS_AT_ONCE],
        )
        origins = generation.origins([row[0] for row in rows])
        for docno, docid, title, text, of_text, source, fields, of_fields in rows:
            generation.check_text(docid, title, text, of_text)
            own = generation.own_address(docid, fields, of_fields)
            origin = origins.get(docno, Origin())
            by_number = {span.number: span for span in spans[docno]}
            placed[docno] = []
            for number in numbers[docno]:
                if number not in by_number:
                    raise generation.damage(f"document '{docid}' has no passage {number}")
                passage = by_number[number]
                placed[docno].append(_PlacedPassage(passage, title, text, origin, source, own))
    return placed


def only_excerpts(
    generation: Generation, query: str, docids: Sequence[str]
) -> dict[str, Excerpts] | None:
    """The only passage of each document, by docid; None if a document has several.

    A document without text has none, and one that does not exist is left out. Raises the error of
    `read_excerpts`.
    """
    docnos = generation.docnos(docids).tolist()
    spans = generation.passages([docno for docno in docnos if docno >= 0])
    numbers: dict[int, list[int]] = {}
    for docno, passages in spans.items():
        if len(passages) > 1:
            return None
        numbers[docno] = [passage.number for passage in passages]
    excerpts = read_excerpts(generation, numbers, query)
    pairs = zip(docids, docnos, strict=True)
    return {docid: excerpts[docno] for docid, docno in pairs if docno in excerpts}


@dataclass(frozen=True)
class _PlacedPassage:
    """A passage of a document, and the document's location in its source.

    Attributes
    ----------
    passage : which it is
    title, text : of the document
    origin : the document's location in its source
    source : the number of the source
    own_address : that the document names; '' for none
    """

    passage: StoredPassage
    title: str
    text: str
    origin: Origin
    source: int
    own_address: str

    @cached_property
    def parts(self) -> list[TextSpan]:
        """The parts into which headings cut the passage, or of a program, its blocks."""
        if has_suffix_or_packed(self.origin.file, SOURCES):
            return code_blocks(self.text, self.passage.start, self.passage.end)
        return self.origin.parts(self.passage.start, self.passage.end)

    def numbered_parts(self) -> list[PassagePart]:
        """The parts, with the number of the passage and the headings above each."""
        parts = []
        for row, part in enumerate(self.parts[:MOST_PARTS]):
            headings = ' '.join(heading.title for heading in self.origin.headings_at(part.start))
            text = self.text[part.start : part.end]
            parts.append(PassagePart(self.passage.number, row, text, headings))
        return parts

    def answers_as_whole(self, row: int, query: str) -> bool:
        """Whether nothing tells which of the passage's printed pages answers a question.

        Pages end anywhere, and no word of the question is on the page that was chosen: the vector,
        which is of all pages, found the passage.
        """
        if not self.origin.pages or self.origin.headings:
            return False
        part = self.parts[row]
        return not find_words(query, self.text[part.start : part.end])

    def whole_excerpt(self) -> Excerpt:
        """The passage as hits show it, with the printed pages on which it begins and ends."""
        parts = self.parts
        excerpt = self.excerpt(0)
        if len(parts) == 1:
            return excerpt
        last_page = self.origin.page_at(parts[-1].start)
        return replace(excerpt, part=None, last_page=last_page)

    def excerpt(self, row: int) -> Excerpt:
        """The passage as hits show it, of whose parts one answers the question."""
        passage = self.passage
        origin = self.origin
        part = self.parts[row]
        headings = origin.headings_at(part.start)
        return Excerpt(
            number=passage.number,
            start=passage.start,
            end=passage.end,
            text=self.text[passage.start : passage.end],
            title=self.title,
            headings=tuple(heading.title for heading in headings),
            anchor=origin.anchor_at(part.start),
            file=origin.file,
            line=origin.line_at(self.text, part.start),
            row=origin.row or None,
            part=(part.start, part.end) if len(self.parts) > 1 else None,
        )
