"""Every reader of files that users bring, on thousands of damaged ones.

What a reader takes has to be what an independent reading finds (`reference_readings`, for runs, qrels, TSV and JSON
lines); what it refuses has to be an error in one line that names the file, and the line where there is one. Nothing
else may escape. 200 files for each reader; 2,000 with `make test-all`.
"""

from __future__ import annotations

import json
import logging
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import mutations
import pytest
import reference_readings as reference
from damaged_readers import READERS, Reader, _or_refused, kept_scores, repacked, run_of, unpacked
from sample_files import FOLDS, MSMARCO_RUN, TREC_RUN, encoded

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
        wanted: Any = NotImplemented
        refused: reference.Refused | None = None
        if reader.expected is not None:
            try:
                wanted = reader.expected(unpacked(path, data))
            except reference.Refused as error:
                refused = error
        try:
            found = reader.read(path)
        except PyseriniRepbertError as error:
            counts['refused'] += 1
            message = str(error)
            assert wanted is NotImplemented, f'{where}: {message}, but it says {wanted}'
            assert str(path) in message and '\n' not in message, f'{where}: {message}'
            if refused is not None and refused.lines:
                named = re.search(rf'{re.escape(str(path))}:(\d+): ', message)
                assert named and int(named[1]) in refused.lines, f'{where}: {message}, expected {refused.lines}'
        except Exception as error:
            raise AssertionError(f'{where}: {type(error).__name__} escaped') from error
        else:
            counts['taken'] += 1
            assert refused is None, f'{where}: read as {found}, but {refused and refused.lines} is none'
            assert wanted is NotImplemented or found == wanted, f'{where}: read as {found}, but it says {wanted}'
            if reader.holds is not None:
                reader.holds(data, found)
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


def test_the_references_bite(tmp_path: Path) -> None:
    """A reading that differs, and an error of another kind, are found."""
    path = tmp_path / 'run'
    path.write_text(TREC_RUN)
    wrong = Reader('run', encoded(TREC_RUN), lambda path: {**run_of(path), 'q9': ([], [])}, reference.run)
    with pytest.raises(AssertionError, match='but it says'):
        attack(wrong, tmp_path, 20)
    escaping = Reader('folds', encoded(FOLDS), lambda path: json.loads(path.read_text())[0])
    with pytest.raises(AssertionError, match='escaped'):
        attack(escaping, tmp_path, 50)
