"""Processes that turn texts into token ids, beside the device that computes."""

from __future__ import annotations

import os
import signal
import time
import weakref
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

from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.models.token_ids import FEWEST, MOST_IDS, TokenIds, tokenised
from pyserini_repbert.processes import end_with_parent

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# The most texts that a worker gets at a time.
MOST = 512
# Groups of texts in the workers; of 4,096 texts each, one keeps eight workers busy.
GROUPS_AHEAD = 2

_Group = TypeVar('_Group')


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
