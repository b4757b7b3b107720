"""PyTerrier's data frames from rankings, and rankings from frames; the one module that imports
PyTerrier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyserini_repbert.errors import InputError, needs
from pyserini_repbert.fusion.interleaving import provenance
from pyserini_repbert.interop.hits import excerpt_metadata
from pyserini_repbert.ranking import Candidate, Ranking

with needs('python-terrier', 'pyserini_repbert.interop.pyterrier', 'pyterrier'):
    import pandas as pd
    import pyterrier as pt

__all__ = ['pd', 'pt']  # others import them here

# Columns of an earlier retrieval, which a new one replaces.
_HIT_COLUMNS = ['docno', 'docid', 'score', 'rank']


@dataclass(frozen=True)
class FrameQuery:
    """A query of a result frame, with its candidates.

    Attributes
    ----------
    query : its text
    rows : of the frame, from 0, in the order of the stage before
    candidates : one for each row
    """

    query: str
    rows: list[int]
    candidates: Ranking


def queries_of(inp: Any) -> list[FrameQuery]:
    """The queries of a result frame, by their first rows."""
    queries = []
    for (_, query), rows in ranked_rows(inp, ['qid', 'query']):
        texts = []
        if 'text' in rows:
            # A missing text may be None or NaN.
            texts = [text if isinstance(text, str) else None for text in rows['text'].tolist()]
        scores = [0.0] * len(rows)
        if 'score' in rows:
            scores = rows['score'].tolist()
        candidates = Ranking(map(str, rows['docno']), scores, texts)
        queries.append(FrameQuery(str(query), rows.index.tolist(), candidates))
    return queries


def ranked_rows(inp: Any, by: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """(key, rows) of each group of a result frame; rows are sorted by 'rank' if there is one,
    indexed by row number.
    """
    check_queries(inp, [column for column in ('qid', 'query') if column in inp])
    for key, rows in inp.reset_index(drop=True).groupby(list(by), sort=False):
        if 'rank' in rows:
            rows = rows.sort_values('rank', kind='stable')
        yield key, rows


def check_queries(inp: Any, columns: Sequence[str]) -> None:
    """Raises InputError for a row without a qid or a query, and for a qid with two queries."""
    for column in columns:
        empty = inp[column].isna()
        if empty.any():
            row = int(empty.to_numpy().argmax())
            raise InputError(f"row {row} of the frame has no '{column}': give or drop it")
    if len(columns) > 1:
        pairs = inp[list(columns)].drop_duplicates()
        again = pairs['qid'].duplicated()
        if again.any():
            qid = pairs['qid'][again].iloc[0]
            raise InputError(f"qid '{qid}' has two queries: give each query its own qid")


def hits_frame(inp: Any, rankings: Sequence[Ranking], columns: Mapping[str, Any]) -> Any:
    """A result frame from a query frame and a ranking for each of its rows; `columns` have a
    value for each hit.
    """
    lengths = np.array([len(ranking) for ranking in rankings], dtype=np.int64)
    rows = np.repeat(np.arange(len(inp)), lengths)
    kept = inp.drop(columns=[*_HIT_COLUMNS, *columns], errors='ignore')
    out = kept.iloc[rows].reset_index(drop=True)
    docids: list[str] = []
    for ranking in rankings:
        docids += ranking.docids
    out['docno'] = pd.Series(docids, dtype=str)
    return _with_scores(out, rankings, columns)


def ranked_frame(
    inp: Any, rows: Sequence[int], rankings: Sequence[Ranking], columns: Mapping[str, Any]
) -> Any:
    """Rows of a frame with new scores, ranks and columns.

    Parameters
    ----------
    inp : the frame
    rows : of the frame, from 0, in the order of the rankings
    rankings : their scores
    columns : a value for each of the rows
    """
    kept = inp.drop(columns=['score', 'rank', *columns], errors='ignore')
    out = kept.iloc[list(rows)].reset_index(drop=True)
    return _with_scores(out, rankings, columns)


def rank_columns(
    names: Sequence[str], inputs: Sequence[Sequence[Ranking]], fused: Sequence[Ranking]
) -> dict[str, Any]:
    """The ranks of fused hits in each input: columns 'rank_NAME', Int64, from 0 as PyTerrier
    counts, NA where absent.

    `inputs` has for each query its ranking in each input, `fused` its fused ranking.
    """
    ranks: list[tuple[int | None, ...]] = []
    for rankings, ranking in zip(inputs, fused, strict=True):
        ranks += provenance([part.docids for part in rankings], ranking.docids)
    columns = {}
    for number, name in enumerate(names):
        from_one = pd.array([hit[number] for hit in ranks], dtype='Int64')
        columns[f'rank_{name}'] = from_one - 1 + pt.model.FIRST_RANK
    return columns


def excerpt_columns(hits: Sequence[Candidate]) -> dict[str, Any]:
    """Of documents: the passages that decided, as columns 'text', 'passage', 'start' and 'end'.

    A document without passages has '' and NA.
    """
    texts = pd.Series([hit.text or '' for hit in hits], dtype=object)
    columns: dict[str, Any] = {'text': texts}
    metadata = [excerpt_metadata(hit) for hit in hits]
    for name in ('passage', 'start', 'end'):
        columns[name] = pd.array([values.get(name) for values in metadata], dtype='Int64')
    return columns


def _with_scores(out: Any, rankings: Sequence[Ranking], columns: Mapping[str, Any]) -> Any:
    scores: list[float] = []
    for ranking in rankings:
        scores += ranking.scores
    return pt.model.add_ranks(out.assign(score=np.array(scores, dtype=np.float64), **columns))
