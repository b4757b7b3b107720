"""What the bodies of requests have in common."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict

from pyserini_repbert.formats.identifiers import has_surrogates


def _characters(text: str) -> str:
    if has_surrogates(text):
        raise ValueError('half of a surrogate pair is no character')
    return text


Text = Annotated[str, AfterValidator(_characters)]
Fusion = Literal['interleave', 'rrf', 'interpolation']


class Sent(BaseModel):
    """A part of a body; fields that it does not have are refused."""

    model_config = ConfigDict(extra='forbid')
