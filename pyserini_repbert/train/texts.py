"""Texts of a whole corpus by docid, read from a file: a passage takes 16 bytes of memory."""

from __future__ import annotations

import hashlib
import struct
import tempfile
from array import array
from collections.abc import Iterable, Sequence

import numpy as np

from pyserini_repbert.data.passages import Passage

_LENGTHS = struct.Struct('<II')  # of a docid and its text, in bytes


class DiskTexts:
    """Passages written to a temporary file as they are read, and found in it by a hash of their docids.

    The file vanishes with the object; processes that are forked from this one can read it too. Of passages with one
    docid, the first counts.
    """

    def __init__(self, corpus: Iterable[Passage]) -> None:
        keys, places = array('Q'), array('q')
        at = 0
        with tempfile.NamedTemporaryFile(prefix='passages.') as stream:
            for passage in corpus:
                docid, text = passage.docid.encode(), passage.text.encode()
                keys.append(_key(docid))
                places.append(at)
                at += stream.write(_LENGTHS.pack(len(docid), len(text)) + docid + text)
            stream.flush()
            self._content = np.memmap(stream.name, dtype=np.uint8, mode='r') if at else np.empty(0, np.uint8)
        unordered = np.asarray(keys)
        order = np.argsort(unordered, kind='stable')
        self._keys, self._places = unordered[order], np.asarray(places)[order]

    def __len__(self) -> int:
        return len(self._keys)

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """The texts in the order asked for; None for a docid that the corpus lacks."""
        return [self._text(docid.encode()) for docid in docids]

    def _text(self, docid: bytes) -> str | None:
        key = np.uint64(_key(docid))
        row = int(np.searchsorted(self._keys, key))
        while row < len(self._keys) and self._keys[row] == key:
            start = int(self._places[row]) + _LENGTHS.size
            n_docid, n_text = _LENGTHS.unpack(self._content[start - _LENGTHS.size : start].tobytes())
            middle = start + n_docid
            if self._content[start:middle].tobytes() == docid:
                return self._content[middle : middle + n_text].tobytes().decode()
            row += 1
        return None


def _key(docid: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(docid, digest_size=8).digest(), 'little')


def docid_key(docid: str) -> int:
    """A hash of a docid for int64 tensors: from 0 to 2^63 - 1."""
    return _key(docid.encode()) >> 1
