"""PDF, Word, PowerPoint, Excel and EPUB as documents, by MarkItDown (the extra `files`).

A process of its own reads them (`office_process.py`): it has a limit of memory and of time for each
file, and what ends it harms nothing else. Then the file is not read, and the next one has a new
process.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from pyserini_repbert.archives import FREE_BYTES, MAX_RATIO
from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.office_text import read_office
from pyserini_repbert.collection.files.read_page import titled_text
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.unread_files import UnreadableFile, without_text
from pyserini_repbert.files import human_size

INSTALL = "pip install '.[files]'"
_PROCESS = 'pyserini_repbert.collection.files.office_process'
_SECONDS = 120  # for a file
_STARTING_SECONDS = 300  # for importing MarkItDown, on a busy machine
_MOST_BYTES = 500_000_000  # of a file
_MOST_ANSWER = 128 << 20  # bytes of a file's text, as JSON


def can_read_office() -> bool:
    """Whether MarkItDown is installed."""
    return find_spec('markitdown') is not None


class OfficeReader:
    """Reads files in a process of its own, which is started with the first of them.

    Use it as a context: the process ends with it.

    Parameters
    ----------
    seconds : that a file may take
    """

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> OfficeReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def documents(self, file: FileToRead) -> Iterator[Document]:
        """The document of a file. Raises UnreadableFile where it cannot be read."""
        _check_sizes(file.path)
        answer = self._ask(file.path)
        if 'text' not in answer:
            raise UnreadableFile(str(answer.get('problem', 'no answer')))
        if not str(answer['text']).strip():
            raise without_text('it has no text: a scan needs to be recognised first')
        title = ' '.join(str(answer.get('title') or '').split()) or file.path.stem
        page = read_office(file.path.suffix.lower(), str(answer['text']))
        titled = titled_text(page, title)
        placed = titled.placed
        document = Document(file.docid, placed.text, titled.title, origin=placed.origin)
        yield document.without_lines()

    def _ask(self, path: Path) -> dict[str, Any]:
        """What the process answers about a file. Raises UnreadableFile where it ends or hangs."""
        process = self._started()
        question = json.dumps({'path': str(path.absolute())}).encode() + b'\n'
        line = self._exchange(process, question, self._seconds)
        if line.endswith(b'\n'):
            answer: dict[str, Any] = json.loads(line)
            return answer
        self.close()
        raise UnreadableFile(
            f'its reader ended: it took more than {self._seconds:.0f} seconds, or too much memory'
        )

    def _started(self) -> subprocess.Popen[bytes]:
        """The process, started where none runs."""
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        self._process = subprocess.Popen(
            [sys.executable, '-m', _PROCESS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        if not self._exchange(self._process, b'', _STARTING_SECONDS):
            self.close()
            raise UnreadableFile(f'its reader did not start: {INSTALL}')
        return self._process

    def _exchange(self, process: subprocess.Popen[bytes], question: bytes, seconds: float) -> bytes:
        """A line that the process answers; no whole line where it ends, or is ended in time."""
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
            # What was not written is lost with the process.
            with contextlib.suppress(OSError):
                _stream(stream).close()


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise AssertionError('the process was started with pipes')
    return stream


def _check_sizes(path: Path) -> None:
    """Raises UnreadableFile for a file that is too large, or unpacks to too much."""
    size = path.stat().st_size
    if size > _MOST_BYTES:
        raise UnreadableFile(f'larger than {human_size(_MOST_BYTES)}')
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise UnreadableFile(f'no whole file ({error})') from error
    most = FREE_BYTES + MAX_RATIO * size
    if unpacked > min(most, _MOST_BYTES):
        raise UnreadableFile(f'it unpacks to {human_size(unpacked)}, as no document does')
