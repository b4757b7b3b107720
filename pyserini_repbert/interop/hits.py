"""What the wrappers share: documents as a corpus, hits with their texts, and texts reranked by
position.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyserini_repbert.data.passages import BadPassage, Corpus, Passage, PassageTexts
from pyserini_repbert.errors import InputError
from pyserini_repbert.ranking import Candidate, Query, Ranking
from pyserini_repbert.rerank.base import NO_TEXT, Reranker
from pyserini_repbert.search.hybrid import as_ranker


class Documents(Corpus):
    """Documents of another project; `settings` are those of `Corpus`."""

    def __init__(
        self, name: str, passages: Iterable[Passage | BadPassage], **settings: Any
    ) -> None:
        super().__init__(name, **settings)
        self._passages = passages

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        return ((f'document {number}', passage) for number, passage in enumerate(self._passages, 1))

    def _first_location(self, docid: str) -> str:
        return 'an earlier document'  # a stream cannot be read again


def hits_with_text(searcher: Any, query: str, k: int, texts: PassageTexts | None = None) -> Ranking:
    """The k best hits of a query, each with its passage; a hit without is refused.

    `searcher` is a first stage or a pipeline, ours or Pyserini's; `texts` gives passages in its
    place.
    """
    ranker = as_ranker(searcher)
    ranking = ranker.rank([Query('0', query)], None, k)['0']
    stored = (texts or ranker).texts(ranking.docids)
    ranking = ranking.with_texts(dict(zip(ranking.docids, stored, strict=True)))
    if lacking := next((hit for hit in ranking if hit.text is None), None):
        raise InputError(f"passage '{lacking.docid}' {NO_TEXT}", parameters=('texts',))
    return ranking


def reranked(
    reranker: Reranker,
    query: str,
    texts: Sequence[str],
    docids: Sequence[str | None],
    k: int | None = None,
) -> list[tuple[int, float]]:
    """(index in `texts`, score) of the k best texts, None: all, best first; equal scores keep their
    order.

    By the docids, one for each text, a reranker with an index finds its vectors; if any is None,
    none is used.
    """
    names = [str(name) for name in (range(len(texts)) if None in docids else docids)]
    hits = reranker.rerank(
        query, [Candidate(name, text=text) for name, text in zip(names, texts, strict=True)], k
    )
    place_of = {name: place for place, name in enumerate(names)}
    return [(place_of[hit.docid], hit.score) for hit in hits]
