"""Late interaction as `train` makes it: a BERT, a projection without bias, vectors of length 1.

ColBERT section 3.2, with the settings of the `ranking` object in config.json. Queries are not
filled up with [MASK], and texts have no marker: the vectors of punctuation in passages are left
out. https://arxiv.org/abs/2004.12832
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from functools import partial

from pyserini_repbert.extensions.token_vectors.inputs import OpenedModel, TextReader
from pyserini_repbert.extensions.token_vectors.network import TokenBert
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint
from pyserini_repbert.models.checkpoints.loading import load_model
from pyserini_repbert.models.tokenizer import WordPieceTokenizer
from pyserini_repbert.systems.sentence_transformers.layers import DenseSizes

# Values of a token's vector (ColBERT section 4.1).
DIMENSION = 128
# Wordpieces, [CLS] and [SEP] not counted: the authors' code reads 32 and 180 tokens with these.
MAX_QUERY_TOKENS = 30
MAX_PASSAGE_TOKENS = 178
_SPECIAL_TOKENS = 2
_LINEAR = 'torch.nn.modules.linear.Identity'


def layers_of(size: int, dimension: int) -> Sequence[DenseSizes | None]:
    """The layers over the vector of each token, from `size` to `dimension` values."""
    return [DenseSizes(size, dimension, _LINEAR, bias=False), None]


def punctuation_ids(tokenizer: WordPieceTokenizer) -> list[int]:
    """The ids of the tokens that are not scored in passages (ColBERT section 3.2)."""
    ids = []
    for mark in string.punctuation:
        number = tokenizer.backend.token_to_id(mark)
        if number is not None:
            ids.append(int(number))
    return ids


def open_trained(checkpoint: Checkpoint) -> OpenedModel:
    """The model of a checkpoint. Raises the errors of `load_model`."""
    ranking = checkpoint.config['ranking']
    config = BertConfig.from_dict(checkpoint.config)
    layers = layers_of(config.hidden_size, int(ranking.get('dimension', DIMENSION)))
    tokenizer = checkpoint.tokenizer()
    query_length = int(ranking.get('max_query_length', MAX_QUERY_TOKENS))
    passage_length = int(ranking.get('max_doc_length', MAX_PASSAGE_TOKENS))
    longest = config.max_position_embeddings
    return OpenedModel(
        network=load_model(partial(TokenBert, config, layers), checkpoint),
        queries=TextReader(tokenizer, min(query_length + _SPECIAL_TOKENS, longest)),
        passages=TextReader(
            tokenizer,
            min(passage_length + _SPECIAL_TOKENS, longest),
            tuple(punctuation_ids(tokenizer)),
        ),
        max_length=longest,
    )
