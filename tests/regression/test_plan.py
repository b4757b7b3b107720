"""What conditions take: shared steps once, amounts computed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyserini_repbert.regression.fetching.needs import size_in_bytes, sizes
from pyserini_repbert.regression.plan import Plan, plan
from pyserini_repbert.regression.reading import read_regression
from pyserini_repbert.regression.workspace import Workspace

ROOT = Path(__file__).parents[2] / 'regressions'


def planned(tmp_path: Path, file: str, *names: str) -> Plan:
    """At a thousand passages a second."""
    regression = read_regression(ROOT / f'{file}.yaml')
    workspace = Workspace(regression, tmp_path / 'work', str(tmp_path), '1')
    return plan([(own, workspace) for own in regression.conditions if own.name in names], 1000.0)


def test_a_shared_step_counts_once(tmp_path: Path) -> None:
    found = planned(tmp_path, 'msmarco-v1-passage.interleave', 'made.RepBERT', 'made.RepBERT+BM25', 'made.BM25')
    steps = {step.name: step for step in found.steps}
    assert list(steps) == [
        'lucene.BM25', 'made.BM25', 'dense.RepBERT', 'made.RepBERT', 'msmarco-v1-passage.interleave made.RepBERT+BM25',
    ]  # fmt: skip
    assert [name.rpartition(' ')[2] for name in found.conditions] == ['made.BM25', 'made.RepBERT+BM25', 'made.RepBERT']
    assert steps['dense.RepBERT'].hours == pytest.approx(8_841_823 / 1000 / 3600)
    assert steps['dense.RepBERT'].disk == 8_841_823 * 768 * 2
    assert {need.resource.name for need in found.needs} == {'collection', 'topics', 'qrels', 'repbert'}


def test_reranking_goes_by_pairs_length_and_weights(tmp_path: Path) -> None:
    (step,) = planned(tmp_path, 'msmarco-v1-passage.mono-duo', 'made.mono+duo_SUM+TCP').steps
    large = 24 * 1024**2 / (12 * 768**2)
    mono, duo = 1000 * 90 / 77 * large, 50 * 49 * 150 / 77 * large
    assert step.hours == pytest.approx(6980 * (mono + duo) / 1000 / 3600)
    (cedr, *_) = [step for step in planned(tmp_path, 'robust04.cedr', 'CEDR-KNRM').steps if step.name == 'cedr-knrm']
    assert cedr.hours == pytest.approx(5 * 250 * 150 * 800 / 77 / 1000 / 3600)


def test_sizes() -> None:
    assert sizes('987 MB packed, 2.9 GB unpacked') == (987_000_000, 2_900_000_000)
    assert sizes('size unknown, 250 topics') == (None, 0)
    assert size_in_bytes('10GB') == 10**10
    for text in ('10', 'GB', '1 GB unpacked', '-1 GB'):
        with pytest.raises(ValueError, match='is not a size'):
            size_in_bytes(text)
