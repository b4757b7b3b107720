"""What commands print, made safe for a terminal.

Names, titles and texts come from files and clients. A terminal would obey the control characters
in them, so U+FFFD is printed in their place. All that a command prints passes here.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

# Backgrounds of xterm's 256 colours, from white to green; `shaded` uses no others.
SHADES = (255, 254, 252, 194, 157, 120, 83, 46)
# Control characters, and those that change the direction of text.
_CONTROL = r'[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]'
_CONTROLS = re.compile(_CONTROL)
_SHADE_CODES = '|'.join(map(str, SHADES))
# In text of several lines; complete codes of `shaded` are kept.
_OBEYED = re.compile(rf'\x1b\[(?:0|30;48;5;(?:{_SHADE_CODES}))m|(?![\n\t]){_CONTROL}')
# How progress bars move between lines, in a separate write.
_MOVES = re.compile(r'\n*(\x1b\[A)*')


def printable(text: str) -> str:
    """Text in one line, with U+FFFD for control characters, which a terminal would obey."""
    return _CONTROLS.sub('\ufffd', ' '.join(text.split()))


def shaded(text: str, weight: float) -> str:
    """Text on a background that shows a weight from 0 to 1."""
    shade = SHADES[round((len(SHADES) - 1) * weight)]
    return f'\x1b[30;48;5;{shade}m{text}\x1b[0m'


def json_text(value: Any, indent: int) -> str:
    """A value as JSON, with control characters escaped, so that none is lost in printing."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _OBEYED.sub(lambda match: f'\\u{ord(match[0]):04x}', text)


def _mask(match: re.Match[str]) -> str:
    """U+FFFD for a control character; a code of `shaded` unchanged."""
    return match[0] if len(match[0]) > 1 else '\ufffd'


class _Console:
    """A stream that prints text of many lines with U+FFFD for what a terminal would obey.

    Parameters
    ----------
    stream : where the text is printed
    has_bars : whether progress bars are shown there: a write may begin with a carriage return
    """

    def __init__(self, stream: Any, has_bars: bool) -> None:
        self._stream = stream
        self._has_bars = has_bars

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Print text; returns its length."""
        start = ''
        if self._has_bars:
            if _MOVES.fullmatch(text):
                start = text
            elif text.startswith('\r'):
                start = '\r'
        self._stream.write(start + _OBEYED.sub(_mask, text[len(start) :]))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Print texts."""
        for line in lines:
            self.write(line)


@contextmanager
def safe_output() -> Iterator[None]:
    """A context in which all that is printed, logged and warned of is safe for a terminal."""
    out: Any = _Console(sys.stdout, has_bars=False)
    errors: Any = _Console(sys.stderr, has_bars=True)
    with redirect_stdout(out), redirect_stderr(errors):
        yield


def show_traceback(kind: Any, error: Any, trace: Any) -> None:
    """Print an unexpected error, as `sys.excepthook` does, but safe for a terminal."""
    with safe_output():
        sys.__excepthook__(kind, error, trace)
