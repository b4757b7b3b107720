"""Every reader of files that users bring, on damaged ones: read, or refused in one line that names the file."""

from __future__ import annotations

import logging
import random
from collections import Counter
from pathlib import Path

import mutations
import pytest
from damaged_readers import READERS, Reader, _or_refused, kept_scores, repacked
from sample_files import MSMARCO_RUN, TREC_RUN, encoded

from pyserini_repbert.data import run_parser as run_blocks
from pyserini_repbert.data.runs import read_run
from pyserini_repbert.errors import PyseriniRepbertError

QUICK, THOROUGH = 200, 2000


def attack(reader: Reader, folder: Path, cases: int) -> Counter[str]:
    """Read `cases` damaged files; how many were taken and how many refused."""
    counts: Counter[str] = Counter()
    path = folder / reader.file
    seeds = reader.seeds or kept_scores(folder)
    for case in range(cases):
        draw = random.Random(f'{reader.name} {case}')
        data = draw.choice(seeds)
        if reader.pack is repacked:
            data = repacked(draw, data) if draw.random() < 0.7 else mutations.mutated(draw, data)
        else:
            data = mutations.mutated(draw, data)
            data = reader.pack(draw, data) if reader.pack is not None else data
        path.write_bytes(data)
        where = f'{reader.name}, case {case}: {data[:300]!r}'
        try:
            reader.read(path)
        except PyseriniRepbertError as error:
            counts['refused'] += 1
            message = str(error)
            assert str(path) in message and '\n' not in message, f'{where}: {message}'
        except Exception as error:
            raise AssertionError(f'{where}: {type(error).__name__} escaped') from error
        else:
            counts['taken'] += 1
    return counts


@pytest.mark.parametrize('cases', [QUICK, pytest.param(THOROUGH, marks=pytest.mark.slow)])
@pytest.mark.parametrize('reader', READERS, ids=lambda reader: reader.name)
def test_damaged_files(reader: Reader, cases: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)  # each skipped line is a warning
    counts = attack(reader, tmp_path, cases)
    assert counts['taken'] >= cases // 50, counts
    assert counts['refused'] >= cases // 50 or not reader.refuses, counts


@pytest.mark.parametrize('cases', [QUICK, pytest.param(THOROUGH, marks=pytest.mark.slow)])
def test_a_run_in_blocks_is_the_same_run(cases: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where blocks end decides nothing."""
    path = tmp_path / 'run'
    for case in range(cases):
        draw = random.Random(f'blocks {case}')
        path.write_bytes(mutations.mutated(draw, draw.choice(encoded(TREC_RUN, MSMARCO_RUN))))
        whole = _or_refused(lambda: read_run(path))
        monkeypatch.setattr(run_blocks.line_blocks, '__defaults__', (draw.choice([1, 7, 30]),))
        assert _or_refused(lambda: read_run(path)) == whole, path.read_bytes()
        monkeypatch.undo()
