"""A lone question is scored in NumPy: as FAISS does, but for rounding."""

import subprocess
import sys

import numpy as np

from pyserini_repbert.search.scores import pair_scores

PROGRAM = """
import sys
import numpy as np
from pyserini_repbert.search.scores import pair_scores
with np.load('pairs.npz') as pairs:
    given = [pairs[name] for name in ('queries', 'vectors', 'rows', 'owners')]
np.save('scores.npy', pair_scores(*given))
np.save('alone.npy', pair_scores(given[0], given[1], given[2][:1], given[3][:1]))
assert not {'faiss', 'torch'} & sys.modules.keys()
"""


def test_scores_are_those_of_faiss(tmp_path):
    generator = np.random.default_rng(1)
    queries = generator.standard_normal((3, 37), dtype=np.float32)
    vectors = generator.standard_normal((20, 37), dtype=np.float32)
    vectors[7] = vectors[4]
    rows = np.array([4, 7, 0, 19], np.int64)
    owners = np.array([2, 2, 0, 1], np.int64)
    np.savez(tmp_path / 'pairs.npz', queries=queries, vectors=vectors, rows=rows, owners=owners)
    subprocess.run([sys.executable, '-c', PROGRAM], cwd=tmp_path, check=True)
    scores = np.load(tmp_path / 'scores.npy')
    np.testing.assert_allclose(scores, pair_scores(queries, vectors, rows, owners), rtol=2e-6)
    # Equal vectors tie, whatever else is scored.
    assert scores[0] == scores[1] == np.load(tmp_path / 'alone.npy')[0]
