"""RepBERT (Zhan et al., 2020): one vector for each passage; scores are inner products.

Use it as a first stage. `indexes.dense.searcher.DenseSearcher` searches an index of its vectors.
https://arxiv.org/abs/2006.15498
"""

from pyserini_repbert.systems.registry import System

SYSTEM = System(
    name='repbert',
    title='RepBERT',
    query_encoder='pyserini_repbert.systems.repbert.encoder:RepBertQueryEncoder',
    document_encoder='pyserini_repbert.systems.repbert.encoder:RepBertDocumentEncoder',
    task='pyserini_repbert.systems.repbert.training:RepBertTask',
    training_settings=('unit_layer', 'scale', 'gather'),
)
