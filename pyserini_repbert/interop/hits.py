"""What the wrappers share: documents as a corpus, an index of them, hits with their texts, and
texts reranked by their positions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyserini_repbert.data.passages import BadPassage, Corpus, Passage, PassageTexts
from pyserini_repbert.encode.corpus import encode_corpus
from pyserini_repbert.errors import InputError
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.pipeline.opening import open_searcher
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Candidate, Query, Ranking
from pyserini_repbert.rerank.base import NO_TEXT, Reranker
from pyserini_repbert.search.hybrid import as_ranker
from pyserini_repbert.search.with_arguments import search_of_arguments


class Documents(Corpus):
    """Documents of another project; `settings` are as in `Corpus`."""

    def __init__(
        self, name: str, passages: Iterable[Passage | BadPassage], **settings: Any
    ) -> None:
        super().__init__(name, **settings)
        self._passages = passages

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        for number, passage in enumerate(self._passages, 1):
            yield f'document {number}', passage

    def _first_location(self, docid: str) -> str:
        # A stream cannot be read again.
        return 'an earlier document'


def index_passages(
    passages: Corpus | Iterable[Passage],
    encoder: Any,
    folder: Path,
    checkpoint: str,
    device: str,
    precision: str,
) -> Any:
    """Encode passages into a new index, and open its exact search.

    Parameters
    ----------
    passages : with distinct docids
    encoder : of the passages, as `encode_corpus` takes it
    folder : of the index
    checkpoint : the encoder of queries: a catalog name or a folder
    device : where queries are encoded and vectors multiplied
    precision : of the encoder of queries
    """
    encode_corpus(passages, encoder, folder)
    spec = PipelineSpec(index=str(folder), encoder=checkpoint, precision=precision)
    return open_searcher(spec, Machine(devices=(device,)))


def open_named(searcher: Any) -> Any:
    """The search of an index or a collection, given by its folder or catalog name; an open searcher
    is returned unchanged.
    """
    if isinstance(searcher, (str, Path)):
        return open_searcher(PipelineSpec(index=str(searcher)))
    return searcher


def excerpt_metadata(hit: Candidate) -> dict[str, Any]:
    """For a document: its title, and the number and characters of the deciding passage, with its
    headings, its location in the file, and its address; and what an extension says about it.
    """
    if not hit.excerpts:
        return {**hit.added}
    passage = hit.excerpts[0]
    return {
        **hit.added,
        'title': passage.title,
        'passage': passage.number,
        'start': passage.start,
        'end': passage.end,
        'headings': list(passage.headings),
        'anchor': passage.anchor,
        'file': passage.file,
        'line': passage.line,
        'row': passage.row,
        'last_page': passage.last_page,
        'url': passage.url,
    }


def score_by_docid(ranking: Ranking) -> dict[str, float]:
    """{docid: score}, best first."""
    return dict(zip(ranking.docids, ranking.scores, strict=True))


def hits_with_text(searcher: Any, query: str, k: int, texts: PassageTexts | None = None) -> Ranking:
    """The k best hits of a query, each with its passage; a hit without is refused.

    A document of a collection has the passage that decided.

    Parameters
    ----------
    searcher : a first stage or a pipeline, ours or Pyserini's
    query : a question
    k : how many hits
    texts : gives the passages; None: the searcher
    """
    ranker = as_ranker(searcher)
    if ranker.has_excerpts:
        ranking = Ranking.of(searcher.search(query, k))
    else:
        ranking = ranker.rank([Query('0', query)], None, k)['0']
    passages = texts or ranker
    known = dict(zip(ranking.docids, passages.texts(ranking.docids), strict=True))
    ranking = ranking.with_texts(known)
    for hit in ranking:
        if hit.text is None:
            raise InputError(f"passage '{hit.docid}' {NO_TEXT}", parameters=('texts',))
    return ranking


def retrieved_hits(
    searcher: Any,
    query: str,
    k: int,
    texts: PassageTexts | None,
    of_extensions: Mapping[str, Any],
) -> Sequence[Candidate]:
    """The k best hits of a query, each with its passage, as retrievers give them.

    Parameters
    ----------
    searcher, query, k, texts : as in `hits_with_text`
    of_extensions : what extensions say of the hits of a collection, as `Collection.search` takes it

    Raises InputError for an argument that no extension takes, and if an extension cannot give what
    is asked for.
    """
    search = search_of_arguments(as_ranker(searcher), of_extensions)
    if search is None:
        return hits_with_text(searcher, query, k, texts)
    hits: Sequence[Candidate] = search(query, k)
    return hits


@dataclass(frozen=True)
class RankedText:
    """A text, named by its position in the input, from 0, with its new score."""

    position: int
    score: float


def rerank_texts(
    reranker: Reranker,
    query: str,
    texts: Sequence[str],
    docids: Sequence[str | None],
    k: int | None = None,
) -> list[RankedText]:
    """The k best texts, best first; equal scores keep their order.

    Parameters
    ----------
    reranker : any of ours
    query : a question
    texts : to rerank
    docids : one for each text, by which a reranker with an index finds the text's vectors; if it is
        None, or also names another text, the text is encoded
    k : how many texts; None: all
    """
    names = _distinct_names(docids)
    candidates = [Candidate(name, text=text) for name, text in zip(names, texts, strict=True)]
    hits = reranker.rerank(query, candidates, k)
    position_of = {name: position for position, name in enumerate(names)}
    return [RankedText(position_of[hit.docid], hit.score) for hit in hits]


def _distinct_names(docids: Sequence[str | None]) -> list[str]:
    """A name for each text: its docid, or its position if the docid is missing or not unique.

    Two passages of a document often have its docid. A position has a space, as no docid of an
    index has.
    """
    counts = Counter(docids)
    names = []
    for position, docid in enumerate(docids):
        if docid is None or counts[docid] > 1:
            names.append(f'text {position}')
        else:
            names.append(str(docid))
    return names
