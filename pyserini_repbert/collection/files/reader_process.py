"""A process that reads files: it answers a line of JSON for each, within a bound of time.

A crash harms nothing else: that file is not read, and the next one gets a new process.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import IO, Any

from pyserini_repbert.data.unread_files import UnreadableFile

INSTALL = "pip install '.[files]'"
SECONDS = 120  # for a file
_STARTING_SECONDS = 300  # for importing what it reads with, on a busy machine
_MOST_ANSWER = 128 << 20  # bytes of a file's text, as JSON


class ReaderProcess:
    """A process that is started with the first file.

    Parameters
    ----------
    command : starts it; its first line says that it is ready
    seconds : that a file may take
    """

    def __init__(self, command: Sequence[str], seconds: float = SECONDS) -> None:
        self._command = list(command)
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, question: Mapping[str, str]) -> dict[str, Any]:
        """What the process answers about a file. Raises UnreadableFile if it ends or hangs."""
        process = self._started()
        line = self._exchange(process, json.dumps(question).encode() + b'\n', self._seconds)
        if line.endswith(b'\n'):
            answer: dict[str, Any] = json.loads(line)
            return answer
        self.close()
        raise UnreadableFile(
            f'its reader ended: it took more than {self._seconds:.0f} seconds, or too much memory'
        )

    def _started(self) -> subprocess.Popen[bytes]:
        """The process, which is started if none runs."""
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        if not self._exchange(self._process, b'', _STARTING_SECONDS):
            self.close()
            raise UnreadableFile(f'its reader did not start: {INSTALL}')
        return self._process

    def _exchange(self, process: subprocess.Popen[bytes], question: bytes, seconds: float) -> bytes:
        """A line of the process's answer; an incomplete line if the process ends or runs out of
        time.
        """
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        try:
            _stream(process.stdin).write(question)
            _stream(process.stdin).flush()
            return _stream(process.stdout).readline(_MOST_ANSWER)
        except OSError:
            return b''
        finally:
            timer.cancel()

    def close(self) -> None:
        """End the process."""
        process = self._process
        self._process = None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            # Unwritten output is lost with the process.
            with contextlib.suppress(OSError):
                _stream(stream).close()


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise AssertionError('the process was started with pipes')
    return stream
