"""`CheckedValues`: settings that are checked when they are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from pyserini_repbert.errors import InputError


class CheckedValues(BaseModel):
    """Settings that are checked when they are made, and never change."""

    model_config = ConfigDict(
        frozen=True, extra='forbid', arbitrary_types_allowed=True, defer_build=True
    )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The values that are not None, checked.

        Raises InputError, naming the parameter, for a wrong one.
        """
        try:
            return cls(**{name: value for name, value in values.items() if value is not None})
        except ValidationError as error:
            wrong = error.errors()[0]
            names = [str(name) for name in wrong['loc'][:1]]
            raise InputError(
                f'{" ".join(names)} {wrong["input"]!r:.80}: {wrong["msg"]}', parameters=names
            ) from error
