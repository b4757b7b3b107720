"""Frequent words of a question's language, by Lucene's lists."""

import pytest

from pyserini_repbert.collection.bm25_search import Bm25DocumentSearcher
from pyserini_repbert.lucene import frequent_words
from pyserini_repbert.lucene.frequent_words import without_frequent_words


@pytest.mark.parametrize(
    ('language', 'question', 'words'),
    [
        ('en', 'why does my car have trouble in the cold', ['car', 'trouble', 'cold']),
        ('en', "what's up, and don't you know?", [',', 'know?']),
        ('en', 'what’s my e-mail on A4 paper', ['e-mail', 'A4', 'paper']),
        # Another language than the index's, where the words clearly say so.
        ('en', 'Wie kündige ich meinen Garten und bis wann', ['kündige', 'Garten', 'wann']),
        ('de', 'what did we decide about the bees', ['decide', 'bees']),
        ('en', 'Die Hard', ['Die', 'Hard']),
        # Names.
        ('en', 'the guideline of WHO', ['guideline', 'WHO']),
        ('en', 'The Who', ['The', 'Who']),
        # No list.
        ('ja', 'お茶の入れ方', ['お茶の入れ方']),
    ],
)
def test_frequent_words_are_left_out(language, question, words):
    assert without_frequent_words(question, language).split() == words


def test_the_words_are_kept_and_a_damaged_file_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(tmp_path))
    read = frequent_words.frequent_words.__wrapped__
    words = read()
    (kept,) = (tmp_path / 'java').glob('frequent-words-*.json')
    content = kept.read_bytes()
    monkeypatch.setattr(frequent_words, '_read_jar', lambda jar: pytest.fail('read again'))
    assert read() == words
    monkeypatch.undo()
    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(tmp_path))
    kept.write_bytes(content[:100])
    assert read() == words
    assert kept.read_bytes() == content
    assert 'which' in words['en']
    assert 'welche' in words['de']


def test_a_share_of_a_word_is_not_rounded():
    assert (1 / Bm25DocumentSearcher.word_share).is_integer()
