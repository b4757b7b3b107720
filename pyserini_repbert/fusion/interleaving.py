"""Interleave fusion of ranked lists (RepBERT section 4.5.1), and the provenance of fused hits as
a file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain, zip_longest
from pathlib import Path

from pyserini_repbert.data.runs import default_tag
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath, atomic_file
from pyserini_repbert.ranking import NO_HITS, Run

_FILLING = ' '  # pads shorter rankings; no docid has white space


def interleave(rankings: Sequence[Sequence[str]], k: int | None = 1000) -> list[str]:
    """Alternate between rankings, keep each document's highest position, truncate (RepBERT eq. 6).

    First come the first documents of all rankings, in the order of the rankings, then their second
    documents, and so on; where shorter rankings end, the longer ones continue.

    Parameters
    ----------
    rankings : docids of each ranking, best first; any number of rankings of any length
    k : how many documents to keep; None keeps all

    Returns docids, best first, without duplicates.
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
    """The rank, from 1, of each fused document in each ranking; None where it is absent.

    A tuple for each document of `fused`, with an entry for each ranking; a docid that a ranking has
    twice counts at its first place.
    """
    ranks = [
        dict(zip(reversed(ranking), range(len(ranking), 0, -1), strict=True))
        for ranking in rankings
    ]
    return [tuple(ranking.get(docid) for ranking in ranks) for docid in fused]


def write_provenance(
    path: StrPath, run_paths: Sequence[StrPath], runs: Sequence[Run], fused: Run
) -> None:
    """Write one line for each hit of `fused`, atomically.

    A name in .jsonl (or .jsonl.gz) gives JSON lines `{"qid", "docid", "rank", "ranks": {run name:
    rank}}`, in which a run that lacks the document is left out; any other name gives tab-separated
    columns with a header: qid, docid, rank and one column of ranks for each run, empty where the
    run lacks the document. Ranks count from 1.
    """
    names = unique_names(run_paths)
    as_json = Path(path).name.removesuffix('.gz').endswith('.jsonl')
    with atomic_file(path) as stream:
        if not as_json:
            stream.write('\t'.join(['qid', 'docid', 'rank', *names]) + '\n')
        for qid, ranking in fused.items():
            inputs = [run.get(qid, NO_HITS).docids for run in runs]
            hits = zip(ranking.docids, provenance(inputs, ranking.docids), strict=True)
            for rank, (docid, ranks) in enumerate(hits, 1):
                if as_json:
                    known = {
                        name: place
                        for name, place in zip(names, ranks, strict=True)
                        if place is not None
                    }
                    hit = {'qid': qid, 'docid': docid, 'rank': rank, 'ranks': known}
                    line = json.dumps(hit, ensure_ascii=False)
                else:
                    line = '\t'.join(
                        [qid, docid, str(rank), *(str(place or '') for place in ranks)]
                    )
                stream.write(line + '\n')


def unique_names(run_paths: Sequence[StrPath]) -> list[str]:
    """A short name for each run, from its file name; a name that is taken gets the run's number:
    'bm25', 'bm25#2'.
    """
    names = [default_tag(path) for path in run_paths]
    return [name if name not in names[:i] else f'{name}#{i + 1}' for i, name in enumerate(names)]
