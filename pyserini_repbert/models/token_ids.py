"""Texts to token ids in flat arrays: in this process, or in worker processes beside the device."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
import weakref
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.values import has_surrogates
from pyserini_repbert.errors import InputError, PyseriniRepbertError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_TOKENISED_AT_ONCE = (
    256  # texts; bounds the memory of the tokenizer's encodings, which hold more than ids
)
# A text of more characters is tokenised piece by piece, until it has `MOST_IDS` wordpieces or more:
# no model reads as many, and a passage may be a whole file.
PIECE = 200_000
MOST_IDS = 65_536
# BERT's tokenizer begins a new word before these: white space, punctuation (but for the brackets
# of special tokens) and Chinese characters.
_BORDER = re.compile('[ \t\n!-/:-@^-`{-~\u3001\u3002\u4e00-\u9fff]')
# texts that a worker gets at a time
FEWEST = 64
MOST = 512
GROUPS_AHEAD = (
    2  # groups of texts in the workers; of 4,096 texts each, one keeps eight workers busy
)

_BERT = 'BertPreTokenizer'
_Group = TypeVar('_Group')


@dataclass(frozen=True)
class TokenIds:
    """The wordpiece ids of n texts, without special tokens, not truncated.

    Of a text of more than `PIECE` characters, at least the first `MOST_IDS`.
    """

    ids: NDArray[np.int32]  # (total,), text after text
    lengths: NDArray[np.int64]  # (n,), wordpieces of each text

    def __len__(self) -> int:
        return len(self.lengths)


def tokenised(backend: Tokenizer, texts: Sequence[str]) -> TokenIds:
    """The ids of texts.

    Raises InputError for what is not a text, or has characters that UTF-8 cannot hold.
    """
    all_ids = array('i')
    lengths = array('q')
    for start in range(0, len(texts), _TOKENISED_AT_ONCE):
        part = list(texts[start : start + _TOKENISED_AT_ONCE])
        for text in part:
            if not isinstance(
                text, str
            ):  # tokenizers take a pair, too, and read both parts as one input
                raise InputError(f'a text was expected, {ascii(text)[:60]} was given')
        try:
            ids_of_part = _ids_of(backend, part)
        except TypeError as error:
            bad = next(filter(has_surrogates, part), None)
            if bad is None:
                raise
            raise InputError(
                f'{ascii(bad)[:60]} is no text that UTF-8 can hold: mend or remove it'
            ) from error
        for ids in ids_of_part:
            all_ids.fromlist(ids)
            lengths.append(len(ids))
    return TokenIds(np.array(all_ids, np.int32), np.array(lengths, np.int64))


def _ids_of(backend: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """The ids of each text; of a long one, as many as `TokenIds` says."""
    if max(map(len, texts)) <= PIECE or type(backend.pre_tokenizer).__name__ != _BERT:
        encodings = backend.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]
    ids_of_texts = []
    for text in texts:
        ids: list[int] = []
        for piece in pieces(text, PIECE):
            (encoding,) = backend.encode_batch_fast([piece], add_special_tokens=False)
            ids += encoding.ids
            if len(ids) >= MOST_IDS:
                break
        ids_of_texts.append(ids)
    return ids_of_texts


def pieces(text: str, size: int) -> Iterator[str]:
    """The text cut where BERT's tokenizer begins a word, into the longest pieces of at most `size`.

    A word that is longer stays whole.
    """
    start = 0
    while len(text) - start > size:
        cut = text.rfind(' ', start + 1, start + size + 1)
        if cut < 0:
            borders = (border.start() for border in _BORDER.finditer(text, start + 1))
            cut = next(borders, len(text))
            for border in borders:
                if border > start + size:
                    break
                cut = border
        yield text[start:cut]
        start = cut
    yield text[start:]


class TokenizerWorkers:
    """n processes that tokenise, each on one thread; they start with the first texts and end with
    this object.

    A call names one of the `tokenizers` by its place. `seconds` are those that the processes have
    worked, divided by n.
    """

    def __init__(self, tokenizers: Sequence[Tokenizer], n: int) -> None:
        settings = [tokenizer.to_str() for tokenizer in tokenizers]
        self._pool = ProcessPoolExecutor(n, get_context('spawn'), _start, (settings,))
        weakref.finalize(self, self._pool.shutdown, cancel_futures=True)
        self.n = n
        self.seconds = 0.0

    def stream(
        self, place: int, groups: Iterable[_Group], texts_of: Callable[[_Group], Sequence[str]]
    ) -> Iterator[tuple[_Group, TokenIds]]:
        """Each group and the ids of its texts, in order; at most `GROUPS_AHEAD` groups are read
        ahead.
        """
        ahead: deque[tuple[_Group, Callable[[], TokenIds]]] = deque()
        for group in groups:
            ahead.append((group, self.begun(place, texts_of(group))))
            if len(ahead) > GROUPS_AHEAD:
                first, ids = ahead.popleft()
                yield first, ids()
        yield from ((group, ids()) for group, ids in ahead)

    def begun(self, place: int, texts: Sequence[str]) -> Callable[[], TokenIds]:
        """Begin with texts.

        The function returned waits for their ids, and raises what `tokenised` raises.
        """
        size = min(max(-(-len(texts) // self.n), FEWEST), MOST)
        with _one_line():
            parts = [
                self._pool.submit(_answer, place, texts[i : i + size])
                for i in range(0, len(texts), size)
            ]

        def joined() -> TokenIds:
            with _one_line():
                answers = [part.result() for part in parts]
            self.seconds += sum(seconds for _, seconds in answers) / self.n
            ids = np.concatenate([np.empty(0, np.int32), *(answer.ids for answer, _ in answers)])
            lengths = np.concatenate(
                [np.empty(0, np.int64), *(answer.lengths for answer, _ in answers)]
            )
            return TokenIds(ids, lengths)

        return joined


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except (
        BrokenProcessPool,
        OSError,
    ) as error:  # OSError: from the pipe of a pool that just broke
        raise PyseriniRepbertError(
            'a process that tokenises was ended from outside (out of memory?): try again with '
            'fewer',
            parameters=('workers',),
        ) from error


_tokenizers: list[Tokenizer] = []  # of a worker process


def _start(settings: Sequence[str]) -> None:
    from tokenizers import Tokenizer

    os.environ['TOKENIZERS_PARALLELISM'] = 'false'
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches all processes; the first one ends the others
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _tokenizers.extend(map(Tokenizer.from_str, settings))


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, killed say."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


def _answer(place: int, texts: Sequence[str]) -> tuple[TokenIds, float]:
    """The ids of texts, and the seconds that they took."""
    start = time.perf_counter()
    return tokenised(_tokenizers[place], texts), time.perf_counter() - start
