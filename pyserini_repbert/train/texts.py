"""Texts of a whole corpus by docid, from a file: millions of passages cost 16 bytes of memory each."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Sequence

import numpy as np

from pyserini_repbert.formats.passages import Passage

_LENGTH_BYTES = 4


class DiskTexts:
    """Passages written to a temporary file as they are read, and found in it by a hash of their docids.

    The file vanishes with the object; processes that are forked from this one can read it too.
    """

    def __init__(self, corpus: Iterable[Passage]) -> None:
        keys: list[np.ndarray] = []
        places: list[np.ndarray] = []
        some_keys: list[int] = []
        some_places: list[int] = []
        at = 0
        with tempfile.NamedTemporaryFile(prefix='passages.') as stream:
            for passage in corpus:
                docid, text = passage.docid.encode(), passage.text.encode()
                head = len(docid).to_bytes(_LENGTH_BYTES, 'little') + len(text).to_bytes(_LENGTH_BYTES, 'little')
                stream.write(head + docid + text)
                some_keys.append(_key(docid))
                some_places.append(at)
                at += len(head) + len(docid) + len(text)
                if len(some_keys) == 1 << 16:
                    keys.append(np.asarray(some_keys, dtype=np.uint64))
                    places.append(np.asarray(some_places, dtype=np.int64))
                    some_keys, some_places = [], []
            stream.flush()
            self._content = np.memmap(stream.name, dtype=np.uint8, mode='r') if at else np.empty(0, np.uint8)
        unordered = np.concatenate([*keys, np.asarray(some_keys, dtype=np.uint64)])
        order = np.argsort(unordered, kind='stable')
        self._keys = unordered[order]
        self._places = np.concatenate([*places, np.asarray(some_places, dtype=np.int64)])[order]

    def __len__(self) -> int:
        return len(self._keys)

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """The texts in the order asked for; None for a docid that the corpus lacks."""
        return [self._text(docid.encode()) for docid in docids]

    def _text(self, docid: bytes) -> str | None:
        key = np.uint64(_key(docid))
        row = int(np.searchsorted(self._keys, key))
        while row < len(self._keys) and self._keys[row] == key:
            found = self._read(int(self._places[row]), docid)
            if found is not None:
                return found
            row += 1
        return None

    def _read(self, place: int, docid: bytes) -> str | None:
        start = place + 2 * _LENGTH_BYTES
        head = self._content[place:start].tobytes()
        n_docid, n_text = (int.from_bytes(part, 'little') for part in (head[:_LENGTH_BYTES], head[_LENGTH_BYTES:]))
        if self._content[start : start + n_docid].tobytes() != docid:
            return None
        return self._content[start + n_docid : start + n_docid + n_text].tobytes().decode()


def _key(docid: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(docid, digest_size=8).digest(), 'little')


def docid_key(docid: str) -> int:
    """A docid as a whole number below 2^63, for tensors: never negative."""
    return _key(docid.encode()) >> 1
