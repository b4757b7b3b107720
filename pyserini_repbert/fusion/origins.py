"""The provenance of fused runs as a file: each hit's rank in each input run."""

from __future__ import annotations

import json
from collections.abc import Sequence
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
            hits = zip(ranking.docids, provenance(inputs, ranking.docids), strict=True)
            for rank, (docid, ranks) in enumerate(hits, 1):
                if as_json:
                    known = {name: place for name, place in zip(names, ranks, strict=True) if place is not None}
                    hit = {'qid': qid, 'docid': docid, 'rank': rank, 'ranks': known}
                    line = json.dumps(hit, ensure_ascii=False)
                else:
                    columns = ('' if place is None else str(place) for place in ranks)
                    line = '\t'.join([qid, docid, str(rank), *columns])
                stream.write(line + '\n')


def unique_names(run_paths: Sequence[StrPath]) -> list[str]:
    """A short name for each run, from its file name; a name that is taken gets the run's number: 'bm25', 'bm25#2'."""
    names = [default_tag(path) for path in run_paths]
    return [name if name not in names[:i] else f'{name}#{i + 1}' for i, name in enumerate(names)]
