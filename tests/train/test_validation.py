"""How validation ranks the candidates that a model has scored."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from torch import nn

from pyserini_repbert.ranking import Query
from pyserini_repbert.rerank import Reranker
from pyserini_repbert.train import validation as module
from pyserini_repbert.train.recipe import System, Validation


@pytest.mark.parametrize(('system', 'order'), [(System.MONOBERT, 'zcab'), (System.REPBERT, 'zabc')])
def test_ties_are_broken_as_the_finished_model_would(system, order, tmp_path, monkeypatch):
    """A reranker keeps the first stage's order, a searcher goes by docid; so does the measure."""
    (tmp_path / 'corpus.tsv').write_text(''.join(f'{docid}\t{docid}\n' for docid in 'abcz'))
    (tmp_path / 'qrels').write_text('1 0 c 1\n')
    (tmp_path / 'run').write_text(''.join(f'1\t{docid}\t{rank}\n' for rank, docid in enumerate('cazb', 1)))
    paths = {'topics': 'none', 'qrels': tmp_path / 'qrels', 'run': tmp_path / 'run', 'corpus': tmp_path / 'corpus.tsv'}
    settings = Validation(**{name: str(path) for name, path in paths.items()}, depth=4)
    validator = module.Validator(settings, system, [Query('1', 'words')])
    monkeypatch.setattr(module, 'write_checkpoint', lambda *_: None)
    monkeypatch.setattr(module, 'open_checkpoint', lambda folder: folder)
    scores = dict(zip('abcz', (1.0, 1.0, 1.0, 2.0), strict=True))

    class Scored(Reranker):
        def __init__(self, *_):
            pass

        def score_lists(self, queries, lists, on_progress=None):
            return [np.array([scores[docid] for docid in ranking.docids]) for ranking in lists]

    class Encoder(Scored):
        def encode_batch(self, queries):
            return np.ones((len(queries), 1))

        def embed(self, texts):
            return np.array([[scores[text]] for text in texts])

    monkeypatch.setattr(module, '_RERANKERS', {system: Scored})
    monkeypatch.setattr(module, 'RepBertQueryEncoder', Encoder)
    monkeypatch.setattr(module, 'RepBertDocumentEncoder', Encoder)
    found = validator.measure(SimpleNamespace(ranker=nn.Linear(1, 1)), None, None)
    assert validator.ranked['1'].docids == tuple(order)
    assert found == pytest.approx(1 / (1 + order.index('c')))
