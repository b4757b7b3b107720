"""Long texts in pieces that have the same wordpieces, so that the first ones cost little memory.

BERT's tokenizer reads words apart: white space, punctuation and Chinese characters end a word, and
a word of more than 100 characters is [UNK], whatever its characters. The tokenizer decides which
characters end a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_BLOCK = 65_536  # characters that are looked at together
_VANISHING = 0
_BORDER = -1


class TextCutter:
    """Cuts texts for one tokenizer; `of` says for which it can."""

    def __init__(self, backend: Tokenizer) -> None:
        self._normalizer = backend.normalizer
        self._pre_tokenizer = backend.pre_tokenizer
        self._special = [token.content for token in backend.get_added_tokens_decoder().values()]
        # a special token may lead the word
        self._unknown_from: int = backend.model.max_input_chars_per_word + max(
            map(len, self._special), default=0
        )
        self._inside = set(''.join(content[1:] for content in self._special))
        self._kinds: dict[str, int] = {}

    @classmethod
    def of(cls, backend: Tokenizer) -> Self | None:
        """A cutter for a BERT tokenizer; None for another, whose words may depend on more."""
        parts = (backend.normalizer, backend.pre_tokenizer, backend.model)
        names = [type(part).__name__ for part in parts]
        if names != ['BertNormalizer', 'BertPreTokenizer', 'WordPiece']:
            return None
        tokens = backend.get_added_tokens_decoder().values()
        if any(token.normalized or token.single_word or not token.content for token in tokens):
            return None
        cutter = cls(backend)
        if any(cutter._kind(content[0]) != _BORDER for content in cutter._special):
            return None
        return cutter

    def pieces(self, text: str, size: int) -> Iterator[str]:
        """Pieces of at most about `size` characters, whose ids, joined, are the text's.

        They are cut where a word begins. A word longer than `size` is a piece: either whole, or the
        beginning that already makes it [UNK].
        """
        start = 0
        while len(text) - start > size:
            cut = self._last_border(text, start + 1, start + size)
            if cut is None:
                cut = self._next_border(text, start + size + 1)
                yield self._shorten(text, start, cut)
            else:
                yield text[start:cut]
            start = cut
        yield text[start:]

    def _last_border(self, text: str, start: int, end: int) -> int | None:
        """The last position from `start` to `end` where a word begins."""
        for position in range(end, start - 1, -1):
            if self._is_border(text, position):
                return position
        return None

    def _next_border(self, text: str, start: int) -> int:
        """The first position, from `start` on, at which a word begins; the end if there is none."""
        for first in range(start, len(text), _BLOCK):
            block = text[first : first + _BLOCK]
            if all(self._kind(character) != _BORDER for character in set(block)):
                continue
            for position in range(first, first + len(block)):
                if self._is_border(text, position):
                    return position
        return len(text)

    def _is_border(self, text: str, position: int) -> bool:
        """Whether a word begins at a position, which is not within a special token."""
        character = text[position]
        if self._kind(character) != _BORDER:
            return False
        if character not in self._inside:
            return True
        for content in self._special:
            reach = len(content) - 1
            if content in text[max(0, position - reach) : position + reach]:
                return False
        return True

    def _shorten(self, text: str, start: int, end: int) -> str:
        """The word from `start` to `end`, with one of adjacent characters that vanish; of a word
        that is too long for the vocabulary, the beginning that shows it.
        """
        kept = [text[start]]
        length = 0
        is_gap = False
        for first in range(start + 1, end, _BLOCK):
            block = text[first : min(end, first + _BLOCK)]
            if all(self._kind(character) == _VANISHING for character in set(block)):
                block = block[0]
            for character in block:
                kind = self._kind(character)
                if kind != _VANISHING or not is_gap:
                    kept.append(character)
                is_gap = kind == _VANISHING
                length += max(kind, 0)
                if length > self._unknown_from:
                    return ''.join(kept)
        return ''.join(kept)

    def _kind(self, character: str) -> int:
        """`_BORDER` for a character that begins a word and ends the one before, otherwise how many
        characters of a word it becomes: none, if the tokenizer removes it.
        """
        kind = self._kinds.get(character)
        if kind is None:
            normalized = self._normalizer.normalize_str(character)
            kind = len(normalized)
            around = f'x{normalized[:1]}x'
            if normalized and len(self._pre_tokenizer.pre_tokenize_str(around)) > 1:
                kind = _BORDER
            self._kinds[character] = kind
        return kind
