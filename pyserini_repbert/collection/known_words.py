"""Whether an encoder knows the words of documents.

A tokenizer has whole words of its languages, and cuts words of other languages into letters, short
pieces or unknown ones. Of the distinct words of an English text, all-MiniLM-L6-v2's has nine in ten
whole, of a German one three in ten, of an Arabic one none (`docs/guides/languages.md` has the
figures). A vocabulary for many languages cuts words of all of them: there, only unknown characters
and single letters tell.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.origins import readable_docid

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# A text is not understood if a smaller share of its distinct words is known. Chosen on English,
# German, Spanish, Russian, Arabic and Chinese; tried on 18 other languages, English and code.
KNOWN_SHARE = 0.6
# Distinct words by which a document, or all of them, are judged.
FEWEST_WORDS = 20
# A vocabulary of so many pieces is for many languages: BERT's and RoBERTa's have 30,000 and 50,000,
# multilingual BERT's 120,000, XLM-R's 250,000.
_MANY_PIECES = 100_000
# A vocabulary of fewer pieces has no whole words in any language, so it tells nothing.
_FEWEST_PIECES = 5_000
_LETTERS_OF_PIECE = 1.5  # of many languages: a word of fewer letters a piece is spelt out
_UNSPACED_LETTERS = 1.2  # the same, where words have no spaces between
_UNSPACED_WORD = 3  # letters: Chinese words have two, Thai ones four or five
_CHARACTERS = 20_000  # of a document that are looked at
_MOST_REMEMBERED = 200_000  # words
_MOST_NAMED = 3  # documents
# What is not a letter: ASCII's and Latin-1's signs, punctuation, symbols, emoji.
_NO_LETTERS = (
    r'\x00-\x40\x5b-\x60\x7b-\xbf\xd7\xf7\u2000-\u2bff\u3000-\u303f\ue000-\uf8ff\uff00-\uff20'
    r'\U0001f000-\U0001faff'
)
# A name such as `readFile` is two words.
_WORD = re.compile(f'[A-Z]+(?![a-z])|[A-Z]?[^A-Z{_NO_LETTERS}]+')
_HAN = r'\u3400-\u4dbf\u4e00-\u9fff'
# Thai, Lao, Burmese, Khmer, kana, and Chinese characters.
_UNSPACED = re.compile(rf'[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff{_HAN}]')
_HAN_LETTER = re.compile(f'[{_HAN}]')
# The piece that stands where a word begins, in vocabularies of SentencePiece.
_WORD_BEGINS = '▁'


@dataclass(frozen=True)
class WordCounts:
    """How many distinct words a text has, and how many of them an encoder knows.

    Attributes
    ----------
    known, words : where words have no spaces between, the text between signs counts as one
    further : words that such parts have besides the first, by their length
    """

    known: int
    words: int
    further: int = 0

    @property
    def are_enough(self) -> bool:
        """Whether so many words are enough to judge a text."""
        return self.words + self.further >= FEWEST_WORDS

    @property
    def are_known(self) -> bool:
        """Whether so many are known that the encoder understands the text."""
        return self.known >= KNOWN_SHARE * self.words

    def __add__(self, other: WordCounts) -> WordCounts:
        return WordCounts(
            self.known + other.known, self.words + other.words, self.further + other.further
        )


class KnownWords:
    """Says which words a tokenizer knows.

    Parameters
    ----------
    tokenizer : of the package tokenizers, without truncation and padding

    Attributes
    ----------
    tells : whether its vocabulary is large enough to have whole words
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        n_pieces = tokenizer.get_vocab_size()
        self.tells = n_pieces >= _FEWEST_PIECES
        self._is_for_many = n_pieces >= _MANY_PIECES
        self._unknown = {tokenizer.token_to_id(token) for token in ('[UNK]', '<unk>')} - {None}
        self._word_begins = tokenizer.token_to_id(_WORD_BEGINS)
        self._is_known: dict[str, bool] = {}

    def count(self, text: str) -> WordCounts:
        """The distinct words of a text that have more than one letter, and how many of them are
        known.
        """
        words = {word for word in _WORD.findall(text[:_CHARACTERS]) if len(word) > 1}
        new = [word for word in words if word not in self._is_known]
        if len(self._is_known) + len(new) > _MOST_REMEMBERED:
            self._is_known.clear()
            new = list(words)
        encodings = self._tokenizer.encode_batch(new, add_special_tokens=False)
        for word, encoding in zip(new, encodings, strict=True):
            self._is_known[word] = self._knows(word, encoding.ids)
        further = sum(len(word) // _UNSPACED_WORD for word in words if _UNSPACED.match(word))
        return WordCounts(sum(self._is_known[word] for word in words), len(words), further)

    def _knows(self, word: str, ids: list[int]) -> bool:
        """Whether a word is known that is cut into these pieces."""
        if not self._unknown.isdisjoint(ids):
            return False
        if len(ids) == 1:
            return True
        if _UNSPACED.match(word):
            n_pieces = len(ids) - (ids[:1] == [self._word_begins])
            # A vocabulary may have Chinese characters alone.
            n_han = len(_HAN_LETTER.findall(word))
            return n_pieces <= n_han + (len(word) - n_han) / _UNSPACED_LETTERS
        return self._is_for_many and _LETTERS_OF_PIECE * len(ids) <= len(word)


@dataclass(frozen=True)
class UnknownDocuments:
    """What an encoder does not know of the documents that a command wrote.

    Attributes
    ----------
    encoder : its name
    documents : how many documents of `FEWEST_WORDS` it does not know
    of : how many there were of so many words
    first : the docids of the first of them
    words : of all documents
    """

    encoder: str
    documents: int
    of: int
    first: tuple[str, ...]
    words: WordCounts

    @property
    def are_most(self) -> bool:
        """Whether the encoder does not know the language of the documents."""
        if not self.words.are_enough:
            return False
        return not self.words.are_known or 2 * self.documents > self.of

    def __bool__(self) -> bool:
        return self.documents > 0 or self.are_most

    def __str__(self) -> str:
        """'2 of the 40 documents that have 20 words or more (diary.md, …) are in words that encoder
        'minilm' does not know'
        """
        if self.are_most:
            return f"encoder '{self.encoder}' does not know the words of the documents"
        named = ', '.join(readable_docid(docid) for docid in self.first)
        if self.documents > len(self.first):
            named += ', …'
        are = 'is' if self.documents == 1 else 'are'
        return (
            f'{self.documents} of the {self.of} documents that have {FEWEST_WORDS} words or more '
            f"({named}) {are} in words that encoder '{self.encoder}' does not know"
        )


class WordReport:
    """Collects what an encoder does not know of documents.

    Parameters
    ----------
    encoder : its name
    tokenizer : as in `KnownWords`
    """

    def __init__(self, encoder: str, tokenizer: Tokenizer) -> None:
        self._encoder = encoder
        self._known_words = KnownWords(tokenizer)
        self._words = WordCounts(0, 0)
        self._n_judged = 0
        self._n_unknown = 0
        self._first: list[str] = []

    def add(self, document: Document) -> None:
        """Look at a document."""
        if not self._known_words.tells:
            return
        counts = self._known_words.count(f'{document.title} {document.text}')
        self._words += counts
        if not counts.are_enough:
            return
        self._n_judged += 1
        if counts.are_known:
            return
        self._n_unknown += 1
        if len(self._first) < _MOST_NAMED:
            self._first.append(document.docid)

    @property
    def unknown(self) -> UnknownDocuments:
        """The counts so far."""
        return UnknownDocuments(
            encoder=self._encoder,
            documents=self._n_unknown,
            of=self._n_judged,
            first=tuple(self._first),
            words=self._words,
        )
