"""Words of a query marked in a text, and a long text cut around them, by hand."""

import pytest
from hypothesis import given, strategies

from pyserini_repbert.data.snippets import (
    TextPart,
    cut_around,
    cut_lines_around,
    find_words,
    mark_words,
)

# Twenty words of four letters, 99 characters, with what a test puts in their middle.
BEFORE = ' '.join(['aaaa'] * 10)
AFTER = ' '.join(['zzzz'] * 10)


def test_words_of_the_query_are_marked():
    assert mark_words('the CATS of a story', 'Stories of the cat, category') == [
        TextPart('Stories', match=True),
        TextPart(' of the ', match=False),
        TextPart('cat', match=True),
        TextPart(', category', match=False),
    ]


def test_words_side_by_side_have_the_space_between_them():
    assert mark_words('cat dog', 'cat dog') == [
        TextPart('cat', match=True),
        TextPart(' ', match=False),
        TextPart('dog', match=True),
    ]


def test_without_a_query_or_a_text_there_is_one_part():
    assert mark_words('', 'text') == [TextPart('text', match=False)]
    assert mark_words('cat', '') == [TextPart('', match=False)]


def test_the_parts_joined_are_the_text():
    hostile = '<b>cat</b> &amp; "cat"'
    assert ''.join(part.text for part in mark_words('cat b', hostile)) == hostile


@pytest.mark.parametrize(
    ('query', 'text', 'length', 'shown'),
    [
        # The match is in the middle.
        ('snails', f'{BEFORE} snail {AFTER}', 34, '… aaaa aaaa snail zzzz zzzz …'),
        # A text that is short enough stays.
        ('cat', 'the cat sat', 11, 'the cat sat'),
        ('cat', '', 0, ''),
        # Without a word of the query, it is the beginning.
        ('snail', 'one two three four', 14, 'one two …'),
        ('the of', 'one two three four', 14, 'one two …'),
        # A match at an end leaves no ellipsis there.
        ('snail', f'snail {AFTER}', 24, 'snail zzzz zzzz zzzz …'),
        ('snail', f'{BEFORE} snail', 24, '… aaaa aaaa aaaa snail'),
    ],
)
def test_a_text_is_cut_around_the_match(query, text, length, shown):
    assert cut_around(query, text, length) == shown


@pytest.mark.parametrize(
    ('text', 'shown'),
    [
        # Two different words beat three times the same.
        (f'cat cat cat {BEFORE} cat dog', '… aaaa aaaa aaaa cat dog'),
        # Of the same words, the more of them.
        (f'cat dog {BEFORE} dog cat dog {AFTER}', '… aaaa dog cat dog zzzz …'),
        # Of as many, the first.
        (f'cat {BEFORE} dog', 'cat aaaa aaaa aaaa aaaa …'),
    ],
)
def test_the_densest_words_are_shown(text, shown):
    assert cut_around('dog cat', text, 27) == shown


def test_without_spaces_words_are_cut():
    assert cut_around('', 'a' * 20, 10) == 'aaaaaa …'
    assert cut_around('蜗牛', '蜗牛吃生菜' * 4, 10) == '蜗牛吃生菜蜗 …'


def test_line_ends_are_spaces():
    assert cut_around('snail', f'{BEFORE}\n\nsnail\n{AFTER}', 22) == '… aaaa\n\nsnail\nzzzz …'


@given(
    strategies.text('ab \n', max_size=60),
    strategies.text('ab ', max_size=5),
    strategies.integers(5, 40),
)
def test_it_is_never_longer_and_always_a_part_of_the_text(text, query, most):
    shown = cut_around(query, text, most)
    assert len(shown) <= most
    assert shown.removeprefix('… ').removesuffix(' …') in text


LINES = 'import os\n\ndef one():\n    return 1\n\ndef two():\n    oldest = 2\n    return oldest'


@pytest.mark.parametrize(
    ('most', 'most_lines', 'expected'),
    [
        (500, None, LINES),
        (44, None, '…\ndef two():\n    oldest = 2\n    return oldest'),
        (500, 2, '…\n    oldest = 2\n    return oldest'),
        (1, None, '…\n    oldest = 2\n…'),
    ],
)
def test_code_is_cut_at_lines(most, most_lines, expected):
    """Code began and ended within a line, as prose does."""
    matches = find_words('oldest', LINES)
    assert cut_lines_around(LINES, most, matches, most_lines) == expected
    assert cut_lines_around(LINES, 10, []) == 'import os\n…'
