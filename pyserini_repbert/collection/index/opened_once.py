"""`OpenedOnce`: an encoder that several indexes share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyserini_repbert.search.dense import QueryEncoder


class OpenedOnce:
    """An encoder of queries, which is opened when it is first asked for.

    Parameters
    ----------
    open_encoder : opens it on a device
    """

    def __init__(self, open_encoder: Callable[[str], QueryEncoder]) -> None:
        self._open_encoder = open_encoder
        self._encoder: QueryEncoder | None = None
        self._lock = threading.Lock()

    def get(self, device: str) -> QueryEncoder:
        """The encoder, on the device for which it was first asked."""
        with self._lock:
            if self._encoder is None:
                self._encoder = self._open_encoder(device)
            return self._encoder
