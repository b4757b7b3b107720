"""The frequent words of languages (stop words), by Lucene's lists in Anserini's jar.

Opening the jar takes .14 s of processor time. So the words are kept in the cache folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import zipfile
from collections import Counter
from collections.abc import Set as AbstractSet
from functools import cache
from pathlib import Path

from pyserini_repbert.data.word_forms import unite
from pyserini_repbert.files import CACHE_ERRORS, atomic_file, cache_folder
from pyserini_repbert.lucene.java_home import anserini_jar

_FOLDER = 'org/apache/lucene/analysis'
# In Anserini's jar. Polish has no list there.
_LISTS = {
    'ar': 'ar/stopwords.txt',
    'bn': 'bn/stopwords.txt',
    'da': 'snowball/danish_stop.txt',
    'de': 'snowball/german_stop.txt',
    'en': 'snowball/english_stop.txt',
    'es': 'snowball/spanish_stop.txt',
    'fa': 'fa/stopwords.txt',
    'fi': 'snowball/finnish_stop.txt',
    'fr': 'snowball/french_stop.txt',
    'hi': 'hi/stopwords.txt',
    'hu': 'snowball/hungarian_stop.txt',
    'id': 'id/stopwords.txt',
    'it': 'snowball/italian_stop.txt',
    'nl': 'snowball/dutch_stop.txt',
    'no': 'snowball/norwegian_stop.txt',
    'pt': 'snowball/portuguese_stop.txt',
    'ru': 'snowball/russian_stop.txt',
    'sv': 'snowball/swedish_stop.txt',
    'te': 'te/stopwords.txt',
    'tr': 'tr/stopwords.txt',
    'uk': 'uk/stopwords.txt',
    # Languages without an analyzer in Anserini's map, so that none of them is mistaken for another
    # one.
    'bg': 'bg/stopwords.txt',
    'ca': 'ca/stopwords.txt',
    'cs': 'cz/stopwords.txt',
    'el': 'el/stopwords.txt',
    'ro': 'ro/stopwords.txt',
    'sr': 'sr/stopwords.txt',
}
# Signs that no word has, but for apostrophes and hyphens within.
_SIGNS = r'\s!-/:-@\[-`{-~\u0964\u060c\u061b\u061f\u00a0-\u00bf\u2000-\u206f'
LETTER = rf'[^{_SIGNS}\d]'
_LETTER_OR_DIGIT = f'[^{_SIGNS}]'
# A word of a question: "don't" and "e-mail" are words.
_WORD = re.compile(rf"{_LETTER_OR_DIGIT}+(?:['-]{_LETTER_OR_DIGIT}+)*")
# A question is in another language than the documents if that one's list has so many more of its
# words. One more may be chance: 'die' is a frequent word of German.
_CLEARLY = 2


@cache
def frequent_words() -> dict[str, frozenset[str]]:
    """The frequent words of each language; of a list that another Anserini lacks, none."""
    jar = anserini_jar()
    status = jar.stat()
    state = repr((str(jar), status.st_size, status.st_mtime_ns, _LISTS))
    digest = hashlib.sha256(state.encode()).hexdigest()
    kept = cache_folder() / 'java' / f'frequent-words-{digest[:16]}.json'
    words_of = _read_kept(kept)
    if words_of is None:
        words_of = _read_jar(jar)
        # A cache that is read-only or full only costs time.
        with contextlib.suppress(*CACHE_ERRORS), atomic_file(kept) as stream:
            json.dump(words_of, stream, ensure_ascii=False)
    return {language: frozenset(words) for language, words in words_of.items()}


def _read_kept(path: Path) -> dict[str, list[str]] | None:
    """The words kept in a file; None for a missing or damaged one."""
    try:
        words_of = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return words_of if isinstance(words_of, dict) and words_of.keys() == _LISTS.keys() else None


def _read_jar(jar: Path) -> dict[str, list[str]]:
    words_of = {}
    with zipfile.ZipFile(jar) as opened:
        names = set(opened.namelist())
        for language, name in _LISTS.items():
            path = f'{_FOLDER}/{name}'
            text = opened.read(path).decode('utf-8') if path in names else ''
            words: list[str] = []
            for line in text.splitlines():
                # Comments follow | or #.
                words += re.split(r'[|#]', line)[0].split()
            words_of[language] = words
    return words_of


def without_frequent_words(question: str, language: str) -> str:
    """A question without the frequent words of its language.

    It is returned as it is if no other word is left. Words in capital letters are kept: 'WHO' is a
    name.

    Parameters
    ----------
    question : in any language
    language : of the index; a question is taken to be in it unless its words clearly say otherwise
    """
    united = unite(question, language)
    words = {match.group().lower() for match in _WORD.finditer(united) if not _is_name(match)}
    frequent = _of_question(words, language)
    if not words & frequent:
        return question

    def kept(match: re.Match[str]) -> str:
        if _is_name(match) or match.group().lower() not in frequent:
            return match.group()
        return ''

    rest = _WORD.sub(kept, united)
    return rest if _WORD.search(rest) else question


def _is_name(match: re.Match[str]) -> bool:
    """Whether a word is written in capital letters."""
    word = match.group()
    return len(word) > 1 and word.isupper()


def count_by_language(words: AbstractSet[str]) -> Counter[str]:
    """How many of these words, in small letters, are in each language's list."""
    return Counter({name: len(words & listed) for name, listed in frequent_words().items()})


def _of_question(words: AbstractSet[str], language: str) -> frozenset[str]:
    """The frequent words of the language that a question's words are in."""
    counts = count_by_language(words)
    ((best, n_best),) = counts.most_common(1)
    is_clear = n_best >= counts[language] + _CLEARLY
    return frequent_words().get(best if is_clear else language, frozenset())
