"""`CheckedValues`: settings that are checked when they are made; `with_fields` adds some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from pyserini_repbert.errors import InputError
from pyserini_repbert.extension_words import missing_extension

_Model = TypeVar('_Model', bound=type[BaseModel])


def with_fields(model: _Model, fields: Mapping[str, Any]) -> _Model:
    """A model with further fields, under the same name.

    `fields` are an annotation and a default, by name, as for pydantic's `create_model`.
    """
    extended = create_model(
        model.__name__,
        __base__=model,
        __doc__=model.__doc__,
        __module__=model.__module__,
        **fields,
    )
    return cast(_Model, extended)


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
            message = f'{" ".join(names)} {wrong["input"]!r:.80}: {wrong["msg"]}'
            if wrong['type'] == 'extra_forbidden':
                message += missing_extension(' '.join(names))
            raise InputError(message, parameters=names) from error
