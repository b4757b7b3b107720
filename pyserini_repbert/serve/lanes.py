"""Lanes: each is one thread that works off a bounded queue, so that no lane blocks another.

Jobs of one kind that wait at the same time are done as a batch: many queries cost little more than one to encode and to
multiply. A job that comes alone starts at once; after a batch of several, a lane waits a few milliseconds until as many
have come again.
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

_WINDOW = 0.003  # seconds that dense queries wait for each other while several come
_TOGETHER = 64  # the most jobs of a batch
_Result = TypeVar('_Result')
_Given = TypeVar('_Given')


@dataclass(eq=False)
class _Job:
    kind: Hashable
    run: Callable[[list[Any]], Sequence[Any]]
    given: Any
    answer: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Lane:
    """One thread and its queue. Call its methods in the event loop that `start` was called in.

    Parameters
    ----------
    name : for messages and metrics
    waiting : jobs that may wait; further ones are refused
    window : seconds to wait for more jobs after a batch of several
    together : the most jobs in a batch, which are all of one kind
    on_batch : called with the number of jobs in each batch
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
        self._before = 1  # jobs in the last batch
        self._busy = False

    def start(self) -> None:
        """Start to work off the queue."""
        self._worker = asyncio.create_task(self._work(), name=f'lane-{self.name}')

    async def stop(self) -> None:
        """Finish the waiting jobs, then end the thread."""
        while self._jobs or self._busy:
            await asyncio.sleep(0.005)
        if self._worker is not None:
            self._worker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._worker
        self._thread.shutdown()

    @property
    def length(self) -> int:
        """The number of waiting jobs."""
        return len(self._jobs)

    async def call(self, run: Callable[..., _Result], *arguments: Any) -> _Result:
        """The result of `run(*arguments)`, run in the lane's thread as a job of its own.

        Raises OverloadedError where too many jobs wait, and what `run` raises.
        """
        answer: _Result = await self._queued(_Job(None, lambda given: [run(*given[0])], arguments))
        return answer

    async def together_with_others(
        self, kind: Hashable, run: Callable[[list[_Given]], Sequence[_Result]], given: _Given
    ) -> _Result:
        """The result for `given` of one `run([given, …])` over all waiting jobs of the same kind.

        If `run` fails for a batch, it is called for each job alone, so that an error reaches only the job that caused
        it. Raises OverloadedError where too many jobs wait, what `run` raises, and RuntimeError if `run` does not
        return one result for each job.
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
        except asyncio.CancelledError:  # its caller has gone: free its place in the queue
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
        """Wait until as many jobs wait as the last batch had, but no longer than `window`."""
        wanted = min(self._before, self.together)
        if self.window <= 0 or self._jobs[0].kind is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.window):
                while len(self._jobs) < wanted:
                    self._come.clear()
                    await self._come.wait()

    def _taken(self) -> list[_Job]:
        """Take the first job and those of its kind from the queue, which also loses jobs whose callers have gone."""
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
    """The lanes of a service: `dense`, `java`, `rerank`, and `files` for stored passages."""

    def __init__(self, settings: ServeSettings, on_batch: Callable[[str, int], object]) -> None:
        def lane(name: str, window: float, together: int) -> Lane:
            return Lane(name, settings.limits.waiting, window, together, partial(on_batch, name))

        self.dense = lane('dense', _WINDOW, _TOGETHER)
        self.java = lane('java', 0.0, _TOGETHER)
        self.rerank = lane('rerank', 0.0, 1)
        self.files = lane('files', 0.0, _TOGETHER)
        self.all = (self.dense, self.java, self.rerank, self.files)


def _results(run: Callable[[list[Any]], Sequence[Any]], given: list[Any]) -> Sequence[Any]:
    """The results of `run(given)`. Raises RuntimeError unless there is one for each."""
    try:
        results = run(given)
    except StopIteration as error:  # a future refuses it, and the lane would wait for ever
        raise RuntimeError('a job ended with StopIteration') from error
    if len(results) != len(given):
        raise RuntimeError(f'{len(given)} jobs of one kind had {len(results)} results')
    return results
