"""Tiny collections: a model of random weights, passages of ten wordpieces, no Lucene."""

import numpy as np
import pytest

from pyserini_repbert.collection import Collection

SMALL = {'passage_tokens': 10, 'overlap': 3, 'sparse': 'none'}


@pytest.fixture
def checkpoint(tiny_checkpoint):
    """The folder of a tiny encoder."""
    return str(tiny_checkpoint())


@pytest.fixture
def open_collection(tmp_path, checkpoint):
    """make(name='mine', **settings) -> a collection of a tiny encoder."""

    def make(name='mine', **settings):
        return Collection.open(tmp_path / name, encoder=checkpoint, **SMALL | settings)

    return make


@pytest.fixture
def all_scores():
    """scores(collection, query) -> {(docid, passage's number): score} of all live passages."""

    def scores(collection, query):
        generation = collection.generation
        found = {}
        for live in generation.shards:
            products = np.asarray(live.shard.vectors) @ query
            docids = generation.docids(live.shard.documents)
            for row, product in enumerate(products):
                if live.live is None or live.live[row]:
                    key = (docids[row], int(live.shard.numbers[row]))
                    assert key not in found
                    found[key] = float(product)
        return found

    return scores


@pytest.fixture
def query():
    """A query's vector, float32 (16,)."""
    return np.random.default_rng(1).standard_normal(16).astype(np.float32)
