"""RepBERT's name, lengths and token types. Nothing here needs PyTorch."""

NAME = 'repbert'
# Wordpieces, [CLS] and [SEP] not counted (RepBERT section 4.3.1).
MAX_QUERY_TOKENS = 20
MAX_PASSAGE_TOKENS = 256
# Token types (RepBERT footnote 2).
QUERY_TYPE = 0
PASSAGE_TYPE = 1
