"""The parameters of requests, the fields of answers and the settings that extensions add to the
forms of the service.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_type_hints

from pydantic import BaseModel, Field
from typing_extensions import TypedDict  # pydantic needs this one below Python 3.12

from pyserini_repbert.data.checked_values import with_fields
from pyserini_repbert.extension import loaded

# The order of the documents of a pool unless a client asks for another.
RANDOM = 'random'
_Model = TypeVar('_Model', bound=type[BaseModel])
_Form = TypeVar('_Form')


@dataclass(frozen=True)
class PoolOrder:
    """An order of the documents that are judged for a question.

    Attributes
    ----------
    description : for clients
    order : gives the docids in this order; it takes the service, the served index, the question,
        the docids in random order, and the trace of the request
    """

    description: str
    order: Callable[..., list[str]]


def added_parameters() -> dict[str, tuple[Any, Any]]:
    """The parameters of a search that extensions add, as in `AnswerPart.parameters`."""
    parameters: dict[str, tuple[Any, Any]] = {}
    for part in loaded('in_answers'):
        parameters |= part.parameters
    return parameters


def with_added_parameters(model: _Model) -> _Model:
    """The form of a request, with the parameters that extensions add behind its own."""
    return with_fields(model, added_parameters())


def pool_orders() -> dict[str, PoolOrder]:
    """The orders of the documents of a pool that extensions add, by name."""
    orders: dict[str, PoolOrder] = {}
    for part in loaded('in_answers'):
        orders |= part.pool_orders
    return orders


def with_pool_orders(model: _Model) -> _Model:
    """A decorator of the form of a request for a pool: it names one of the orders that extensions
    add, or 'random'. Without any, it names none.
    """
    orders = pool_orders()
    if not orders:
        return model
    literal: Any = Literal
    descriptions = '; '.join(f'{name}: {order.description}' for name, order in orders.items())
    field = Field(RANDOM, description=descriptions)
    return with_fields(model, {'order': (literal[(RANDOM, *orders)], field)})


def with_added_settings(hook: str) -> Callable[[_Model], _Model]:
    """A decorator of settings: they have those, too, that extensions add.

    `hook` is 'service_settings', 'index_settings' or 'limits' of `ServicePart`.
    """

    def extend(model: _Model) -> _Model:
        return with_fields(model, _added_settings(hook))

    return extend


def _added_settings(hook: str) -> dict[str, tuple[Any, Any]]:
    settings: dict[str, tuple[Any, Any]] = {}
    for part in loaded('in_services'):
        settings |= getattr(part, hook)
    return settings


def settings_with_flags() -> list[str]:
    """The settings of an index that extensions add and `serve` has flags for: those with a
    description.
    """
    names = [
        name
        for name, (_, default) in _added_settings('index_settings').items()
        if getattr(default, 'description', None)
    ]
    return names


def with_added_fields(hook: str) -> Callable[[_Form], _Form]:
    """A decorator of the form of an answer: it has the fields, too, that extensions add.

    `hook` is 'answer_fields', 'hit_fields' or 'index_fields' of `AnswerPart`.
    """

    def extend(form: Any) -> Any:
        fields = get_type_hints(form, include_extras=True)
        for part in loaded('in_answers'):
            fields |= getattr(part, hook)
        # It is not a subclass, because pydantic would name both in the description.
        extended = TypedDict(form.__name__, fields)  # type: ignore[misc]
        extended.__doc__ = form.__doc__
        extended.__module__ = form.__module__
        return extended

    return extend
