"""The rerankers that extensions offer to the clients of a service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyserini_repbert.extension import loaded
from pyserini_repbert.rerank.base import Reranker

if TYPE_CHECKING:
    from pyserini_repbert.serve.settings import ServeSettings


@dataclass(frozen=True)
class OfferedReranker:
    """A reranker that clients may name; it works in a separate queue, beside other rerankers.

    Attributes
    ----------
    system : the name of its system
    open : opens it, when a client asks for it first
    """

    system: str
    open: Callable[[], Reranker]


def offered_rerankers(settings: ServeSettings) -> dict[str, OfferedReranker]:
    """The rerankers that extensions offer for the settings of a service, by name.

    Raises the errors of `ServicePart.rerankers`.
    """
    offered: dict[str, OfferedReranker] = {}
    for part in loaded('in_services'):
        offered |= part.rerankers(settings)
    return offered
