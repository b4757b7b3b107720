"""Tokenised passages in ordinary spelling, by hand."""

import time

import pytest

from pyserini_repbert.data.spelling import mended

WRITTEN = [
    ("`` Time flies , '' he said .", '"Time flies," he said.'),
    (
        "The moon ( a satellite ) does n't shine ; it 's lit .",
        "The moon (a satellite) doesn't shine; it's lit.",
    ),
    ('the Anglo - Saxon king -LRB- 871 -RRB- , Alfred', 'the Anglo-Saxon king (871), Alfred'),
    ("the dogs ' owners .", "the dogs' owners."),
    ('born 1939 -- 1945 .', 'born 1939 – 1945.'),
    ('won the prize twice -- in 1956 and 1972 .', 'won the prize twice – in 1956 and 1972.'),
    (
        '( / beɪˈdʒɪŋ / ; Mandarin : ( listen ) ) , formerly',
        '(/ beɪˈdʒɪŋ /; Mandarin: (listen)), formerly',
    ),
]
AS_THEY_ARE = [
    'Nothing to mend (really): "quoted", 5% of 10 - 3.',
    '',
    '東京 é 😀',
    'rename ``x`` to ``y``',
    'git checkout -- a : b ? c',
    'set " `x` to" and call f( x )',
    'Rename ``x`` , then, from Paris - by train - to Rome.',
]


@pytest.mark.parametrize(('tokens', 'text'), WRITTEN)
def test_tokens_become_text(tokens, text):
    assert mended(tokens) == text
    assert mended(text) == text


@pytest.mark.parametrize('text', AS_THEY_ARE)
def test_written_text_stays(text):
    assert mended(text) == text


WORST = [
    'a' + ' ' * 100_000 + 'b',
    "a '" * 50_000,
    '`' * 100_000,
    '-LRB- ' * 20_000,
    'a' * 100_000 + " n't",
    '( ' * 50_000,
]


@pytest.mark.parametrize('text', WORST, ids=[text[:6] for text in WORST])
def test_mending_takes_time_in_proportion_to_the_length(text):
    start = time.perf_counter()
    mended(f'{text} .')
    assert time.perf_counter() - start < 2
