"""Learning from the judgments of a collection, in a separate process."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

from pyserini_repbert.collection.judging.learning_progress import begin_learning, learning_state
from pyserini_repbert.collection.judging.topics import open_topics
from pyserini_repbert.errors import BusyError, PyseriniRepbertError
from pyserini_repbert.extension import loaded
from pyserini_repbert.serve.child import ChildProcess

logger = logging.getLogger(__name__)

# Learning from 10,000 judged questions takes some minutes.
_MOST_SECONDS = 6 * 3600.0


class CollectionLearner:
    """Lets a collection learn, in a separate process, so that searches continue.

    Parameters
    ----------
    folder : of the collection
    device : where its encoder runs
    """

    def __init__(self, folder: Path, device: str) -> None:
        self.folder = folder
        self._device = device
        self._process = ChildProcess()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def start(self) -> None:
        """Begin to learn.

        Raises InputError for a collection without judgments, and BusyError while it learns already.
        """
        with self._starting:
            if self.state()['state'] == 'running':
                raise BusyError('the collection learns already: wait until it has ended')
            # Refuses a collection without judgments.
            open_topics(str(self.folder))
            begin_learning(self.folder)
            self._thread = threading.Thread(target=self._learn, name='learner', daemon=True)
            self._thread.start()

    def state(self) -> dict[str, Any]:
        """How far it is, as in `learning_state`."""
        # Until the process has loaded the model, nothing but this object knows that it learns.
        is_working = self._thread is not None and self._thread.is_alive()
        state = learning_state(self.folder, is_starting=is_working)
        if is_working and state['state'] == 'done':
            # Extensions work with what was learned.
            return state | {'state': 'running', 'done': state['total']}
        return state

    def stop(self) -> None:
        """End a learning that runs; nothing of it stays."""
        self._process.end()
        if self._thread is not None:
            self._thread.join()

    def _learn(self) -> None:
        """Wait for the process; the file of judgments says how learning ended."""
        try:
            self._process.call(_learn, str(self.folder), self._device, seconds=_MOST_SECONDS)
        except PyseriniRepbertError as error:
            logger.warning('%s does not learn: %s', self.folder, error)
        except Exception:
            logger.exception('learning in %s failed', self.folder)
        self._process.stop()


def _learn(folder: str, device: str) -> None:
    """What the process does."""
    from pyserini_repbert.collection.judging.from_judgments import learn_from_judgments

    learn_from_judgments(Path(folder), device)
    for part in loaded('in_collections'):
        part.after_learning(Path(folder), device)
