"""Models of sentence-transformers: bi-encoders and cross-encoders."""

from pyserini_repbert.data.values import integer
from pyserini_repbert.systems.registry import StageOption, System

SYSTEM = System(
    name='sentence-transformers',
    title='sentence-transformers',
    query_encoder='pyserini_repbert.systems.sentence_transformers.encoder:SentenceQueryEncoder',
    document_encoder=(
        'pyserini_repbert.systems.sentence_transformers.encoder:SentenceDocumentEncoder'
    ),
    reranker=(
        'pyserini_repbert.systems.sentence_transformers.reranker:SentenceCrossEncoderReranker'
    ),
    stage_options=(
        StageOption('max-length=N', 'max_length', integer),
        StageOption('label=NAME', 'label', str),
    ),
)
