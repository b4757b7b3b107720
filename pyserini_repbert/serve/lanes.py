"""Lanes: each is one thread that works off a bounded queue, so that what one lane does never blocks another.

Jobs of one kind that wait at the same time are done together: many queries cost little more than one to encode and to
multiply. A job that comes alone starts at once; only while there are several does a lane wait, for a few milliseconds,
until as many have come as were done together the last time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from pyserini_repbert.serve.refusals import OverloadedError
from pyserini_repbert.serve.settings import ServeSettings

_Result = TypeVar('_Result')
_Given = TypeVar('_Given')


@dataclass(eq=False)
class _Job:
    kind: Hashable
    run: Callable[[list[Any]], Sequence[Any]]
    given: Any
    answer: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Lane:
    """One thread and its queue. Its methods are called in the event loop that `start` was called in.

    Parameters
    ----------
    name : for messages and metrics
    waiting : jobs that may wait; further ones are refused
    window : seconds that a lane waits for more jobs of a kind, while there are several
    together : how many jobs of a kind are done together at most
    on_batch : called with the number of jobs of each batch
    """

    def __init__(
        self,
        name: str,
        waiting: int,
        window: float = 0.0,
        together: int = 1,
        on_batch: Callable[[int], object] = lambda size: None,
    ) -> None:
        self.name, self.window, self.together = name, window, together
        self._most, self._on_batch = waiting, on_batch
        self._jobs: deque[_Job] = deque()
        self._come = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f'lane-{name}')
        self._worker: asyncio.Task[None] | None = None
        self._before = 1  # how many were done together the last time
        self._busy = False

    def start(self) -> None:
        """Begin to work off the queue."""
        self._worker = asyncio.create_task(self._work(), name=f'lane-{self.name}')

    async def stop(self) -> None:
        """Finish what waits, and end the thread."""
        while self._jobs or self._busy:
            await asyncio.sleep(0.005)
        if self._worker is not None:
            self._worker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._worker
        self._thread.shutdown()

    @property
    def length(self) -> int:
        """How many jobs wait."""
        return len(self._jobs)

    async def call(self, run: Callable[..., _Result], *arguments: Any) -> _Result:
        """`run(*arguments)` in the lane's thread, alone.

        Raises OverloadedError where too many jobs wait, and what `run` raises.
        """
        answer: _Result = await self._queued(_Job(None, lambda given: [run(*given[0])], arguments))
        return answer

    async def together_with_others(
        self, kind: Hashable, run: Callable[[list[_Given]], Sequence[_Result]], given: _Given
    ) -> _Result:
        """`run([given, …])` with what else waits of the same kind: the result for `given`.

        Where `run` fails for several, it is called for each alone, so that an error is its own query's.
        Raises OverloadedError where too many jobs wait, and what `run` raises.
        """
        answer: _Result = await self._queued(_Job(kind, run, given))
        return answer

    async def _queued(self, job: _Job) -> Any:
        if len(self._jobs) >= self._most:
            raise OverloadedError(f'{len(self._jobs)} requests wait already ({self.name}): try again later')
        self._jobs.append(job)
        self._come.set()
        try:
            return await job.answer
        except asyncio.CancelledError:  # nobody waits for it: its place in the queue is free again
            with contextlib.suppress(ValueError):
                self._jobs.remove(job)
            raise

    async def _work(self) -> None:
        while True:
            await self._come.wait()
            while self._jobs:
                self._busy = True
                try:
                    await self._gathered()
                    await self._done(self._taken())
                finally:
                    self._busy = False
            self._come.clear()

    async def _gathered(self) -> None:
        """Wait for as many as were done together the last time, but not longer than the window."""
        wanted = min(self._before, self.together)
        if self.window <= 0 or self._jobs[0].kind is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.window):
                while len(self._jobs) < wanted:
                    self._come.clear()
                    await self._come.wait()

    def _taken(self) -> list[_Job]:
        """The first job, and what else waits of its kind, without those whose callers have gone."""
        taken: list[_Job] = []
        left: deque[_Job] = deque()
        for job in self._jobs:
            if job.answer.done():
                continue
            fits = not taken or (job.kind is not None and job.kind == taken[0].kind and len(taken) < self.together)
            (taken if fits else left).append(job)
        self._jobs = left
        if taken and taken[0].kind is not None:
            self._before = len(taken)
        return taken

    async def _done(self, jobs: list[_Job]) -> None:
        if not jobs:
            return
        self._on_batch(len(jobs))
        loop = asyncio.get_running_loop()
        try:
            results = await loop.run_in_executor(self._thread, _results, jobs[0].run, [job.given for job in jobs])
        except Exception as error:
            if len(jobs) > 1:
                for job in jobs:
                    await self._done([job])
            elif not jobs[0].answer.done():
                jobs[0].answer.set_exception(error)
            return
        for job, result in zip(jobs, results, strict=True):
            if not job.answer.done():
                job.answer.set_result(result)


class Lanes:
    """The lanes of a service: `dense`, `java`, `rerank`, and `files` for passages and uploads."""

    def __init__(self, settings: ServeSettings, on_batch: Callable[[str, int], object]) -> None:
        def lane(name: str, window: float, together: int) -> Lane:
            return Lane(name, settings.limits.waiting, window, together, partial(on_batch, name))

        self.dense = lane('dense', settings.window, settings.together)
        self.java = lane('java', 0.0, settings.together)
        self.rerank = lane('rerank', 0.0, 1)
        self.files = lane('files', 0.0, settings.together)
        self.all = (self.dense, self.java, self.rerank, self.files)


def _results(run: Callable[[list[Any]], Sequence[Any]], given: list[Any]) -> Sequence[Any]:
    """The results of `run(given)`, one for each; raises RuntimeError for another number of them."""
    try:
        results = run(given)
    except StopIteration as error:  # no future takes one: the lane would wait for it for ever
        raise RuntimeError('a job ended with StopIteration') from error
    if len(results) != len(given):
        raise RuntimeError(f'{len(given)} jobs of one kind had {len(results)} results')
    return results
