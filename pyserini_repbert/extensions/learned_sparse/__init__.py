"""Learned sparse models in collections: term weights of each passage, instead of BM25.

The models are of `systems/epic` and `systems/sparse_encoder`; bundles of their weights are of
`indexes/term_weights`.
"""

from pyserini_repbert.extension import Extension, Representation

EXTENSION = Extension(
    name='learned_sparse',
    package=__name__,
    representations=(
        Representation(
            name='terms',
            option='sparse',
            ranking='sparse',
            what='sparse model',
            files=('offsets', 'terms', 'weights'),
            work_name=f'{__name__}.term_rows:TERMS',
            metavar='MODEL',
            help='a SparseEncoder folder or an EPIC checkpoint ranks instead of BM25',
        ),
    ),
)
