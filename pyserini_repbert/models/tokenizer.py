"""From texts to token ids: truncation, special tokens and segment ids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pyserini_repbert.data.json_values import read_object
from pyserini_repbert.data.values import has_surrogates
from pyserini_repbert.errors import DamagedFileError, InputError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_TOKENISED_AT_ONCE = 256  # texts; bounds the memory of the tokenizer's encodings, which hold more than ids
_SPECIAL_TOKENS = ('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]')


class TokenSequence(NamedTuple):
    """One model input: token ids and segment ids, of equal length."""

    input_ids: list[int]
    token_type_ids: list[int]


class TokenChunk(NamedTuple):
    """A chunk of a text: the model input, and how many wordpieces follow [CLS], padding not counted."""

    sequence: TokenSequence
    n_pieces: int


def read_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer of a `tokenizer.json`. Raises DamagedFileError for a file that is not one."""
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises plain Exception for a file that it cannot parse
        raise DamagedFileError(f'{path} is not a tokenizer ({error}): fetch the checkpoint again') from error


class WordPieceTokenizer:
    """A BERT tokenizer.

    Raises DamagedFileError where the vocabulary lacks [CLS], [SEP] or [PAD].

    Attributes
    ----------
    backend : the tokenizer of the package `tokenizers`; it neither truncates nor pads
    cls, sep, pad : ids of the special tokens
    vocab_size : number of wordpieces
    n_cut : texts that were longer than their limit
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self.backend = tokenizer
        self.n_cut = 0
        self.cls, self.sep, self.pad = (self._id(token) for token in ('[CLS]', '[SEP]', '[PAD]'))
        self.vocab_size = tokenizer.get_vocab_size()

    def _id(self, token: str) -> int:
        number: int | None = self.backend.token_to_id(token)
        if number is None:
            raise DamagedFileError(f'the tokenizer has no {token}: a BERT vocabulary is expected')
        return number

    @classmethod
    def from_folder(cls, folder: Path) -> WordPieceTokenizer:
        """From `tokenizer.json`, or from `vocab.txt` (lower-casing unless tokenizer_config.json says otherwise).

        Raises InputError where the folder has neither, DamagedFileError for a file that is no BERT tokenizer.
        """
        whole, vocabulary = folder / 'tokenizer.json', folder / 'vocab.txt'
        if whole.is_file():
            return cls(read_tokenizer(whole))
        if not vocabulary.is_file():
            raise InputError(f'checkpoint {folder} has no tokenizer: expected tokenizer.json or vocab.txt')
        settings = folder / 'tokenizer_config.json'
        lowercase = read_object(settings).get('do_lower_case', True) if settings.is_file() else True
        if not isinstance(lowercase, bool):
            raise DamagedFileError(f'{settings}: do_lower_case is {lowercase!r}, true or false was expected')
        return cls.from_vocabulary(vocabulary, lowercase)

    @classmethod
    def from_vocabulary(cls, vocabulary: Path, lowercase: bool = True) -> WordPieceTokenizer:
        """From a BERT `vocab.txt`, one wordpiece a line. Raises DamagedFileError for a file that is not one."""
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

        try:
            pieces = vocabulary.read_text(encoding='utf-8').split('\n')
        except UnicodeDecodeError as error:
            raise DamagedFileError(f'{vocabulary} is not UTF-8 ({error}): fetch the checkpoint again') from error
        ids = {piece: number for number, piece in enumerate(pieces[:-1] if not pieces[-1] else pieces)}
        tokenizer = Tokenizer(models.WordPiece(ids, unk_token='[UNK]', max_input_chars_per_word=100))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.add_special_tokens([token for token in _SPECIAL_TOKENS if token in ids])
        return cls(tokenizer)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The wordpiece ids of each text, without special tokens, not truncated.

        Raises InputError for what is not a text, or has characters that UTF-8 cannot hold.
        """
        all_ids: list[list[int]] = []
        for start in range(0, len(texts), _TOKENISED_AT_ONCE):
            part = list(texts[start : start + _TOKENISED_AT_ONCE])
            for text in part:
                if not isinstance(text, str):  # tokenizers take a pair, too, and read both parts as one input
                    raise InputError(f'a text was expected, {ascii(text)[:60]} was given')
            try:
                all_ids += [encoding.ids for encoding in self.backend.encode_batch_fast(part, add_special_tokens=False)]
            except TypeError as error:
                bad = next(filter(has_surrogates, part), None)
                if bad is None:
                    raise
                raise InputError(f'{ascii(bad)[:60]} is no text that UTF-8 can hold: mend or remove it') from error
        return all_ids

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """The wordpieces with these ids; '[UNK]' for an id that the vocabulary lacks."""
        return [self.backend.id_to_token(number) or '[UNK]' for number in ids]

    def single(self, texts: Sequence[str], limit: int, token_type: int) -> list[TokenSequence]:
        """`[CLS] text [SEP]` for each text, cut to its first `limit` wordpieces (special tokens not counted)."""
        sequences = []
        for ids in self.ids(texts):
            self.n_cut += len(ids) > limit
            input_ids = [self.cls, *ids[:limit], self.sep]
            sequences.append(TokenSequence(input_ids, [token_type] * len(input_ids)))
        return sequences

    def chunks(self, ids: Sequence[int], size: int, token_type: int) -> list[TokenChunk]:
        """A text's ids as the fewest `[CLS] chunk [SEP]` of at most `size` wordpieces each; none for an empty text.

        Chunks are equally long: the last one is padded before its [SEP], as in the code of EPIC's authors.
        """
        number = -(-len(ids) // size)
        width = -(-len(ids) // number) if number else 0
        pieces = []
        for start in range(0, len(ids), max(width, 1)):
            piece = list(ids[start : start + width])
            filled = [self.cls, *piece, *[self.pad] * (width - len(piece)), self.sep]
            pieces.append(TokenChunk(TokenSequence(filled, [token_type] * len(filled)), len(piece)))
        return pieces
