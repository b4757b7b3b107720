"""What a process answers about a file that it read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReadFile:
    """What a file holds.

    Attributes
    ----------
    text : in the form of its suffix (`office_text.py`)
    title : that it states; '' for none
    day : that it states as its own, as an ISO date; '' for none
    """

    text: str
    title: str = ''
    day: str = ''
