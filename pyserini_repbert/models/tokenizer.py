"""From texts to token ids: truncation, special tokens and segment ids."""

from __future__ import annotations

import copy
import os
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.values import read_object
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.models.token_ids import (
    FEWEST,
    MOST_IDS,
    TokenIds,
    tokenised,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from pyserini_repbert.models.tokenizer_workers import TokenizerWorkers

MOST_WORKERS = 8  # 5,000 texts/s each: a GPU encodes some 36,000 passages/s with BERT-Base
_SPECIAL_TOKENS = ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')


def read_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer of a tokenizer.json. Raises DamagedFileError for another file."""
    from tokenizers import Tokenizer

    try:
        with panics_as_errors():
            tokenizer: Tokenizer = Tokenizer.from_file(str(path))
    # tokenizers raises plain Exception for a file that it cannot parse.
    except Exception as error:
        raise DamagedFileError(
            f'{path} is not a tokenizer ({error}): fetch the checkpoint again'
        ) from error
    return tokenizer


@contextmanager
def panics_as_errors() -> Generator[None]:
    """Turn a panic of Rust code, which is not an Exception, into a ValueError."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != 'PanicException':
            raise
        raise ValueError(str(error)) from error


class TokenSequence(NamedTuple):
    """One model input: token ids and segment ids, of equal length."""

    input_ids: list[int]
    token_type_ids: list[int]


@dataclass(frozen=True)
class ModelInputs:
    """n model inputs in flat arrays."""

    input_ids: NDArray[np.int32]  # (total,), input after input
    token_type_ids: NDArray[np.uint8]  # (total,)
    lengths: NDArray[np.int64]  # (n,), tokens of each input

    @classmethod
    def of(cls, sequences: ModelInputs | Sequence[TokenSequence]) -> ModelInputs:
        """These inputs; `ModelInputs` are returned unchanged."""
        if isinstance(sequences, ModelInputs):
            return sequences
        ids = np.fromiter(
            chain.from_iterable(sequence.input_ids for sequence in sequences), np.int32
        )
        types = np.fromiter(
            chain.from_iterable(sequence.token_type_ids for sequence in sequences), np.uint8
        )
        return cls(
            ids, types, np.array([len(sequence.input_ids) for sequence in sequences], np.int64)
        )

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each input begins, int64 (n,)."""
        return np.cumsum(self.lengths) - self.lengths

    def __len__(self) -> int:
        return len(self.lengths)


class TokenChunk(NamedTuple):
    """A chunk of a text: the model input, and how many wordpieces follow [CLS], padding not
    counted.
    """

    sequence: TokenSequence
    n_pieces: int


@dataclass(frozen=True)
class SpecialTokens:
    """The names of the special tokens of inputs: before, after and behind a text."""

    cls: str = '[CLS]'
    sep: str = '[SEP]'
    pad: str = '[PAD]'


class WordPieceTokenizer:
    """A BERT tokenizer.

    Parameters
    ----------
    tokenizer : of the package tokenizers; truncation and padding are switched off
    special : the names of its special tokens; RoBERTa has others than BERT
    prompt : put before each text

    Attributes
    ----------
    cls, sep, pad : the ids of its special tokens
    n_cut : texts that were longer than their limit
    seconds : that this process has spent on tokenising
    workers : processes that tokenise many texts; None: this process does
    number : of this tokenizer among those that share the workers

    Raises DamagedFileError for a tokenizer without these tokens.
    """

    def __init__(
        self, tokenizer: Tokenizer, special: SpecialTokens | None = None, prompt: str = ''
    ) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self.backend = tokenizer
        self.prompt = prompt
        self.n_cut = 0
        self.seconds = 0.0
        self.workers: TokenizerWorkers | None = None
        self.number = 0
        names = special or SpecialTokens()
        ids: dict[str, Any] = {
            token: tokenizer.token_to_id(token) for token in (names.cls, names.sep, names.pad)
        }
        if missing := [token for token, number in ids.items() if number is None]:
            raise DamagedFileError(
                f'the tokenizer has no {missing[0]}: a BERT vocabulary is expected'
            )
        self.cls: int = ids[names.cls]
        self.sep: int = ids[names.sep]
        self.pad: int = ids[names.pad]
        self.vocab_size = tokenizer.get_vocab_size()

    def with_prompt(self, prompt: str) -> WordPieceTokenizer:
        """The same tokenizer, which puts a prompt before each text; it counts for itself."""
        other = copy.copy(self)
        other.prompt = prompt
        other.n_cut = 0
        other.seconds = 0.0
        other.workers = None
        other.number = 0
        return other

    @classmethod
    def from_folder(cls, folder: Path) -> WordPieceTokenizer:
        """From `tokenizer.json`, or from `vocab.txt` (lower-casing unless tokenizer_config.json
        says otherwise).
        """
        whole = folder / 'tokenizer.json'
        vocabulary = folder / 'vocab.txt'
        if whole.is_file():
            return cls(read_tokenizer(whole))
        if not vocabulary.is_file():
            raise InputError(
                f'checkpoint {folder} has no tokenizer: expected tokenizer.json or vocab.txt'
            )
        settings = folder / 'tokenizer_config.json'
        lowercase = read_object(settings).get('do_lower_case', True) if settings.is_file() else True
        if not isinstance(lowercase, bool):
            raise DamagedFileError(
                f'{settings}: do_lower_case is {lowercase!r}, true or false was expected'
            )
        return cls.from_vocabulary(vocabulary, lowercase)

    @classmethod
    def from_vocabulary(cls, vocabulary: Path, lowercase: bool = True) -> WordPieceTokenizer:
        """From a BERT `vocab.txt`, one wordpiece a line."""
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

        try:
            pieces = vocabulary.read_text(encoding='utf-8').split('\n')
        except UnicodeDecodeError as error:
            raise DamagedFileError(
                f'{vocabulary} is not UTF-8 ({error}): fetch the checkpoint again'
            ) from error
        ids = {
            piece: number for number, piece in enumerate(pieces[:-1] if not pieces[-1] else pieces)
        }
        tokenizer = Tokenizer(
            models.WordPiece(ids, unk_token='[UNK]', max_input_chars_per_word=100)
        )
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.add_special_tokens([token for token in _SPECIAL_TOKENS if token in ids])
        return cls(tokenizer)

    def flat_ids(self, texts: Sequence[str] | TokenIds, most: int = MOST_IDS) -> TokenIds:
        """The wordpiece ids of each text, without special tokens; of a long text, at least the
        first `most`. Ids are returned unchanged.
        """
        if isinstance(texts, TokenIds):
            return texts
        texts = self.prompted(texts)
        if self.workers is not None and len(texts) >= FEWEST:
            wait = self.workers.begin(self.number, texts, most)
            return wait()
        start = time.perf_counter()
        ids = tokenised(self.backend, texts, most)
        self.seconds += time.perf_counter() - start
        return ids

    def prompted(self, texts: Sequence[str]) -> Sequence[str]:
        """Texts with the prompt before each."""
        if not self.prompt:
            return texts
        # Anything but text is refused later.
        return [f'{self.prompt}{text}' if isinstance(text, str) else text for text in texts]

    def ids(self, texts: Sequence[str] | TokenIds, most: int = MOST_IDS) -> list[list[int]]:
        """`flat_ids` as lists, one per text."""
        flat = self.flat_ids(texts, most)
        ids = flat.ids.tolist()
        return [ids[start:end] for start, end in pairwise([0, *np.cumsum(flat.lengths).tolist()])]

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """The wordpieces with these ids; '[UNK]' for an id that the vocabulary lacks."""
        return [self.backend.id_to_token(number) or '[UNK]' for number in ids]

    def single(self, texts: Sequence[str] | TokenIds, limit: int, token_type: int) -> ModelInputs:
        """`[CLS] text [SEP]` for each text, cut to its first `limit` wordpieces (special tokens
        not counted).
        """
        texts = self.flat_ids(texts, limit + 1)
        lengths = np.minimum(texts.lengths, limit)
        self.n_cut += int((texts.lengths > limit).sum())
        ends = np.cumsum(lengths + 2)
        first = ends - lengths - 2
        last = ends - 1
        ids = np.empty(ends[-1] if len(ends) else 0, np.int32)
        ids[first] = self.cls
        ids[last] = self.sep
        is_wordpiece = np.ones(len(ids), bool)
        is_wordpiece[first] = False
        is_wordpiece[last] = False
        starts = np.cumsum(texts.lengths) - texts.lengths
        offsets = np.arange(len(texts.ids)) - np.repeat(starts, texts.lengths)
        ids[is_wordpiece] = texts.ids[offsets < limit]
        return ModelInputs(ids, np.full(len(ids), token_type, np.uint8), lengths + 2)

    def chunks(self, ids: Sequence[int], size: int, token_type: int) -> list[TokenChunk]:
        """A text's ids as the fewest `[CLS] chunk [SEP]` of at most `size` wordpieces each; none
        for an empty text.

        Chunks are equally long: the last one is padded before its [SEP], as in the code of EPIC's
        authors.
        """
        number = -(-len(ids) // size)
        width = -(-len(ids) // number) if number else 0
        pieces = []
        for start in range(0, len(ids), max(width, 1)):
            piece = list(ids[start : start + width])
            filled = [self.cls, *piece, *[self.pad] * (width - len(piece)), self.sep]
            pieces.append(TokenChunk(TokenSequence(filled, [token_type] * len(filled)), len(piece)))
        return pieces


def share_workers(tokenizers: Sequence[WordPieceTokenizer], n: int) -> None:
    """Let `n` processes tokenise for all of these tokenizers; 0: each tokenises in the calling
    process.
    """
    if n and tokenizers:
        from pyserini_repbert.models.tokenizer_workers import TokenizerWorkers

        workers = TokenizerWorkers([tokenizer.backend for tokenizer in tokenizers], n)
        for number, tokenizer in enumerate(tokenizers):
            tokenizer.workers = workers
            tokenizer.number = number


def usual_workers(device: str) -> int:
    """How many processes tokenise by default: for a GPU one for each other core, as many as it
    can use; otherwise none.
    """
    import torch

    cores = len(os.sched_getaffinity(0)) if sys.platform == 'linux' else os.cpu_count() or 1
    on_gpu = device.startswith('cuda') or (device == 'auto' and torch.cuda.is_available())
    return min(cores - 1, MOST_WORKERS) if on_gpu else 0
