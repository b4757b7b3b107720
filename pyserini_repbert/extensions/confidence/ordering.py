"""An order of the documents that are judged for a question: those in doubt come first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyserini_repbert.serve.indexes import ServedIndex
    from pyserini_repbert.serve.service import Service
    from pyserini_repbert.trace import Trace

# Hits whose P(relevant) orders a pool.
_DEPTH = 100
# One in so many documents is drawn at random.
_RANDOM_EVERY = 3


def order_by_doubt(
    service: Service, index: ServedIndex, question: str, docids: Sequence[str], trace: Trace
) -> list[str]:
    """The documents of a pool, those whose P(relevant) is nearest to a half first.

    Every third is as the order of `docids` has it, which is random.

    Parameters
    ----------
    service, index : what searches; the caller holds the index
    question : its text
    docids : of the pool, in random order
    trace : learns how far the search is

    Raises InputError if confidence is not known.
    """
    from pyserini_repbert.serve.requests import SearchedRequest

    limits = service.settings.limits
    asked = {'query': question, 'hits': min(_DEPTH, limits.hits), 'confidence': True}
    request = SearchedRequest.model_validate(asked)
    answer = service.search(index, request.asked_search(False, limits), trace)
    relevant = {
        docid: fields['probability']
        for docid, fields in zip(answer.hits.docids, answer.of_hits, strict=True)
    }
    doubtful = sorted(docids, key=lambda docid: abs(relevant.get(docid, 0.0) - 0.5))
    at_random = list(docids)
    ordered: list[str] = []
    while doubtful:
        source = at_random if len(ordered) % _RANDOM_EVERY == _RANDOM_EVERY - 1 else doubtful
        docid = source[0]
        ordered.append(docid)
        doubtful.remove(docid)
        at_random.remove(docid)
    return ordered
