"""`ServicePart`: what an extension adds to a service: settings, limits, and work of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
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
    index_settings : settings of an index: an annotation and a default, by name, as of pydantic's
        `create_model`. `IndexSettings` has them as attributes. `File` and others of
        `serve/setting_values.py` are annotations of paths beside the settings file
    limits : of requests, in the same form. `Limits` has them as attributes
    """

    index_settings: ClassVar[Mapping[str, tuple[Any, Any]]] = {}
    limits: ClassVar[Mapping[str, tuple[Any, Any]]] = {}

    def error_body(self, path: str, status: int, message: str) -> dict[str, Any] | None:
        """The JSON object of an error at an address of the extension; None where it is as at other
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

    def start(self, service: Service) -> RunningPart | None:
        """Begin to work; None where the settings ask for nothing.

        It is called once the indexes are open, and may take a while. Raises InputError where that
        cannot be; the service ends then.
        """
        return None
