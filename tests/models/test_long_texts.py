"""The pieces of a long text have the ids of the whole, which the tokenizer itself gives."""

import resource
import subprocess
import sys

import pytest
from folders import HANGS
from hypothesis import HealthCheck, example, given, settings, strategies as st
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

from pyserini_repbert.models.long_texts import TextCutter
from pyserini_repbert.models.tokenizer import WordPieceTokenizer

SPECIAL = ['[UNK]', '[CLS]', '[SEP]', '[MASK]', '[PAD]']
LETTERS = ['a', 'b', '##a', '##b', '##c', 'é', '=', '-', '[', ']', 'sep', '貓', '—', '。', 'か']
PARTS = [
    *('a', 'b', 'ab', 'B', 'É', 'e\u0301', '\u0301', '\u0327', 'İ', 'ẞ', 'ﬁ', 'か', 'ก', '😀'),
    *(' ', '\n', '\t', '\xa0', '\u3000', '\u2028', '\x85', '\x00', '\u200b', '\ufffd', '\xad'),
    *(',', '-', '—', '。', '·', '\u037e', '≠', '_', '貓', '𠀀', '[', ']', '[SEP]', '[sep]', '[MA'),
    *('SK]', '[S\u0301EP]', '[UNK]', 'a' * 101, 'a' * 100, '\x00' * 30),
]
TEXTS = st.lists(st.sampled_from(PARTS) | st.characters(exclude_categories=['Cs']), max_size=40)


def made(**settings):
    """A tokenizer of few wordpieces."""
    vocabulary = {piece: number for number, piece in enumerate([*SPECIAL, *LETTERS])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token='[UNK]'))
    tokenizer.normalizer = normalizers.BertNormalizer(**settings)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(SPECIAL)
    return tokenizer


TOKENIZERS = [
    made(),
    made(lowercase=False),
    made(handle_chinese_chars=False),
    made(clean_text=False, strip_accents=False),
]


def ids(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize('tokenizer', TOKENIZERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(parts=TEXTS, size=st.integers(1, 150))
@example(['貓'] * 20, 3)
@example(['x'] + ['\x00'] * 300 + ['[SEP]'], 4)
@example(['[SEP]', 'a' * 150], 10)
@example(['[SEP]', 'a' * 100], 10)
@example(['a\u0301'] * 150, 7)
@example(['[S', '\u0301' * 20, 'EP]'], 3)
@example([']'] * 30, 4)
def test_pieces_have_the_ids_of_the_whole(tokenizer, parts, size):
    text = ''.join(parts)
    cut = []
    for piece in TextCutter.of(tokenizer).pieces(text, size):
        cut += ids(tokenizer, piece)
    assert cut == ids(tokenizer, text)


def test_what_is_longer_than_a_piece():
    cutter = TextCutter.of(made())
    assert list(cutter.pieces('ab, a', 3)) == ['ab,', ' a']
    assert list(cutter.pieces('a' * 500 + ' b', 10)) == ['a' * 108, ' b']
    assert list(cutter.pieces('a' + '\x00' * 500 + 'b a', 10)) == ['a\x00b', ' a']
    assert list(cutter.pieces('a[SEP]a', 3)) == ['a', '[SEP]a', '']


def test_other_tokenizers_are_not_cut():
    assert TextCutter.of(Tokenizer(models.WordPiece({'[UNK]': 0}, unk_token='[UNK]'))) is None
    named = made()
    named.add_tokens([AddedToken('new york', normalized=True)])
    assert TextCutter.of(named) is None
    lettered = made()
    lettered.add_special_tokens(['sep'])
    assert TextCutter.of(lettered) is None


@pytest.mark.parametrize('text', ["'a'", "'] '", "'—'", "'cat\\xa0'", "'\\x01'", "'か'"])
def test_the_memory_of_a_text_of_any_characters_is_flat(text, tiny_checkpoint):
    """Five million characters take less than 250 MB; whole, these take 0.2 to 2.5 GB."""
    code = f"""if True:
        import resource
        from pathlib import Path
        from pyserini_repbert.models.tokenizer import WordPieceTokenizer
        tokenizer = WordPieceTokenizer.from_folder(Path({str(tiny_checkpoint())!r}))
        text = {text} * (5_000_000 // len({text}))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        tokenizer.single([text], 256, 0)
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
    """
    ended = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, timeout=HANGS, check=True
    )
    assert int(ended.stdout) < 250


def test_the_memory_of_many_long_texts_is_flat(tiny_checkpoint):
    tokenizer = WordPieceTokenizer.from_folder(tiny_checkpoint())
    tokenizer.ids(['cat sat ' * 10_000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tokenizer.ids(['cat sat ' * 10_000] * 200)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024
