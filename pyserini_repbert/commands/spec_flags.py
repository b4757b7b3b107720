"""Flags made from the fields of a spec: name, help, choices and type of each stand there."""

from __future__ import annotations

import argparse
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pyserini_repbert.commands.command import finite_number, positive_int


def add_spec_flags(parser: argparse._ActionsContainer, spec: type[BaseModel], *names: str, **changes: Any) -> None:
    """Add the flags of a spec's fields: --rrf-k for `rrf_k`.

    Parameters
    ----------
    changes : `flag`, another name of the flag, and keyword arguments of `add_argument`
    """
    for name in names:
        field = spec.model_fields[name]
        extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
        flags = [changes.get('flag', f'--{name.replace("_", "-")}'), *extra.get('flags', ())]  # type: ignore[misc]
        settings = {'help': field.description, **_form(field), **changes}
        if 'metavar' in extra:
            settings.setdefault('metavar', extra['metavar'])
        settings.pop('flag', None)
        parser.add_argument(*flags, dest=name, **settings)  # type: ignore[arg-type]


def _form(field: FieldInfo) -> dict[str, Any]:
    """What `add_argument` needs to know of a field's type and default."""
    types: dict[Any, Any] = {int: positive_int, float: finite_number, str: str}
    kinds = [kind for kind in get_args(field.annotation) or [field.annotation] if kind is not type(None)]
    if field.annotation is bool:
        return {'action': 'store_true'}
    if get_origin(field.annotation) is Literal:
        return {'choices': get_args(field.annotation), 'default': field.default}
    if get_origin(field.annotation) is tuple:
        numbers = next((types[kind] for kind in (int, float) if kind in kinds), None)
        return {'nargs': '+', 'type': numbers, 'default': []} if numbers else {'action': 'append'}
    return {'type': types[kinds[0]], 'default': field.default}
