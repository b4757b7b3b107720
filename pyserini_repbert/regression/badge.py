"""A badge for a README: how many figures of the papers' tables are measured, how many rehearsed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyserini_repbert.pages import page
from pyserini_repbert.regression.grids import Known, counts

_WIDTH = 6.6  # of a character at 11 pixels, and some more: too wide a badge is not cut off
_PADDING = 10
_COLOURS = {Known.FAILED: '#e05d44', Known.MEASURED: '#4c1', Known.REHEARSED: '#007ec6', Known.OPEN: '#9f9f9f'}


def badge(data: Mapping[str, Any]) -> str:
    """An SVG; red where a figure failed, green where some are measured, blue where some are rehearsed only."""
    found = counts(data)
    total = sum(found.values()) - found[Known.RECORDED]
    said = [f'{found[known]} {known}' for known in (Known.MEASURED, Known.FAILED, Known.REHEARSED) if found[known]]
    message = f'{", ".join(said) or "none run"} of {total}'
    colour = next((colour for known, colour in _COLOURS.items() if found[known]), _COLOURS[Known.OPEN])
    label = 'published figures'
    widths = [round(len(text) * _WIDTH + _PADDING) for text in (label, message)]
    return page('badge', label=label, message=message, colour=colour, widths=widths)
