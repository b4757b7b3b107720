"""Late interaction: a reranker, and token vectors that collections store."""

from pyserini_repbert.extension import Extension, Representation

EXTENSION = Extension(
    name='token_vectors',
    package=__name__,
    systems=('system:SYSTEM',),
    representations=(
        Representation(
            name='tokens',
            option='multi_vector',
            ranking='multi',
            what='multi-vector model',
            files=('token_offsets', 'token_vectors', 'token_ids', 'token_scales'),
            work_name=f'{__name__}.stored:TOKENS',
            metavar='FOLDER',
            help='a MultiVectorEncoder (ColBERT), or what `train` made of the system '
            'multi-vector: its token vectors are stored beside dense ones, and order the best '
            '1,000 hits',
            rescores=True,
            has_vectors=True,
        ),
    ),
)
