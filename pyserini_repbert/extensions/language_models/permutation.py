"""What a listwise answer says: '[2] > [1] > [3]' (RankGPT, Sun et al. 2023, section 3.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_THOUGHT_BEGINS = '<think>'
_THOUGHT_ENDS = '</think>'
_NUMBER = r'\d{1,6}'
_IN_BRACKETS = re.compile(rf'\[({_NUMBER})\]')
_NUMBERS = re.compile(rf'(?<!\d){_NUMBER}(?!\d)')
# Forms of an order: '[2] > [1]', '2 > 1' or '2, 1', and a line for each passage, '1. Passage 2'.
_CHAIN_OF_BRACKETS = re.compile(rf'\[{_NUMBER}\](?:[\s>,;=→-]*\[{_NUMBER}\])+')
_CHAIN = re.compile(rf'(?<!\d){_NUMBER}(?:\s*[>,]\s*{_NUMBER})+(?!\d)')
_LINE = re.compile(
    rf'^[ \t]*{_NUMBER}[.):][ \t]*(?:(?:passage|document)[ \t]*)?\[?({_NUMBER})\]?[ \t]*$',
    re.IGNORECASE | re.MULTILINE,
)


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

    The last order of all passages counts, each once, whatever precedes it. Without one, the numbers
    in brackets count; without any, all numbers. Of a number that comes twice, the first counts. A
    number that no passage has is left out. Passages without a number follow in the order that they
    had.
    """
    answer = without_thought(text)
    whole = _last_whole_order(answer, n)
    if whole is not None:
        return Permutation(whole, is_repaired=False)
    numbers = _IN_BRACKETS.findall(answer) or _NUMBERS.findall(answer)
    given = [int(number) - 1 for number in numbers]
    named = list(dict.fromkeys(row for row in given if 0 <= row < n))
    rest = sorted(set(range(n)) - set(named))
    return Permutation((*named, *rest), is_repaired=given != named or bool(rest))


def _last_whole_order(answer: str, n: int) -> tuple[int, ...] | None:
    """The last order of all passages in an answer; None if it has none."""
    orders: dict[int, list[str]] = {}
    for form in (_CHAIN_OF_BRACKETS, _CHAIN):
        for match in form.finditer(answer):
            orders[match.end()] = _NUMBERS.findall(match[0])
    lines = list(_LINE.finditer(answer))
    if lines:
        # The last ones: an answer may list the passages first.
        orders[lines[-1].end()] = [line[1] for line in lines[-n:]]
    for end in sorted(orders, reverse=True):
        rows = [int(number) - 1 for number in orders[end]]
        if len(rows) == n and set(rows) == set(range(n)):
            return tuple(rows)
    return None


def without_thought(text: str) -> str:
    """An answer without what a model thought before it, up to '</think>'.

    '' of a thought that has no end, for example at the most tokens of an answer.
    """
    answer = text.rpartition(_THOUGHT_ENDS)[2]
    return answer.partition(_THOUGHT_BEGINS)[0]


def is_thought_open(text: str) -> bool:
    """Whether a model was still thinking when its answer ended."""
    return _THOUGHT_BEGINS in text.rpartition(_THOUGHT_ENDS)[2]
