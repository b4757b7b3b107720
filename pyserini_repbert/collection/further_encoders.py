"""The encoders of queries of a collection's further models, opened once."""

from __future__ import annotations

import threading
from typing import Any

from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.encode.representations import Representation, RepresentationModel
from pyserini_repbert.errors import InputError


class FurtherEncoders:
    """Opens the further models of generations: two generations share one, if it is the same."""

    def __init__(self) -> None:
        self._encoders: dict[str, Any] = {}
        self._lock = threading.Lock()

    def keep(self, model: RepresentationModel, encoder: Any) -> None:
        """Take an encoder that is open."""
        self._encoders[model.key()] = encoder

    def get(self, generation: Generation, kind: Representation, device: str) -> Any:
        """The encoder of a generation's model of a kind.

        Raises InputError where it has none.
        """
        model: Any = further_model(generation, kind)
        with self._lock:
            if model.key() not in self._encoders:
                encoder = kind.open(model.encoder, device, model.precision)
                self._encoders[model.key()] = encoder
            return self._encoders[model.key()]


def further_model(generation: Generation, kind: Representation) -> RepresentationModel:
    """The model of a kind in a generation. Raises InputError where it has none."""
    model = generation.settings.further_models.get(kind)
    if model is None:
        raise InputError(
            f'the collection has no {kind.what}: search another of its rankings',
            parameters=('rankings',),
        )
    return model
