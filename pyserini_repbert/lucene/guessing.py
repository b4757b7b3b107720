"""Guess the language of texts, among the languages with an analyzer, by their frequent words.

Lucene's analyzers leave out frequent words of their languages. The language whose list has most of
a text's words is the text's. Chinese, Japanese, Korean and Thai are told by their characters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from pyserini_repbert.data.word_forms import unite
from pyserini_repbert.lucene.frequent_words import LETTER, count_by_language, frequent_words

# The least share of a text's words in its language's list, and how much greater it must be than any
# other list's.
_FEWEST = 0.12
_CLEARLY = 1.15
_FEWEST_WORDS = 20
# Of a question, so many of its distinct words have to be in its language's list.
_FEWEST_OF_QUESTION = 2
# Characters of languages whose words have no spaces between, or whose list is not in the jar.
_SCRIPTS = {
    'ja': re.compile(r'[\u3040-\u30ff]'),
    'ko': re.compile(r'[\uac00-\ud7af]'),
    'th': re.compile(r'[\u0e00-\u0e7f]'),
    'zh': re.compile(r'[\u3400-\u4dbf\u4e00-\u9fff]'),
}
_SCRIPT_SHARE = 0.15  # of the characters of a text that are not ASCII's signs
_WORD = re.compile(f'{LETTER}+')


def guess_language(texts: Iterable[str]) -> str | None:
    """The code of the language of most of these texts; None if that is not clear.

    It may be one without an analyzer.
    """
    words: Counter[str] = Counter()
    for text in texts:
        words.update(word for word in _WORD.findall(text.lower()) if len(word) > 1)
    n_words = words.total()
    script = _script_of(words)
    if script is not None or n_words < _FEWEST_WORDS:
        return script
    shares = {}
    for language, frequent in frequent_words().items():
        n_frequent = sum(count for word, count in words.items() if word in frequent)
        shares[language] = n_frequent / n_words
    best, second = sorted(shares, key=lambda language: -shares[language])[:2]
    if shares[best] < max(_FEWEST, _CLEARLY * shares[second]):
        return None
    return best


def question_language(question: str) -> str | None:
    """The code of a question's language; None if its words do not tell.

    It is the language whose list has most of its words: two at least, and more than any other list.
    """
    words = {word.lower() for word in _WORD.findall(unite(question))}
    script = _script_of(Counter(words))
    if script is not None:
        return script
    counts = count_by_language(words)
    (best, n_best), (_, n_second) = counts.most_common(2)
    return best if n_best >= _FEWEST_OF_QUESTION and n_best > n_second else None


def are_different(language: str, other: str) -> bool:
    """Whether two codes of languages, such as 'de' or 'en-GB', are of different ones.

    What is not the code of a language that can be guessed differs from none.
    """
    codes = {code.partition('-')[0] for code in (language, other)}
    return len(codes) == 2 and codes <= _SCRIPTS.keys() | frequent_words().keys()


def _script_of(words: Mapping[str, int]) -> str | None:
    """The language that the characters of words tell."""
    n_characters = sum(len(word) * count for word, count in words.items())
    for language, pattern in _SCRIPTS.items():
        n_own = sum(len(pattern.findall(word)) * count for word, count in words.items())
        if n_characters and n_own >= _SCRIPT_SHARE * n_characters:
            return language
    return None
