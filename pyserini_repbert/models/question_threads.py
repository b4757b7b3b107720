"""How many threads compute one question fastest: measured, not believed.

A question has some ten tokens. Threads then wait for each other longer than they compute, and much
longer on a machine that others use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyserini_repbert.models.timing import Contenders, best_times, layer_products

# Tokens of a question.
_ROWS = 16
# The passages of a small index, in 384 dimensions.
_PASSAGES = 20_000
_DIMENSIONS = 384
# So much slower than the fastest may be what takes fewer threads.
_AS_FAST = 1.03


@dataclass(frozen=True, slots=True)
class QuestionThreads:
    """The threads of one question.

    Attributes
    ----------
    threads : the fewest that take at most 3% longer than the fastest number
    reason : the measurement
    """

    threads: int
    reason: str


def question_threads() -> QuestionThreads:
    """The threads that one question takes on this machine, at most PyTorch's number."""
    return fewest_threads(best_times('threads of a question', _contenders))


def fewest_threads(times: Mapping[str, float]) -> QuestionThreads:
    """The threads to take by the milliseconds of each number of threads."""
    fastest = min(times.values())
    as_fast = [int(threads) for threads, ms in times.items() if ms <= fastest * _AS_FAST]
    measured = [f'{times[threads]:.3g} ms with {threads}' for threads in sorted(times, key=int)]
    return QuestionThreads(min(as_fast), f'products of a question take {", ".join(measured)}')


def _contenders() -> Contenders:
    """Products of a question and of a search, in 1, 2, 4, … threads and in all."""
    import torch

    most = torch.get_num_threads()
    encode = layer_products(_ROWS, torch.float32)
    vectors = torch.ones(_PASSAGES, _DIMENSIONS)
    query = torch.ones(_DIMENSIONS)

    def in_threads(threads: int) -> Callable[[], None]:
        def compute() -> None:
            torch.set_num_threads(threads)
            try:
                encode()
                vectors @ query
            finally:
                torch.set_num_threads(most)

        return compute

    numbers = {most}
    threads = 1
    while threads < most:
        numbers.add(threads)
        threads *= 2
    return {str(number): in_threads(number) for number in sorted(numbers)}
