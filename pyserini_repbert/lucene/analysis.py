"""Text analysed by Lucene's analyzer of a language, and the words of a query in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from pyserini_repbert.data.snippets import WordMatch, add_match
from pyserini_repbert.data.united_texts import unite_with_places
from pyserini_repbert.data.word_forms import unite
from pyserini_repbert.lucene.jvm import calling, java_calls, java_class, quiet_java
from pyserini_repbert.lucene.languages import ENGLISH, check_language

_ATTRIBUTES = 'org.apache.lucene.analysis.tokenattributes.'
# The greatest character that is one unit in Java.
_ONE_UNIT = 0xFFFF


@dataclass(frozen=True)
class Token:
    """A term that an analyzer makes, and the characters of the text that it comes from."""

    term: str
    start: int
    end: int


class Analyzer:
    """Lucene's analyzer of a language, as Anserini chooses it. Threads may share it."""

    def __init__(self, language: str) -> None:
        check_language(language)
        self.language = language
        with java_calls():
            quiet_java()
            if language == ENGLISH:
                english = java_class('io.anserini.analysis.DefaultEnglishAnalyzer')
                self._java = english.newDefaultInstance()
            else:
                known = java_class('io.anserini.analysis.AnalyzerMap')
                self._java = known.getLanguageSpecificAnalyzer(language)

    def tokens(self, text: str) -> list[Token]:
        """The terms of a text in order; several may come from the same word."""
        with java_calls():
            stream = calling(self._java.tokenStream, 'contents', text)
            try:
                found = _read_tokens(stream)
            finally:
                stream.close()
        if not text or ord(max(text)) <= _ONE_UNIT:
            return found
        characters = _characters_of_units(text)
        return [
            Token(token.term, characters[token.start], characters[token.end]) for token in found
        ]

    def find_words(self, query: str, text: str) -> list[WordMatch]:
        """The words of a text whose terms a query has, in order; those that overlap are one.

        They match in any written form (see `unite`).
        """
        wanted = {token.term for token in self.tokens(unite(query, self.language))}
        if not wanted:
            return []
        united = unite_with_places(text, self.language)
        matches: list[WordMatch] = []
        for token in self.tokens(united.form):
            if token.term not in wanted:
                continue
            start, end = united.written_span(token.start, token.end)
            add_match(matches, WordMatch(start, end, token.term))
        return matches


def _read_tokens(stream: Any) -> list[Token]:
    import jnius

    def attribute(name: str) -> Any:
        kind = jnius.find_javaclass(f'{_ATTRIBUTES}{name}')
        return jnius.cast(f'{_ATTRIBUTES}{name}', stream.addAttribute(kind))

    stream.reset()
    term = attribute('CharTermAttribute')
    offset = attribute('OffsetAttribute')
    tokens = []
    while stream.incrementToken():
        tokens.append(Token(term.toString(), offset.startOffset(), offset.endOffset()))
    stream.end()
    return tokens


def _characters_of_units(text: str) -> list[int]:
    """The character's number for each of Java's 16-bit units of a text, and the end."""
    characters = []
    for number, character in enumerate(text):
        characters += [number] * (2 if ord(character) > _ONE_UNIT else 1)
    return [*characters, len(text)]


@cache
def analyzer_of(language: str) -> Analyzer:
    """The analyzer of a language, made once."""
    return Analyzer(language)


def analyzed_languages() -> tuple[str, ...]:
    """The languages for which the installed Anserini has an analyzer, in alphabetical order."""
    with java_calls():
        quiet_java()
        codes = java_class('io.anserini.analysis.AnalyzerMap').analyzerMap.keySet().toArray()
    return tuple(sorted({ENGLISH, *(str(code) for code in codes)}))
