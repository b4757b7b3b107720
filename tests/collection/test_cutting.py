"""Texts cut into passages: nothing is lost, nothing is cut again, ends are where sentences end."""

import pytest
from hypothesis import given, strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from pyserini_repbert.collection.passages import PassageCutter
from pyserini_repbert.errors import InputError

VOCABULARY = ['[UNK]', 'a', 'b', 'cat', '##s', '##t', 'dog', '.', '#', 'é', 'e']


def tokenizer():
    ids = {piece: number for number, piece in enumerate(VOCABULARY)}
    made = Tokenizer(models.WordPiece(ids, unk_token='[UNK]', max_input_chars_per_word=100))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return made


def cut(text, title='', capacity=16, tokens=10, overlap=3):
    cutter = PassageCutter(tokenizer(), capacity, tokens, overlap)
    return cutter.cut([title], [text])[0]


def parts(text, **settings):
    return [text[passage.start : passage.end] for passage in cut(text, **settings)]


def test_a_short_text_is_one_passage():
    assert parts('cat dog. cat') == ['cat dog. cat']
    assert parts('  cat dog \n') == ['cat dog']
    assert parts(' '.join(['cat'] * 12)) == [' '.join(['cat'] * 12)]


def test_a_passage_ends_at_a_paragraph_else_a_sentence_else_a_word():
    paragraph = 'cat cat cat cat cat cat. dog'
    assert parts(f'{paragraph}\n\n{paragraph} dog. cat', overlap=0) == [
        paragraph,
        f'{paragraph} dog. cat',
    ]
    sentence = 'cat cat cat cat cat cat.'
    assert parts(f'{sentence} dog {sentence}', overlap=0) == [sentence, f'dog {sentence}']
    words = ' '.join(['cat'] * 25)
    assert parts(words, overlap=0) == [' '.join(['cat'] * n) for n in (10, 10, 5)]


def test_the_next_passage_repeats_the_last_wordpieces():
    words = [f'{"cat" if number % 2 else "dog"}' for number in range(17)]
    first, second = cut(' '.join(words))
    assert first.end == len(' '.join(words[:10]))
    assert second.start == len(' '.join(words[:7])) + 1
    # a sentence that begins within the overlap begins the passage
    text = 'cat cat cat cat cat cat. dog. cat cat cat cat cat cat cat cat'
    assert parts(text, tokens=11)[1] == 'dog. cat cat cat cat cat cat cat cat'


def test_a_heading_begins_a_passage():
    text = 'cat cat cat cat cat cat\n# dog\ncat. cat cat cat cat cat cat'
    assert parts(text, overlap=0)[1].startswith('# dog')


def test_a_title_goes_in_front_and_is_shortened():
    assert [passage.input for passage in cut('cat', title='dog')] == ['dog cat']
    assert [passage.input for passage in cut('', title='dog')] == ['dog']
    assert cut('', title='') == []
    long_title = ' '.join(['dog'] * 20)
    passages = cut(' '.join(['cat'] * 30), title=long_title)
    assert all(passage.input.startswith('dog dog dog dog cat') for passage in passages)


def test_lengths_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match='an overlap of at most half of a passage, 5'):
        PassageCutter(tokenizer(), 16, 10, 6)
    with pytest.raises(InputError, match='at least 1'):
        PassageCutter(tokenizer(), 16, 0, 0)


def test_long_texts_are_tokenised_in_parts(monkeypatch):
    text = ' '.join(['cats dog.'] * 100)
    whole = cut(text)
    monkeypatch.setattr('pyserini_repbert.collection.passages._TOKENISED_AT_ONCE', 50)
    assert cut(text) == whole


PARTS = [*'ab.# \n\t-1é界。', 'cats', 'dog. ', '\n\n', 'e\u0301', '[UNK]', 'x' * 101]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=200).map(''.join)


@given(TEXTS, st.text('ab .', max_size=30), st.integers(4, 20), st.integers(1, 12), st.data())
def test_every_word_is_in_a_passage_and_no_passage_is_cut_again(
    text, title, capacity, tokens, data
):
    overlap = data.draw(st.integers(0, tokens // 2))
    passages = cut(text, title, capacity, tokens, overlap)
    encoder = tokenizer()
    covered = 0
    for number, passage in enumerate(passages):
        part = text[passage.start : passage.end]
        assert part == part.strip()
        assert passage.input.endswith(part)
        assert len(encoder.encode(passage.input, add_special_tokens=False).ids) <= capacity
        # only what no wordpiece has lies between two passages
        gap = text[covered : passage.start]
        assert not encoder.encode(gap, add_special_tokens=False).ids
        assert number == 0 or passage.start > passages[number - 1].start
        covered = max(covered, passage.end)
    if passages:
        assert not encoder.encode(text[covered:], add_special_tokens=False).ids
