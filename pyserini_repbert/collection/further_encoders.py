"""The encoders of queries of a collection's further models, opened once."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.encode.representations import RepresentationModel
from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import Representation


@dataclass(frozen=True)
class _OpenedModel:
    """An encoder, and the `RepresentationModel.key` of its model."""

    key: str
    encoder: Any


class FurtherEncoders:
    """Opens the further models of generations: two generations share one, if it is the same.

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

        Raises InputError where it has none.
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
    """The model of a kind in a generation. Raises InputError where it has none."""
    model = generation.settings.further_models.get(kind)
    if model is None:
        raise InputError(
            f'the collection has no {kind.what}: search another of its rankings',
            parameters=('rankings',),
        )
    return model
