"""What FAISS builds for each kind of approximate index, and the settings that are tried."""

import pytest

from pyserini_repbert.extensions.approximate.kinds import (
    AnnKind,
    Effort,
    efforts,
    factory,
    training_points,
)


@pytest.mark.parametrize(
    ('kind', 'dimension', 'count', 'description'),
    [
        ('pq', 384, 1000, 'PQ192x4fs'),
        ('pq', 3, 1000, 'PQ3x4fs'),
        ('hnsw', 384, 1000, 'HNSW32_SQfp16'),
        ('ivf', 384, 1_000_000, 'IVF4000,SQ8'),  # 4 times the square root
        ('ivf', 384, 1000, 'IVF25,SQ8'),  # 39 vectors a list
        ('ivf', 384, 30, 'IVF1,SQ8'),
    ],
)
def test_descriptions_for_faiss(kind, dimension, count, description):
    assert factory(AnnKind(kind), dimension, count) == description


@pytest.mark.parametrize(
    ('kind', 'count', 'points'),
    [
        ('pq', 10_000, 4096),  # 256 for each of 16 centroids
        ('pq', 700, 700),
        ('ivf', 1_000_000, 256_000),  # 64 for each of 4000 lists
        ('ivf', 1000, 1000),
    ],
)
def test_how_many_vectors_train_an_index(kind, count, points):
    assert training_points(AnnKind(kind), count) == points


@pytest.mark.parametrize(
    ('kind', 'count', 'hits', 'tried'),
    [
        ('pq', 100, 10, [(10,), (20,), (30,), (40,), (50,), (60,), (80,), (100,)]),
        ('pq', 70, 10, [(10,), (20,), (30,), (40,), (50,), (60,), (70,)]),
        ('hnsw', 100, 10, [(13, 13), (13, 26), (13, 52), (13, 100)]),
        ('hnsw', 13, 20, [(13, 13)]),
        ('ivf', 1000, 10, [(13, 1), (13, 2), (13, 4), (13, 8), (13, 16), (13, 25)]),
    ],
)
def test_settings_that_are_tried(kind, count, hits, tried):
    assert list(efforts(AnnKind(kind), count, hits)) == [Effort(*values) for values in tried]


def test_candidates_of_a_large_index_are_at_most_fifty_for_a_hit():
    candidates = [effort.candidates for effort in efforts(AnnKind.PQ, 10_000, 2)]
    assert candidates == [2, 4, 6, 8, 10, 12, 16, 20, 30, 40, 60, 100]
