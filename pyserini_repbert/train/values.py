"""The types of a recipe's values, as pydantic reads them."""

from __future__ import annotations

import contextlib
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

LARGEST = 2**31 - 1


def _number(value: Any) -> Any:
    """A number that YAML reads as text, such as 3e-6, without a point."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return float(value)
    return value


Text = Annotated[str, Field(min_length=1)]
FileName = Annotated[str, Field(min_length=1, max_length=200, pattern=r'^[^/\\]*[^/\\.][^/\\]*$')]
Whole = Annotated[int, Field(ge=0, le=LARGEST)]
Count = Annotated[int, Field(ge=1, le=LARGEST)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Workers = Annotated[int, Field(ge=0, le=1024)]
Number = Annotated[float, BeforeValidator(_number), Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, BeforeValidator(_number), Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, BeforeValidator(_number), Field(ge=0, lt=1)]
