"""Texts to model inputs, with the tokenizer of a sentence-transformers folder, of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenizers import normalizers, processors

from pyserini_repbert.data.identifiers import has_surrogates
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.checkpoints.folder import Checkpoint
from pyserini_repbert.models.pair_inputs import Built
from pyserini_repbert.models.sentence.settings import TextSettings
from pyserini_repbert.models.tokenizer import TokenSequence, WordPieceTokenizer, read_tokenizer


class TextTokens:
    """A tokenizer that adds its own special tokens.

    Attributes
    ----------
    pad : id of the padding token
    n_special : number of special tokens in the input of a single text

    Raises
    ------
    InputError
        where the folder has no tokenizer that can be read without transformers
    DamagedFileError
        where a tokenizer's file cannot be read
    """

    def __init__(self, checkpoint: Checkpoint, settings: TextSettings) -> None:
        whole = checkpoint.folder / 'tokenizer.json'
        if whole.is_file():
            self._tokenizer = read_tokenizer(whole)
        elif checkpoint.config.get('model_type', 'bert') == 'bert':
            self._tokenizer = _wordpieces(checkpoint)
        else:
            raise InputError(f'{checkpoint.folder} has no tokenizer.json: save the model with a newer transformers')
        if settings.lowercase:
            own = [self._tokenizer.normalizer] if self._tokenizer.normalizer is not None else []
            self._tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *own])
        self._segments = settings.segments
        self._tokenizer.no_padding()
        self.pad = int(checkpoint.config.get('pad_token_id') or 0)
        self.n_special = int(self._tokenizer.num_special_tokens_to_add(False))

    def texts(self, texts: Sequence[str], max_tokens: int) -> list[Built]:
        """The inputs of single texts, each cut to `max_tokens`, special tokens included.

        Raises InputError for what is not a text, or has characters that UTF-8 cannot hold.
        """
        return self._encoded(list(texts), texts, max_tokens)

    def pairs(self, queries: Sequence[str], texts: Sequence[str], max_tokens: int) -> list[Built]:
        """The inputs of pairs, cut to `max_tokens`: the longer of the two loses tokens first.

        `truncated` tells whether either was cut. Raises what `texts` raises.
        """
        return self._encoded(list(zip(queries, texts, strict=True)), [*queries, *texts], max_tokens)

    def _encoded(self, inputs: list[Any], texts: Sequence[str], max_tokens: int) -> list[Built]:
        self._tokenizer.enable_truncation(max_tokens, strategy='longest_first')
        try:
            encoded = self._tokenizer.encode_batch(inputs)
        except TypeError as error:
            bad = next((text for text in texts if not isinstance(text, str) or has_surrogates(text)), None)
            if bad is None:
                raise
            raise InputError(f'{ascii(bad)[:60]} is no text that UTF-8 can hold: mend or remove it') from error
        return [Built(TokenSequence(own.ids, self._types(own.type_ids)), bool(own.overflowing)) for own in encoded]

    def _types(self, types: list[int]) -> list[int]:
        return types if self._segments else [0] * len(types)


def _wordpieces(checkpoint: Checkpoint) -> Any:
    """The tokenizer of a BERT's vocab.txt, which adds [CLS] and [SEP]."""
    tokenizer = WordPieceTokenizer.from_folder(checkpoint.folder)
    tokenizer.backend.post_processor = processors.BertProcessing(('[SEP]', tokenizer.sep), ('[CLS]', tokenizer.cls))
    return tokenizer.backend
