"""The provenance of fused runs as a file: each hit's rank in each input run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyserini_repbert.data.runs import default_tag
from pyserini_repbert.files import StrPath, atomic_file
from pyserini_repbert.fusion.interleaving import provenance
from pyserini_repbert.ranking import NO_HITS, Run


def write_provenance(path: StrPath, run_paths: Sequence[StrPath], runs: Sequence[Run], fused: Run) -> None:
    """Write one line for each hit of `fused`, atomically.

    A name in .jsonl (or .jsonl.gz) gives JSON lines `{"qid", "docid", "rank", "ranks": {run name: rank}}`, in which
    a run that lacks the document is left out; any other name gives tab-separated columns with a header: qid, docid,
    rank and one column of ranks for each run, empty where the run lacks the document. Ranks count from 1.
    """
    names = unique_names(run_paths)
    as_json = Path(path).name.removesuffix('.gz').endswith('.jsonl')
    with atomic_file(path) as stream:
        if not as_json:
            stream.write('\t'.join(['qid', 'docid', 'rank', *names]) + '\n')
        for qid, ranking in fused.items():
            inputs = [run.get(qid, NO_HITS).docids for run in runs]
            ranks = provenance(inputs, ranking.docids)
            stream.writelines((_json_lines if as_json else _rows)(qid, ranking.docids, names, ranks))


def unique_names(run_paths: Sequence[StrPath]) -> list[str]:
    """A short name for each run, from its file name; a name that is taken gets the run's number: 'bm25', 'bm25#2'."""
    names = [default_tag(path) for path in run_paths]
    return [name if name not in names[:i] else f'{name}#{i + 1}' for i, name in enumerate(names)]


def _rows(
    qid: str, docids: Sequence[str], names: list[str], ranks_of_hits: list[tuple[int | None, ...]]
) -> Iterator[str]:
    for rank, (docid, ranks) in enumerate(zip(docids, ranks_of_hits, strict=True), 1):
        values = ('' if rank_there is None else str(rank_there) for rank_there in ranks)
        yield '\t'.join([qid, docid, str(rank), *values]) + '\n'


def _json_lines(
    qid: str, docids: Sequence[str], names: list[str], ranks_of_hits: list[tuple[int | None, ...]]
) -> Iterator[str]:
    start = f'{{"qid": {_quoted(qid)}, "docid": '
    keys = [f'{_quoted(name)}: ' for name in names]
    for rank, (docid, ranks) in enumerate(zip(docids, ranks_of_hits, strict=True), 1):
        known = ', '.join(
            [f'{key}{rank_there}' for key, rank_there in zip(keys, ranks, strict=True) if rank_there is not None]
        )
        yield f'{start}{_quoted(docid)}, "rank": {rank}, "ranks": {{{known}}}}}\n'


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
