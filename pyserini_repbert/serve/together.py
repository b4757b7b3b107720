"""`Together`: a ranker that answers the queries of several requests at once; and the queues that it
waits in.

Many queries cost little more than one to encode and to multiply. A query that comes alone is
searched at once; after a batch of several, a queue waits a few milliseconds until as many have come
again.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pyserini_repbert.ranking import Query, Ranker, Run
from pyserini_repbert.serve.refusals import OverloadedError
from pyserini_repbert.trace import SILENT, Trace

_PACE_OVER = 4  # batches that the mean time of a job moves over
_LOOKED_AGAIN = 0.25  # seconds after which a waiting job asks whether its request is still there


@dataclass(eq=False)
class _Job:
    work: Callable[[list[Any]], Sequence[Any]]
    given: Any
    kind: Hashable
    result: Future[Any] = field(default_factory=Future)


class Queue:
    """One thread that works off jobs, so that rerankers never block a search."""

    def __init__(
        self,
        name: str,  # for messages and metrics
        waiting: int,  # jobs that may wait; further ones are refused
        together: int = 1,  # the most jobs of a batch, which are all of one kind
        window: float = 0.0,  # seconds to wait for more jobs after a batch of several
        on_batch: Callable[[str, int], object] = lambda name, size: (
            None
        ),  # called with each batch's number of jobs
        # a job that would wait longer, by the pace of the last ones, is refused at once
        seconds: float = math.inf,
    ) -> None:
        self.name = name
        self.waiting = waiting
        self.together = together
        self.window = window
        # seconds a job, a moving mean
        self.seconds = seconds
        self._pace = 0.0
        self._on_batch = on_batch
        self.jobs: deque[_Job] = deque()  # those that wait
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name=f'queue-{name}', daemon=True)
        self._last_size = 1
        self._stopping = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Finish the waiting jobs, then end the thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join()

    def call(self, work: Callable[[], Any], trace: Trace = SILENT) -> Any:
        """The result of `work()`, run in the queue's thread; errors are those of
        `together_with_others`.
        """
        return self.together_with_others(lambda _: [work()], None, None, trace)

    def together_with_others(
        self,
        work: Callable[[list[Any]], Sequence[Any]],
        given: Any,
        kind: Hashable,
        trace: Trace = SILENT,
    ) -> Any:
        """The result for `given` of one `work([given, …])` over all waiting jobs of the same kind;
        None: alone.

        If `work` fails for a batch, it is called for each job alone, so that an error reaches only
        the job that caused it. Raises OverloadedError where too many jobs wait, or too long ones;
        what `work` raises; and what `trace.advance` raises: then the job leaves the queue.
        """
        job = _Job(work, given, kind)
        with self._changed:
            if len(self.jobs) >= self.waiting:
                raise OverloadedError(
                    f'{len(self.jobs)} requests wait already ({self.name}): try again later'
                )
            if (expected := len(self.jobs) * self._pace) > self.seconds:
                raise OverloadedError(
                    f'{expected:.0f} s of work wait already ({self.name}): try again later'
                )
            self.jobs.append(job)
            self._changed.notify()
        try:
            while not job.result.done():
                with suppress(TimeoutError):
                    job.result.exception(_LOOKED_AGAIN)
                trace.advance(0)
        except BaseException:
            job.result.cancel()
            with self._changed:
                if job in self.jobs:
                    self.jobs.remove(job)
            raise
        return job.result.result()

    def _work(self) -> None:
        while jobs := self._next_jobs():
            self._on_batch(self.name, len(jobs))
            start = time.monotonic()
            wanted = [job for job in jobs if job.result.set_running_or_notify_cancel()]
            if self.together == 1:
                # While two threads hold OpenMP's threads, those of both wait slowly: a query takes
                # twice as long.
                thread = threading.Thread(
                    target=_run, args=(wanted,), name=f'job-{self.name}', daemon=True
                )
                thread.start()
                thread.join()
            else:
                _run(wanted)
            self._pace += ((time.monotonic() - start) / len(jobs) - self._pace) / _PACE_OVER

    def _next_jobs(self) -> list[_Job]:
        """Take the first job and those of its kind from the queue, once there is one; none where
        the queue stops.
        """
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self.jobs or self._stopping)
                if self.jobs and self.jobs[0].kind is not None:
                    self._changed.wait_for(lambda: len(self.jobs) >= self._last_size, self.window)
                if self.jobs or self._stopping:  # a job may have left
                    break
            jobs = list(self.jobs)[:1]
            if jobs and jobs[0].kind is not None:
                jobs = [job for job in self.jobs if job.kind == jobs[0].kind][: self.together]
                self._last_size = len(jobs)
            for job in jobs:
                self.jobs.remove(job)
            return jobs


def _run(jobs: list[_Job]) -> None:
    try:
        results = jobs[0].work([job.given for job in jobs]) if jobs else ()
    except Exception as error:
        if len(jobs) == 1:
            jobs[0].result.set_exception(error)
        else:
            for job in jobs:
                _run([job])
        return
    for job, result in zip(jobs, results, strict=True):
        job.result.set_result(result)


class Together(Ranker):
    """A ranker in a queue: a first stage searches for all requests that wait, a reranker takes
    one after the other.
    """

    def __init__(self, ranker: Ranker, queue: Queue, name: str) -> None:
        self.ranker = ranker
        self.queue = queue
        self.name = name
        self.reads = ranker.reads

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        if run is None:
            ranked: Run = self.queue.together_with_others(
                self._searched, (topics, k), self.ranker, trace
            )
        else:
            trace.begins(
                self.name, sum(self.planned([len(run[topic.qid]) for topic in topics])), 'inputs'
            )
            ranked = self.queue.call(lambda: self.ranker.rank(topics, run, k, trace), trace)
        return ranked

    def _searched(self, asked: Sequence[tuple[Sequence[Query], int]]) -> list[Run]:
        """The run of each (topics, k): all are searched to the greatest k, and each ranking is
        cut to its own.
        """
        texts = [topic.text for topics, _ in asked for topic in topics]
        together = [Query(str(number), text) for number, text in enumerate(texts)]
        rankings = iter(self.ranker.rank(together, None, max(k for _, k in asked)).values())
        return [{topic.qid: next(rankings)[:k] for topic in topics} for topics, k in asked]

    def planned(self, lengths: Sequence[int]) -> list[int]:
        return self.ranker.planned(lengths)
