"""Models of the searches of a collection, each opened once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.encode.representations import RepresentationModel
from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import Representation

_Value = TypeVar('_Value')


class OpenedOnce(Generic[_Value]):
    """A value that is opened when it is first asked for, by one thread.

    Parameters
    ----------
    open_value : opens it
    """

    def __init__(self, open_value: Callable[..., _Value]) -> None:
        self._open_value: Callable[..., _Value] | None = open_value
        self._value: _Value | None = None
        self._lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        """Whether it was asked for."""
        return self._value is not None

    def get(self, *arguments: object) -> _Value:
        """The value, which the arguments of the first call made."""
        with self._lock:
            if self._value is None:
                assert self._open_value is not None
                self._value = self._open_value(*arguments)
                # It may hold an earlier generation.
                self._open_value = None
            return self._value


@dataclass(frozen=True)
class _OpenedModel:
    """An encoder, and the `RepresentationModel.key` of its model."""

    key: str
    encoder: Any


class FurtherEncoders:
    """Opens the encoders of queries of further models: generations share those that are the same.

    Of each kind, the model that was asked for last is kept.
    """

    def __init__(self) -> None:
        self._encoders: dict[str, _OpenedModel] = {}
        self._lock = threading.Lock()

    def keep(self, kind: Representation, model: RepresentationModel, encoder: Any) -> None:
        """Take an encoder that is open."""
        self._encoders[kind.name] = _OpenedModel(model.key(), encoder)

    def get(self, generation: Generation, kind: Representation, device: str) -> Any:
        """The encoder of a generation's model of a kind.

        Raises InputError if it has none.
        """
        model: Any = further_model(generation, kind)
        with self._lock:
            opened = self._encoders.get(kind.name)
            if opened is None or opened.key != model.key():
                opened = _OpenedModel(
                    model.key(), kind.work.open(model.encoder, device, model.precision)
                )
                self._encoders[kind.name] = opened
            return opened.encoder


def further_model(generation: Generation, kind: Representation) -> RepresentationModel:
    """The model of a kind in a generation. Raises InputError if it has none."""
    model = generation.settings.further_models.get(kind)
    if model is None:
        raise InputError(
            f'the collection has no {kind.what}: search another of its rankings',
            parameters=('rankings',),
        )
    return model
