"""Options of reranking stages that several systems have."""

from pyserini_repbert.data.values import integer
from pyserini_repbert.systems.registry import StageOption

# Of `rerank.term_weights.TermWeightsReranker`.
TERM_WEIGHTS_OPTIONS = (
    StageOption('index=FOLDER', 'index', str),
    StageOption('missing=encode|refuse', 'missing', str),
    StageOption('prune=N', 'prune', integer),
    StageOption('max-length=N', 'max_length', integer),
)
