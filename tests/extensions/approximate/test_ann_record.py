"""What the record of an approximate index says, and how it is used."""

from types import SimpleNamespace

import numpy as np
import pytest

from pyserini_repbert.extensions.approximate import index as ann
from pyserini_repbert.extensions.approximate.index import AnnIndex, AnnRecord
from pyserini_repbert.extensions.approximate.kinds import AnnKind

VALUES = {
    'factory': 'F',
    'index_sha256': '1' * 64,
    'dimension': 8,
    'count': 1000,
    'hits': 100,
    'candidates': 300,
    'recall': 0.98765,
    'asked': 0.95,
    'sample': 'topics',
    'queries': 20,
}


@pytest.mark.parametrize(
    ('kind', 'parameter', 'said'),
    [
        (AnnKind.PQ, None, '300 candidates: recall'),
        (AnnKind.IVF, 4, '300 candidates, nprobe 4: recall'),
        (AnnKind.HNSW, 64, '300 candidates, efSearch 64: recall'),
    ],
)
def test_a_record_in_words(kind, parameter, said):
    text = str(AnnRecord(ann=kind, parameter=parameter, **VALUES))
    assert text.startswith(f'{kind} (F), {said}@100 0.9877 of exact search on 20 queries (topics)')


@pytest.mark.parametrize(
    ('k', 'candidates', 'parameter'),
    [(1, 300, 4), (100, 300, 4), (150, 450, 6), (1000, 1000, 40)],
)
def test_deeper_searches_take_more_effort(monkeypatch, k, candidates, parameter):
    """In proportion beyond the depth of 100 hits that was measured, up to all 1,000 rows."""
    efforts = []
    monkeypatch.setattr(ann, 'candidate_rows', lambda *arguments: efforts.append(arguments[-1]))
    record = AnnRecord(ann=AnnKind.IVF, parameter=4, **VALUES)
    index = SimpleNamespace(record=record, _index=None)
    AnnIndex.rows(index, np.zeros((1, 8), np.float32), k)
    assert (efforts[0].candidates, efforts[0].parameter) == (candidates, parameter)
