"""kill -9 at every file event of plan, encode and finish: the same steps again end with the bundle made in one go."""

from __future__ import annotations

import errno
import json
import os
import shutil
from functools import partial
from pathlib import Path

import indexes
import kill_at
import pytest

from pyserini_repbert.encode.plan import plan_encoding
from pyserini_repbert.encode.planned import encode_shards, finish_plan, finished
from pyserini_repbert.encode.sharding import Encoding
from pyserini_repbert.index.dense_writer import DenseShardWriter
from pyserini_repbert.index.epic_writer import EpicShardWriter
from pyserini_repbert.names.corpora import open_corpus

DENSE = Encoding(indexes.DENSE, DenseShardWriter, indexes.vectors, 2)
EPIC = Encoding(indexes.EPIC, EpicShardWriter, indexes.term_vectors, 2)
KINDS = {'dense': (indexes.dense, DENSE), 'epic': (indexes.epic, EPIC)}
QUICK = 29  # each so many kill points in the quick test


def steps(corpus: Path, folder: Path, encoding: Encoding, rename: bool = True) -> None:
    """What a user calls, the first time and after every kill."""
    if not rename:
        Path.rename = Path.replace = refused
    if finished(folder, type(encoding.settings)) is not None:
        return
    plan = plan_encoding(folder, open_corpus(corpus), str(corpus), encoding.settings)
    for number in (2, 0, 1):
        encode_shards(folder, plan, open_corpus(corpus), [number], encoding)
    finish_plan(folder, plan)


def refused(path, target):
    """What a file system without renaming answers."""
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), str(path))


def attacked(tmp_path: Path, kind: str, every: int, rename: bool = True) -> int:
    """Kill at each so many points; how many were tried."""
    make, encoding = KINDS[kind]
    whole = kill_at.tree(make(tmp_path / 'whole'))
    corpus, work = tmp_path / 'corpus.jsonl', tmp_path / 'work'
    records = [{'id': passage.docid, 'contents': passage.text} for passage in indexes.PASSAGES]
    corpus.write_text(''.join(f'{json.dumps(record)}\n' for record in records))
    work.mkdir()
    call = partial(steps, corpus, work / 'index', encoding, rename)
    found = kill_at.run(call, work)
    assert (found.status, kill_at.tree(work / 'index') == whole) == (0, True), found.output
    tried = range(1, len(found.points), every)
    for number in tried:
        shutil.rmtree(work / 'index', ignore_errors=True)
        assert kill_at.run(call, work, at=number).killed
        again = kill_at.run(call, work)
        assert again.status == 0, f'killed at {found.points[number]}: {again.output}'
        assert kill_at.tree(work / 'index') == whole, f'killed at {found.points[number]}'
    return len(tried)


@pytest.mark.parametrize('rename', [True, False])
def test_some_kills_of_a_planned_encoding(tmp_path, rename):
    assert attacked(tmp_path, 'dense', QUICK, rename) >= 4


@pytest.mark.slow
@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('rename', [True, False])
def test_every_kill_of_a_planned_encoding(tmp_path, kind, rename):
    assert attacked(tmp_path, kind, 1, rename) > 100
