"""PDF, Office files and markups, converted in other processes before they are asked for.

So the next files are converted while a caller encodes the ones before. They are returned in the
order in which they are asked for, as if each were read then.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.office_documents import OfficeReader
from pyserini_repbert.collection.files.pandoc_documents import PandocReader
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.file_records import FileContent, look_at

CONVERTED = ('office', 'workbook', 'pandoc')  # the kinds of planned files that are converted
# Characters of documents that nobody has asked for yet: encoding 1,024 passages takes a million.
_MOST_HELD = 8_000_000
_MOST_PROCESSES = 8  # one that reads Office files takes 190 MB
# Seconds of waiting that another process has to save: it takes three to start.
_LONG_WAIT = 12.0
# Waits that say how long the next ones are: a folder's PDF files may come before its Office files.
_LAST_WAITS = 8
_CLOSING_SECONDS = 0.1


@dataclass
class _Conversion:
    """A file, before or after its conversion.

    Attributes
    ----------
    kind : of the planned file
    file : to read; it notes encodings for itself
    content : as it was before; None if it changed, or if nobody asks for it
    documents : of the file
    error : which reading it raised
    """

    kind: str
    file: FileToRead
    content: FileContent | None = None
    documents: list[Document] = field(default_factory=list)
    error: Exception | None = None
    is_done: bool = False

    @property
    def size(self) -> int:
        """The characters of its documents."""
        return sum(len(document.text) for document in self.documents)


class FileConverter:
    """Converts files in the order in which they will be asked for.

    Use it as a context: its processes end with it. One process begins. Others help it, as many as
    there are cores, if the caller would wait for files longer than a process takes to start.

    Parameters
    ----------
    files : those that will be asked for, by their kinds
    looks : whether `content_of` will be asked, too
    """

    def __init__(self, files: Sequence[tuple[str, FileToRead]], looks: bool = False) -> None:
        self._looks = looks
        self._kinds = {file.path: kind for kind, file in files}
        conversions = [self._planned(file) for _, file in files]
        self._waiting = deque(conversions)
        self._conversions = {conversion.file.path: conversion for conversion in conversions}
        self._most_processes = min(_n_cores(), _MOST_PROCESSES)
        # Guards what follows.
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._readers: list[OfficeReader | PandocReader] = []
        self._n_converted = 0
        self._n_held = 0
        self._waits: deque[float] = deque(maxlen=_LAST_WAITS)
        self._asked: Path | None = None
        self._is_closed = False

    def __enter__(self) -> Self:
        if self._waiting:
            self._start_thread()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            while thread.is_alive():
                # A thread that was about to ask a process would start it again.
                for reader in self._readers:
                    reader.close()
                thread.join(_CLOSING_SECONDS)

    def content_of(self, file: FileToRead) -> FileContent | None:
        """The content of a file before it was converted; None for one that changed meanwhile."""
        return self._converted(file).content

    def documents(self, file: FileToRead) -> Iterator[Document]:
        """The documents of a file. Raises UnreadableFile if it cannot be read."""
        conversion = self._converted(file)
        with self._changed:
            # Where the file is asked for again, it is read again.
            del self._conversions[file.path]
            self._n_held -= conversion.size
            self._changed.notify_all()
        file.note_encoding(conversion.file.encodings.get(file.path, ''))
        if conversion.error is not None:
            raise conversion.error
        yield from conversion.documents

    def _planned(self, file: FileToRead) -> _Conversion:
        own = replace(file, encodings={})
        return _Conversion(self._kinds[file.path], own)

    def _converted(self, file: FileToRead) -> _Conversion:
        """The conversion of a file, which is waited for."""
        with self._changed:
            conversion = self._conversions.get(file.path)
            if conversion is None:
                conversion = self._planned(file)
                self._conversions[file.path] = conversion
                self._waiting.appendleft(conversion)
            self._asked = file.path
            self._changed.notify_all()
            began = time.monotonic()
            # Until the first file is converted, its process starts.
            has_started = self._n_converted > 0
            while not conversion.is_done:
                self._changed.wait()
            self._asked = None
            if has_started:
                self._note_wait(time.monotonic() - began)
        return conversion

    def _note_wait(self, seconds: float) -> None:
        """Start another process if the caller would otherwise wait long."""
        self._waits.append(seconds)
        expected = sum(self._waits) / len(self._waits) * len(self._waiting)
        if expected > _LONG_WAIT and len(self._threads) < self._most_processes:
            self._waits.clear()
            self._start_thread()

    def _start_thread(self) -> None:
        # A daemon, because the process may never finish a file.
        is_first = not self._threads
        thread = threading.Thread(
            target=self._work, args=(is_first,), name='convert-files', daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _work(self, is_first: bool) -> None:
        """Convert files until none is left.

        The first thread also waits for files that are asked for again.

        So one process stays while a caller reads the files that are not converted.
        """
        with OfficeReader() as office, PandocReader() as pandoc:
            with self._changed:
                self._readers += [office, pandoc]
            while conversion := self._next(is_first):
                reader = pandoc if conversion.kind == 'pandoc' else office
                self._convert(conversion, reader)

    def _next(self, waits: bool) -> _Conversion | None:
        """The next file to convert, once there is room for it; None if there is none.

        `waits`: whether to wait for a file that is asked for again.
        """
        with self._changed:
            while not self._is_closed and (waits or self._waiting):
                is_asked = bool(self._waiting) and self._waiting[0].file.path == self._asked
                if self._waiting and (is_asked or self._n_held < _MOST_HELD):
                    return self._waiting.popleft()
                self._changed.wait()
        return None

    def _convert(self, conversion: _Conversion, reader: OfficeReader | PandocReader) -> None:
        file = conversion.file
        try:
            if self._looks:
                # If the file cannot be read, its reader says what is wrong.
                with contextlib.suppress(OSError):
                    conversion.content = look_at(file.path)
            conversion.documents = list(reader.documents(file))
        except Exception as error:
            # Who asks for the file gets it.
            conversion.error = error
        with self._changed:
            conversion.is_done = True
            self._n_converted += 1
            self._n_held += conversion.size
            self._changed.notify_all()


def _n_cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == 'linux' else os.cpu_count() or 1
