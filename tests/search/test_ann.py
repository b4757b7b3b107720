"""Approximate search against exact search, with real FAISS on small clustered vectors."""

from __future__ import annotations

import json
import multiprocessing
import shutil

import numpy as np
import pytest

from pyserini_repbert.commands import command
from pyserini_repbert.commands.index import main as index_command
from pyserini_repbert.encode import encode_corpus
from pyserini_repbert.errors import BusyError, DamagedFileError, InputError, MismatchError
from pyserini_repbert.formats.passages import Passage
from pyserini_repbert.index import DenseBundle, export_faiss
from pyserini_repbert.index.ann import AnnIndex
from pyserini_repbert.index.ann_kinds import AnnKind, efforts, factory
from pyserini_repbert.search import HybridSearcher, RepBertSearcher, exact
from pyserini_repbert.search.ann import scores
from pyserini_repbert.search.ann_building import build_ann, mean_recall

DIMENSION = 16
COUNT = 900


class VectorEncoder:
    """Passages whose text is a row number become rows of a matrix, queries too."""

    name, weights_sha256, dimension, pooling = 'rows', '0' * 64, DIMENSION, 'mean'
    max_length, precision = 16, 'float32'

    def __init__(self, vectors):
        self.vectors = vectors

    def encode(self, texts, **_):
        return self.vectors[int(texts)] if isinstance(texts, str) else self.vectors[[int(text) for text in texts]]


@pytest.fixture(scope='module')
def vectors():
    random = np.random.default_rng(5)
    centres = random.standard_normal((20, DIMENSION))
    found = (centres[random.integers(20, size=COUNT)] + 0.5 * random.standard_normal((COUNT, DIMENSION))).astype('f4')
    found[10] = found[11] = found[12]  # three that tie
    return found


def make_bundle(folder, vectors, dtype='float32', shard_size=400):
    """A bundle of these vectors, written as an encoding writes it."""
    from pyserini_repbert.index.dense_writer import write_bundle_of  # noqa: F401
