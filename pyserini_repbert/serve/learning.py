"""Learning from the judgments of a collection, in a process of its own."""

from __future__ import annotations

import logging
import threading
from multiprocessing import get_context
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from pyserini_repbert.adapt.from_judgments import (
    begin_learning,
    learn_from_judgments,
    learning_state,
)
from pyserini_repbert.errors import BusyError, PyseriniRepbertError

logger = logging.getLogger(__name__)


class CollectionLearner:
    """Lets a collection learn, in a process of its own, so that searches go on.

    Parameters
    ----------
    folder : of the collection
    device : where its encoder runs
    """

    def __init__(self, folder: Path, device: str) -> None:
        self.folder = folder
        self._device = device
        self._process: SpawnProcess | None = None
        self._starting = threading.Lock()

    def start(self) -> None:
        """Begin to learn. Raises BusyError while the collection learns already."""
        with self._starting:
            if self.state()['state'] == 'running':
                raise BusyError('the collection learns already: wait until it has ended')
            begin_learning(self.folder)
            # A forked process would share the locks of the threads that search.
            process = get_context('spawn').Process(
                target=_learn, args=(str(self.folder), self._device), daemon=True
            )
            process.start()
            self._process = process

    def state(self) -> dict[str, Any]:
        """How far it is, as of `learning_state`."""
        # Until the process has loaded the model, nothing but this object knows that it learns.
        is_starting = self._process is not None and self._process.is_alive()
        return learning_state(self.folder, is_starting)

    def stop(self) -> None:
        """End a learning that runs; nothing of it stays."""
        if self._process is not None and self._process.is_alive():
            self._process.terminate()
            self._process.join()


def _learn(folder: str, device: str) -> None:
    """What the process does; the file of judgments says how it ended."""
    try:
        learn_from_judgments(Path(folder), device)
    except PyseriniRepbertError as error:
        logger.warning('%s does not learn: %s', folder, error)
