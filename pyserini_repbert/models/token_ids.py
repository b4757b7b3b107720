"""Texts to token ids in flat arrays: in this process, or in worker processes beside the device."""

from __future__ import annotations

import os
import signal
import time
import weakref
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.values import has_surrogates
from pyserini_repbert.errors import InputError, PyseriniRepbertError
from pyserini_repbert.models.long_texts import TextCutter
from pyserini_repbert.processes import end_with_parent

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Texts; it bounds the memory of the tokenizer's encodings, which hold more than ids.
_TOKENISED_AT_ONCE = 256
MOST_IDS = 65_536  # of a text, where a caller names no number: more than any model reads
# A text is tokenised in pieces of so many characters until it has enough wordpieces: a passage may
# be a whole file.
SHORTEST_PIECE = 4096
LONGEST_PIECE = 100_000
_CHARACTERS_OF_ID = 8  # of English text, 4.5 on average
_CHARACTERS_AT_ONCE = 1_000_000
# Texts that a worker gets at a time.
FEWEST = 64
MOST = 512
# Groups of texts in the workers; of 4,096 texts each, one keeps eight workers busy.
GROUPS_AHEAD = 2

_Group = TypeVar('_Group')
Progress = Callable[[int], object]  # called with the number of sequences done since the last call


@dataclass(frozen=True)
class TokenIds:
    """The wordpiece ids of n texts, without special tokens, not truncated.

    Of a long text, at least the first wordpieces, as many as were asked for.
    """

    ids: NDArray[np.int32]  # (total,), text after text
    lengths: NDArray[np.int64]  # (n,), wordpieces of each text

    def __len__(self) -> int:
        return len(self.lengths)


def tokenised(backend: Tokenizer, texts: Sequence[str], most: int = MOST_IDS) -> TokenIds:
    """The ids of texts; of a long text, at least the first `most`.

    Raises InputError for what is not a text, or has characters that UTF-8 cannot hold.
    """
    all_ids = array('i')
    lengths = array('q')
    for part in _small_groups(texts):
        try:
            ids_of_part = _ids_of(backend, part, most)
        except TypeError:
            _check_characters(part)
            raise
        for ids in ids_of_part:
            all_ids.fromlist(ids)
            lengths.append(len(ids))
    return TokenIds(np.array(all_ids, np.int32), np.array(lengths, np.int64))


def _check_characters(texts: Sequence[str]) -> None:
    bad = next(filter(has_surrogates, texts), None)
    if bad is not None:
        raise InputError(f'{ascii(bad)[:60]} is not text that UTF-8 can hold: mend or remove it')


