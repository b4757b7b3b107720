"""Whether what a block printed is what its page shows: words exactly, decimals closely, timings
not at all.
"""

import re

RELATIVE = 0.005
ABSOLUTE = 0.002
_TIME = re.compile(
    r'\d[\d,.]*\s?(?:ms|µs|s|min|h|seconds|minutes|hours)\b|\d[\d,.]*(?=\s?(?:[\w-]+)?/s\b)'
)
_NUMBER = re.compile(r'(?<![\w.-])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])')
_RULE = re.compile(r'(?<!\S)[-─=]{2,}:?(?!\S)')


def agrees(shown: str, printed: str, numbers_vary: bool = False) -> bool:
    """Whether an output agrees with the one that a page shows, in which a line `…` stands for
    any lines.
    """
    lines = _untimed(printed.strip('\n').split('\n'))
    parts: list[list[str]] = [[]]
    for line in _untimed(shown.strip('\n').split('\n')):
        if line.strip() in ('…', '...'):
            parts.append([])
        else:
            parts[-1].append(line)

    def fits(part: list[str], at: int) -> bool:
        own = lines[at : at + len(part)]
        return len(own) == len(part) and all(
            map(lambda a, b: same_line(a, b, numbers_vary), part, own)
        )

    if len(parts) == 1:
        return len(lines) == len(parts[0]) and fits(parts[0], 0)
    first, *middle, last = parts
    at = len(first)
    if not fits(first, 0):
        return False
    for part in middle:
        places = [place for place in range(at, len(lines) - len(part) + 1) if fits(part, place)]
        if not places:
            return False
        at = places[0] + len(part)
    return len(lines) - len(last) >= at and fits(last, len(lines) - len(last))


def _untimed(lines: list[str]) -> list[str]:
    """The lines, with the cells of tables' columns of seconds replaced."""
    done: list[str] = []
    timed: list[int] = []
    for line in lines:
        cells = line.split('|')
        if not line.startswith('|'):
            timed = []
        elif not done or not done[-1].startswith('|'):
            timed = [place for place, cell in enumerate(cells) if cell.strip() == 'seconds']
        elif set(line) - set('|-: '):
            cells = ['<time>' if place in timed else cell for place, cell in enumerate(cells)]
        done.append('|'.join(cells))
    return done


def same_line(shown: str, printed: str, numbers_vary: bool = False) -> bool:
    """Whether two lines agree but for timings, spaces, the last digits of decimals, and how long
    a rule is.
    """
    words, numbers = _parts(shown)
    other_words, other_numbers = _parts(printed)
    if words != other_words or len(numbers) != len(other_numbers):
        return False
    return numbers_vary or all(map(_close, numbers, other_numbers))


def _parts(line: str) -> tuple[str, list[str]]:
    line = _RULE.sub('---', _TIME.sub('<time>', line))
    return ' '.join(_NUMBER.sub('#', line).split()), _NUMBER.findall(line)


def _close(one: str, other: str) -> bool:
    if '.' not in one and 'e' not in one:
        return one == other
    a = float(one)
    b = float(other)
    return abs(a - b) <= max(RELATIVE * abs(a), ABSOLUTE if abs(a) > ABSOLUTE else abs(a))
