"""Cells of Excel as the sheet shows them, as far as that changes their words."""

from __future__ import annotations

import re
from datetime import time, timedelta
from typing import Any

# What is not a digit of a format: texts, colours, places to fill.
_NO_DIGITS = re.compile(r'"[^"]{0,255}"|\\.|\[[^\]]{0,255}\]|_.|\*.')
_DIGITS = re.compile(r'[#0?,]*(?:\.([0#?]+))?')
_PADDED = re.compile(r'0{2,20}')
_ELAPSED = re.compile(r'\[h+\]', re.IGNORECASE)
_GENERAL = 'general'


def shown_value(value: Any, number_format: str) -> str:
    """A cell as Excel shows it in a column that is wide enough.

    Parameters
    ----------
    value : as openpyxl reads it
    number_format : of the cell: 'General', '0.0%', '00000', '[h]:mm'
    """
    if value is None:
        return ''
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, (int, float)):
        return _shown_number(value, number_format or _GENERAL)
    if isinstance(value, timedelta):
        return _shown_hours(value, number_format)
    if isinstance(value, time):
        return value.isoformat()
    return ' '.join(str(value).removesuffix(' 00:00:00').split())


def _shown_number(value: float, number_format: str) -> str:
    section = _NO_DIGITS.sub('', number_format.split(';', maxsplit=1)[0]).strip()
    if section.endswith('%'):
        decimals = _decimals_of(section[:-1])
        return (
            _plain_number(value * 100 if decimals is None else round(value * 100, decimals)) + '%'
        )
    if _PADDED.fullmatch(section) and value >= 0:
        return f'{value:0{len(section)}.0f}'
    decimals = _decimals_of(section)
    if decimals is None or not section.strip('#,?'):
        return _plain_number(value)
    return f'{value:.{decimals}f}'


def _decimals_of(digits: str) -> int | None:
    """How many digits a format shows behind the point; None for one of another kind."""
    match = _DIGITS.fullmatch(digits.strip())
    if match is None or not digits.strip():
        return None
    return len(match[1] or '')


def _plain_number(value: float) -> str:
    """The digits that Excel has."""
    return f'{value:.15g}' if isinstance(value, float) else str(value)


def _shown_hours(value: timedelta, number_format: str) -> str:
    seconds = round(value.total_seconds())
    hours, seconds = divmod(abs(seconds), 3600)
    minutes, seconds = divmod(seconds, 60)
    if not _ELAPSED.search(number_format):
        hours %= 24
    shown = f'{hours}:{minutes:02}'
    sign = '-' if value < timedelta() else ''
    return f'{sign}{shown}:{seconds:02}' if 's' in number_format.lower() else f'{sign}{shown}'
