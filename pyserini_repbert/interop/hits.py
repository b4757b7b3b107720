"""What the wrappers of searchers and of rerankers share: hits with their texts, and texts reranked by place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyserini_repbert.errors import InputError
from pyserini_repbert.formats.passages import PassageTexts
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.rerank.base import NO_TEXT, Reranker


def hits_with_text(searcher: Any, query: str, k: int, texts: PassageTexts | None = None) -> Ranking:
    """What `searcher.search(query, k=k)` finds, each hit with its passage.

    Parameters
    ----------
    searcher : any of ours or Pyserini's, or a `Pipeline`
    k : hits
    texts : gives passage text by docid; default: what the searcher or the pipeline itself stores

    Raises
    ------
    InputError
        for a hit whose text is not to be found
    """
    hits = searcher.search(query, k=k)
    ranking = Ranking(
        (hit.docid for hit in hits), (float(hit.score) for hit in hits), (getattr(hit, 'text', None) for hit in hits)
    )
    lacking = [hit.docid for hit in ranking if hit.text is None]
    source: Any = getattr(searcher, 'texts', None) if texts is None else texts
    read = getattr(source, 'texts', source)  # a method of a searcher itself; of a pipeline, what was given to it
    if lacking and read is not None:
        ranking = ranking.with_texts(dict(zip(lacking, read(lacking), strict=True)))
    for hit in ranking:
        if hit.text is None:
            raise InputError(f"passage '{hit.docid}' {NO_TEXT}", parameters=('texts',))
    return ranking


def reranked(
    reranker: Reranker, query: str, texts: Sequence[str], docids: Sequence[str | None], k: int | None = None
) -> list[tuple[int, float]]:
    """(place among `texts`, score), best first, the k best where k is given; equal scores keep their order.

    Parameters
    ----------
    docids : by which a reranker with an index finds its vectors; where one is None, places serve as docids

    Raises
    ------
    InputError
        for a docid that comes twice
    """
    places = [str(place) for place in range(len(texts))]
    names = places if None in docids else [str(docid) for docid in docids]
    found = reranker.rerank(query, [Candidate(name, text=text) for name, text in zip(names, texts, strict=True)], k)
    place_of = {name: place for place, name in enumerate(names)}
    return [(place_of[candidate.docid], candidate.score) for candidate in found]
