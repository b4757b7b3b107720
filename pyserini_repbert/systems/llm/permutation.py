"""What a listwise answer says: '[2] > [1] > [3]' (RankGPT, Sun et al. 2023, section 3.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_THOUGHT_ENDS = '</think>'
_IN_BRACKETS = re.compile(r'\[(\d{1,6})\]')
_NUMBERS = re.compile(r'(?<!\d)\d{1,6}(?!\d)')


@dataclass(frozen=True)
class Permutation:
    """An order of passages.

    Attributes
    ----------
    rows : of all passages, from 0, the best first
    is_repaired : whether the answer was not an order of all passages, each once
    """

    rows: tuple[int, ...]
    is_repaired: bool


def parse_permutation(text: str, n: int) -> Permutation:
    """The order of `n` passages that a model's answer gives.

    Numbers in brackets count; without any, all numbers do. Of a number that comes twice, the first
    counts. A number that no passage has is left out. Passages without a number follow in the order
    that they had.
    """
    answer = without_thought(text)
    numbers = _IN_BRACKETS.findall(answer) or _NUMBERS.findall(answer)
    given = [int(number) - 1 for number in numbers]
    named = _distinct(row for row in given if 0 <= row < n)
    rest = sorted(set(range(n)) - set(named))
    return Permutation((*named, *rest), is_repaired=given != named or bool(rest))


def without_thought(text: str) -> str:
    """An answer without what a model thought before it, up to '</think>'."""
    return text.rpartition(_THOUGHT_ENDS)[2]


def _distinct(rows: Iterable[int]) -> list[int]:
    return list(dict.fromkeys(rows))
