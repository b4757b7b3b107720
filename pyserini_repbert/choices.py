"""Settings that have one of a few named values."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pyserini_repbert.errors import InputError


class Choice(StrEnum):
    """A setting with named values: `Kind('…')` raises InputError for an unknown name.

    Subclasses say what the setting is: `class Layout(Choice, what='layout')`.
    """

    _what: str

    def __init_subclass__(cls, what: str, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls._what = what

    @classmethod
    def _missing_(cls, value: object) -> None:
        raise InputError(f"{cls._what} '{value}' is unknown: expected one of {', '.join(cls)}")
