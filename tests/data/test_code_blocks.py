"""Blocks of a program."""

import pytest

from pyserini_repbert.data.code_blocks import code_blocks

PYTHON = """\
import os

KEPT = 7


def copies(target):
    one = 1

    two = 2


class Meter:
    def read(self):
        return 1

    @property
    def port(self):
        return 2
"""
JAVA = """\
class Meter {
    int read() {
        return 1;
    }

    int port() {
        return 2;
    }
}
"""


@pytest.mark.parametrize(
    ('text', 'firsts'),
    [
        (PYTHON, ['import os', 'KEPT = 7', 'def copies(target):', 'class Meter:', '    @property']),
        (JAVA, ['class Meter {', '    int port() {']),
        ('one line', ['one line']),
        ('\n\nafter', ['']),
        ('', ['']),
    ],
)
def test_functions_stay_whole(text, firsts):
    blocks = code_blocks(text, 0, len(text))
    assert ''.join(text[block.start : block.end] for block in blocks) == text
    assert [text[block.start : block.end].split('\n')[0] for block in blocks] == firsts


def test_only_a_part_is_cut():
    start = PYTHON.index('def copies')
    blocks = code_blocks(PYTHON, start, len(PYTHON))
    assert blocks[0].start == start
    assert blocks[-1].end == len(PYTHON)
    assert len(blocks) == 3
