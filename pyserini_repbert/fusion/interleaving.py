"""Interleave fusion of rankings (RepBERT section 4.5.1), and the provenance of fused hits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path

from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath, atomic_file
from pyserini_repbert.ranking import NO_HITS, Run

# Pads shorter rankings; no docid has white space.
_FILLING = ' '


def interleave(rankings: Sequence[Sequence[str]], k: int | None = 1000) -> list[str]:
    """Alternate between rankings, keep each document's highest position, truncate (RepBERT eq. 6).

    First come the first documents of all rankings, in the order of the rankings, then their second
    documents, and so on; where shorter rankings end, the longer ones continue.

    Parameters
    ----------
    rankings : docids of each ranking, best first; any number of rankings of any length
    k : how many documents to keep; None keeps all

    Returns docids, best first, without duplicates. Raises InputError for a negative k.
    """
    if k is not None and k < 0:
        raise InputError(f'cannot keep {k} documents: k has to be at least 0, or None for all')
    merged: dict[str, None] = dict.fromkeys(
        chain.from_iterable(zip_longest(*rankings, fillvalue=_FILLING))
    )
    merged.pop(_FILLING, None)
    return list(merged)[:k]


def provenance(
    rankings: Sequence[Sequence[str]], fused: Sequence[str]
) -> list[tuple[int | None, ...]]:
    """The rank, from 1, of each fused document in each ranking; None if it is absent.

    A tuple for each document of `fused`, with an entry for each ranking; a docid that a ranking has
    twice counts at its first rank.
    """
    rank_tables = []
    for ranking in rankings:
        ranks: dict[str, int] = {}
        for rank, docid in enumerate(ranking, 1):
            ranks.setdefault(docid, rank)
        rank_tables.append(ranks)
    ranks_of_hits = []
    for docid in fused:
        ranks_of_hits.append(tuple(ranks.get(docid) for ranks in rank_tables))
    return ranks_of_hits


def write_provenance(
    path: StrPath, run_paths: Sequence[StrPath], runs: Sequence[Run], fused: Run
) -> None:
    """Write one line for each hit of `fused`, atomically.

    A name in .jsonl (or .jsonl.gz) gives JSON lines `{"qid", "docid", "rank", "ranks": {run name:
    rank}}`, in which a run that lacks the document is left out. Any other name gives tab-separated
    columns with a header: qid, docid, rank and one column of ranks for each run, empty if the
    run lacks the document. Ranks count from 1.

    Parameters
    ----------
    path : of the file to write
    run_paths : the files of the runs, or their names: `unique_names` makes columns of them
    runs : in the same order
    fused : their fusion
    """
    from pyserini_repbert.data.runs import unique_names

    names = unique_names(run_paths)
    as_json = Path(path).name.removesuffix('.gz').endswith('.jsonl')
    with atomic_file(path) as stream:
        if not as_json:
            stream.write('\t'.join(['qid', 'docid', 'rank', *names]) + '\n')
        for qid, ranking in fused.items():
            inputs = [run.get(qid, NO_HITS).docids for run in runs]
            ranks_of_hits = provenance(inputs, ranking.docids)
            hits = zip(ranking.docids, ranks_of_hits, strict=True)
            for rank, (docid, input_ranks) in enumerate(hits, 1):
                if as_json:
                    line = _json_line(qid, docid, rank, dict(zip(names, input_ranks, strict=True)))
                else:
                    cells = [str(input_rank or '') for input_rank in input_ranks]
                    line = '\t'.join([qid, docid, str(rank), *cells])
                stream.write(line + '\n')


def _json_line(qid: str, docid: str, rank: int, ranks: Mapping[str, int | None]) -> str:
    known = {name: input_rank for name, input_rank in ranks.items() if input_rank is not None}
    hit = {'qid': qid, 'docid': docid, 'rank': rank, 'ranks': known}
    return json.dumps(hit, ensure_ascii=False)