def _small_groups(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in groups of bounded length, which are tokenised at once."""
    group: list[str] = []
    characters = 0
    for text in texts:
        # tokenizers take a pair, too, and read both parts as one input
        if not isinstance(text, str):
            raise InputError(f'a text was expected, {ascii(text)[:60]} was given')
        group.append(text)
        characters += min(len(text), LONGEST_PIECE)
        if len(group) == _TOKENISED_AT_ONCE or characters >= _CHARACTERS_AT_ONCE:
            yield group
            group = []
            characters = 0
    if group:
        yield group


def _ids_of(backend: Tokenizer, texts: list[str], most: int) -> list[list[int]]:
    """The ids of each text, of a long one at least the first `most`."""
    size = min(max(_CHARACTERS_OF_ID * most, SHORTEST_PIECE), LONGEST_PIECE)
    is_long = max(map(len, texts)) > size
    cutter = TextCutter.of(backend) if is_long else None
    if cutter is None:
        encodings = backend.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]
    _check_characters(texts)
    ids_of_texts: list[list[int]] = [[] for _ in texts]
    coming = {row: cutter.pieces(text, size) for row, text in enumerate(texts)}
    while coming:
        pieces = {row: next(rest, None) for row, rest in coming.items()}
        batch = {row: piece for row, piece in pieces.items() if piece is not None}
        encodings = backend.encode_batch_fast(list(batch.values()), add_special_tokens=False)
        for row, encoding in zip(batch, encodings, strict=True):
            ids_of_texts[row] += encoding.ids
        coming = {row: coming[row] for row in batch if len(ids_of_texts[row]) < most}
    return ids_of_texts


@dataclass(frozen=True)
class _TimedIds:
    """The ids of texts, and the seconds that they took."""

    token_ids: TokenIds
    seconds: float


class TokenizerWorkers:
    """n processes that tokenise, each on one thread; they start with the first texts and end with
    this object.

    Parameters
    ----------
    tokenizers : that the processes have; a call names one of them by its number, from 0
    n : how many processes

    Attributes
    ----------
    seconds : that the processes have worked, divided by n
    """

    def __init__(self, tokenizers: Sequence[Tokenizer], n: int) -> None:
        settings = [tokenizer.to_str() for tokenizer in tokenizers]
        self._tokenizers = list(tokenizers)
        self._owner = os.getpid()
        self._pool = ProcessPoolExecutor(n, get_context('spawn'), _start, (settings,))
        weakref.finalize(self, self._pool.shutdown, cancel_futures=True)
        self.n = n
        self.seconds = 0.0

    def stream(
        self,
        number: int,
        groups: Iterable[_Group],
        texts_of: Callable[[_Group], Sequence[str]],
        most: int = MOST_IDS,
    ) -> Iterator[tuple[_Group, TokenIds]]:
        """Each group and the ids of its texts, in order.

        Parameters
        ----------
        number : of the tokenizer
        groups : at most `GROUPS_AHEAD` of them are read ahead
        texts_of : gives the texts of a group
        most : of a long text, at least so many ids
        """
        ahead: deque[tuple[_Group, Callable[[], TokenIds]]] = deque()
        for group in groups:
            ahead.append((group, self.begin(number, texts_of(group), most)))
            if len(ahead) > GROUPS_AHEAD:
                first, ids = ahead.popleft()
                yield first, ids()
        yield from ((group, ids()) for group, ids in ahead)

    def begin(
        self, number: int, texts: Sequence[str], most: int = MOST_IDS
    ) -> Callable[[], TokenIds]:
        """Begin to tokenise texts with the tokenizer of this number.

        The function returned waits for their ids, and raises what `tokenised` raises. In a forked
        process, which cannot reach the workers, it computes them.
        """
        if os.getpid() != self._owner:
            return partial(tokenised, self._tokenizers[number], texts, most)
        size = min(max(-(-len(texts) // self.n), FEWEST), MOST)
        with self._processes_needed():
            jobs = []
            for first in range(0, len(texts), size):
                part = texts[first : first + size]
                jobs.append(self._pool.submit(_tokenise_in_worker, number, part, most))

        def wait() -> TokenIds:
            with self._processes_needed():
                parts = [job.result() for job in jobs]
            self.seconds += sum(part.seconds for part in parts) / self.n
            ids = [part.token_ids.ids for part in parts]
            lengths = [part.token_ids.lengths for part in parts]
            return TokenIds(
                np.concatenate([np.empty(0, np.int32), *ids]),
                np.concatenate([np.empty(0, np.int64), *lengths]),
            )

        return wait

    @contextmanager
    def _processes_needed(self) -> Iterator[None]:
        """A context whose errors say that a process was ended from outside."""
        try:
            yield
        # OSError: from the pipe of a pool that just broke
        except (BrokenProcessPool, OSError) as error:
            # A process that was started while the pool broke would never end, and Python waits
            # for it at its own end.
            for process in list(self._pool._processes.values()):
                process.kill()
            raise PyseriniRepbertError(
                'a process that tokenises was ended from outside (out of memory?): try again with '
                'fewer',
                parameters=('workers',),
            ) from error


_tokenizers: list[Tokenizer] = []  # of a worker process


def _start(settings: Sequence[str]) -> None:
    from tokenizers import Tokenizer

    os.environ['TOKENIZERS_PARALLELISM'] = 'false'
    # Ctrl-C reaches all processes; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    _tokenizers.extend(map(Tokenizer.from_str, settings))


def _tokenise_in_worker(number: int, texts: Sequence[str], most: int) -> _TimedIds:
    """The ids of texts by the tokenizer of this number, in a worker process."""
    start = time.perf_counter()
    token_ids = tokenised(_tokenizers[number], texts, most)
    return _TimedIds(token_ids, time.perf_counter() - start)
