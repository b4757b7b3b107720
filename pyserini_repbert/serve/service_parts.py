"""What an extension adds to a service: `ServicePart`, and `ServePart` for its command."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pyserini_repbert.commands.parts import CommandPart

if TYPE_CHECKING:
    from pyserini_repbert.serve.offered_rerankers import OfferedReranker
    from pyserini_repbert.serve.service import Service
    from pyserini_repbert.serve.settings import ServeSettings


class RunningPart(ABC):
    """Works beside a service, until it is stopped."""

    @abstractmethod
    def stop(self) -> None:
        """End the work; returns when it has ended."""


class ServicePart:
    """What an extension adds to a service; each method does nothing unless it is replaced.

    Attributes
    ----------
    service_settings : settings in addition to 'indexes': an annotation and a default, by name, as
        for pydantic's `create_model`. `FileSettings` has them as attributes. `File` and others of
        `serve/setting_values.py` are annotations of paths beside the settings file
    index_settings : settings of an index, in the same form. `IndexSettings` has them as attributes
    limits : of requests, in the same form. `Limits` has them as attributes
    """

    service_settings: ClassVar[Mapping[str, tuple[Any, Any]]] = {}
    index_settings: ClassVar[Mapping[str, tuple[Any, Any]]] = {}
    limits: ClassVar[Mapping[str, tuple[Any, Any]]] = {}

    def error_body(self, path: str, status: int, message: str) -> dict[str, Any] | None:
        """The JSON object of an error at an address of the extension; None if it is as at other
        addresses.

        Parameters
        ----------
        path : of the address
        status : of the answer
        message : one line
        """
        return None

    def check(self, settings: ServeSettings, n_processes: int) -> None:
        """Raise InputError for settings that do not go together; nothing is open yet.

        Parameters
        ----------
        settings : of the service
        n_processes : that serve the same indexes
        """

    def rerankers(self, settings: ServeSettings) -> Mapping[str, OfferedReranker]:
        """The rerankers that the settings ask it to offer, by the names that clients give.

        Raises InputError for settings that name one, but do not say how to open it.
        """
        return {}

    def start(self, service: Service) -> RunningPart | None:
        """Begin to work; None if the settings ask for nothing.

        It is called once the indexes are open, and may take a while. Raises InputError if that
        cannot be; the service ends then.
        """
        return None


class ServePart(CommandPart):
    """What an extension does in the command `serve`: flags instead of its `service_settings`."""

    def settings(self, options: argparse.Namespace) -> dict[str, Any]:
        """The settings that flags give, by name, instead of those in the settings file."""
        return {}
