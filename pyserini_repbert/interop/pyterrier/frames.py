"""PyTerrier's data frames from rankings, and rankings from frames; the one module that imports
PyTerrier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pyserini_repbert.errors import InputError, needs
from pyserini_repbert.fusion.interleaving import provenance
from pyserini_repbert.ranking import Ranking

with needs('python-terrier', 'pyserini_repbert.interop.pyterrier', 'pyterrier'):
    import pandas as pd
    import pyterrier as pt

__all__ = ['pd', 'pt']  # others import them here

_OF_HITS = [
    'docno',
    'docid',
    'score',
    'rank',
]  # columns of an earlier retrieval, which a new one replaces


def candidates_of(inp: Any) -> Iterator[tuple[str, list[int], Ranking]]:
    """(query, rows of the frame from 0, candidates in the same order, that of the stage before),
    by first rows.
    """
    for (_, query), rows in ranked_rows(inp, ['qid', 'query']):
        texts = rows['text'].tolist() if 'text' in rows else []
        known = [text if isinstance(text, str) else None for text in texts]
        scores = rows['score'].tolist() if 'score' in rows else [0.0] * len(rows)
        yield str(query), rows.index.tolist(), Ranking(map(str, rows['docno']), scores, known)


def ranked_rows(inp: Any, by: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """(key, rows) of each group of a result frame; rows are sorted by 'rank' if there is one,
    indexed by row number.
    """
    check_queries(inp, [column for column in ('qid', 'query') if column in inp])
    for key, rows in inp.reset_index(drop=True).groupby(list(by), sort=False):
        yield key, rows.sort_values('rank', kind='stable') if 'rank' in rows else rows


def check_queries(inp: Any, columns: Sequence[str]) -> None:
    """Raises InputError for a row without a qid or a query, and for a qid with two queries."""
    for column in columns:
        if (empty := inp[column].isna()).any():
            raise InputError(
                f"row {int(empty.to_numpy().argmax())} of the frame has no '{column}': give or "
                f'drop it'
            )
    if len(columns) > 1:
        pairs = inp[list(columns)].drop_duplicates()
        if (again := pairs['qid'].duplicated()).any():
            raise InputError(
                f"qid '{pairs['qid'][again].iloc[0]}' has two queries: each needs its own"
            )


def hits_frame(inp: Any, rankings: Sequence[Ranking], columns: Mapping[str, Any]) -> Any:
    """A result frame from a query frame and a ranking for each of its rows; `columns` have a
    value for each hit.
    """
    places = np.repeat(
        np.arange(len(inp)), np.array([len(ranking) for ranking in rankings], dtype=np.int64)
    )
    out = (
        inp.drop(columns=[*_OF_HITS, *columns], errors='ignore').iloc[places].reset_index(drop=True)
    )
    out['docno'] = pd.Series([docid for ranking in rankings for docid in ranking.docids], dtype=str)
    return _scored(out, rankings, columns)


def ranked_frame(
    inp: Any, rows: Sequence[int], rankings: Sequence[Ranking], columns: Mapping[str, Any]
) -> Any:
    """The given rows of a frame, which are in the order of the rankings, with their scores and
    new `columns`.
    """
    out = (
        inp.iloc[list(rows)]
        .drop(columns=['score', 'rank', *columns], errors='ignore')
        .reset_index(drop=True)
    )
    return _scored(out, rankings, columns)


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
    columns = {f'rank_{name}': [hit[number] for hit in ranks] for number, name in enumerate(names)}
    return {
        name: pd.array(column, dtype='Int64') - 1 + pt.model.FIRST_RANK
        for name, column in columns.items()
    }


def _scored(out: Any, rankings: Sequence[Ranking], columns: Mapping[str, Any]) -> Any:
    scores = [score for ranking in rankings for score in ranking.scores]
    return pt.model.add_ranks(out.assign(score=np.array(scores, dtype=np.float64), **columns))
