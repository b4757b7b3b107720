"""A process that works for this one, and neither outlives it nor blocks it."""

from __future__ import annotations

import contextlib
import logging
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.processes import end_with_parent

logger = logging.getLogger(__name__)

# Seconds between two signs of life of a process that works.
_BEAT_SECONDS = 1.0
# A process without a sign of life for so long was stopped, or hangs.
QUIET_SECONDS = 60.0


class LostProcessError(PyseriniRepbertError):
    """The process was ended from outside, or it hung and was ended."""


class OverdueError(PyseriniRepbertError):
    """The work took too long, and the process was ended."""


@dataclass(frozen=True)
class _Outcome:
    """The result of a call: a value or an error."""

    value: Any = None
    error: Exception | None = None


class ChildProcess:
    """A separate process that calls functions for this one, one after the other.

    It starts with the first call, and again after it has ended. It ends with this process, however
    that ends.

    Parameters
    ----------
    quiet_seconds : without a sign of life after which the process is ended
    """

    def __init__(self, quiet_seconds: float = QUIET_SECONDS) -> None:
        self._quiet_seconds = quiet_seconds
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None

    @property
    def pid(self) -> int | None:
        """The number of the process; None while there is none."""
        return None if self._process is None else self._process.pid

    def call(self, function: Callable[..., Any], *arguments: Any, seconds: float) -> Any:
        """What a function returns in the process; its errors are raised here.

        Parameters
        ----------
        function : of a module, as all that `multiprocessing` sends
        arguments : of the function
        seconds : until the work is given up

        Raises LostProcessError if the process was ended from outside or hangs, and OverdueError
        if it takes too long. The process has ended then.
        """
        connection = self._started()
        # A stopped process reads nothing, so sending a large argument would block.
        sending = threading.Thread(
            target=_send, args=(connection, function, arguments), daemon=True
        )
        sending.start()
        try:
            outcome = self._receive(connection, seconds)
        except (EOFError, OSError) as error:
            self._give_up(sending)
            raise LostProcessError('the process was ended from outside (out of memory?)') from error
        except PyseriniRepbertError:
            self._give_up(sending)
            raise
        sending.join()
        if outcome.error is not None:
            raise outcome.error
        return outcome.value

    def end(self) -> None:
        """End the process, whatever it does; a call that runs in it raises LostProcessError.

        Any thread may do this.
        """
        process = self._process
        if process is not None:
            process.kill()

    def stop(self) -> None:
        """End the process, and release what belongs to it; no call runs."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._connection is not None:
            self._connection.close()
        self._process = None
        self._connection = None

    def _give_up(self, sending: threading.Thread) -> None:
        self.end()
        # It ends when nobody reads, and needs the connection until then.
        sending.join()
        self.stop()

    def _started(self) -> Connection:
        """The connection to the process, which is started if necessary."""
        if self._process is not None and not self._process.is_alive():
            self.stop()
        if self._connection is None:
            # A forked process would share the locks of the threads that search.
            context = get_context('spawn')
            ours, theirs = context.Pipe()
            self._process = context.Process(target=_serve_calls, args=(theirs,), daemon=True)
            self._process.start()
            # This process would keep the pipe open after the other's end.
            theirs.close()
            self._connection = ours
        return self._connection

    def _receive(self, connection: Connection, seconds: float) -> _Outcome:
        deadline = time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise OverdueError(f'the work took more than {seconds:.0f} s and was given up')
            if not connection.poll(min(left, self._quiet_seconds)):
                if left > self._quiet_seconds:
                    raise LostProcessError(
                        f'the process gave no sign of life for {self._quiet_seconds:.0f} s '
                        '(stopped?) and was ended'
                    )
                continue
            message = connection.recv()
            if isinstance(message, _Outcome):
                return message


def _send(connection: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    # The process has ended: who receives notices it, too.
    with contextlib.suppress(OSError):
        connection.send((function, arguments))


def _serve_calls(connection: Connection) -> None:
    """What the process does: answer calls until the other end of the pipe is closed."""
    # Ctrl-C reaches both processes; the other one decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    with contextlib.suppress(EOFError, OSError):
        while True:
            connection.poll(None)
            with _beating(connection):
                # To receive a function imports its module, which takes seconds.
                function, arguments = connection.recv()
                outcome = _outcome_of(function, arguments)
            connection.send(outcome)


def _outcome_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> _Outcome:
    try:
        outcome = _Outcome(value=function(*arguments))
    except Exception as error:
        outcome = _Outcome(error=error)
    try:
        pickle.dumps(outcome)
    except Exception:
        logger.exception('what %s gave cannot be sent', function)
        return _Outcome(error=RuntimeError(f'what {function} gave cannot be sent: {outcome!r}'))
    return outcome


@contextmanager
def _beating(connection: Connection) -> Iterator[None]:
    """A context in which a thread sends signs of life, and nothing else is sent."""
    ended = threading.Event()

    def beat() -> None:
        with contextlib.suppress(OSError):
            while not ended.wait(_BEAT_SECONDS):
                connection.send(None)

    beating = threading.Thread(target=beat, daemon=True)
    beating.start()
    try:
        yield
    finally:
        ended.set()
        beating.join()
