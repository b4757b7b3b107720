"""Queues of jobs, and `BatchedRanker`, which searches for several requests at once.

Many queries cost little more than one to encode and to multiply. A query that comes alone is
searched at once. After a batch of several, a queue waits a few milliseconds for as many to come
again.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Self

from pyserini_repbert.ranking import Query, Ranker, Ranking, Reason, Run, Unjudged
from pyserini_repbert.serve.refusals import OverloadedError
from pyserini_repbert.trace import SILENT, Notes, Trace

# What a trace keeps of a fusion in a queue: the ranking of each part.
PARTS = 'parts'
logger = logging.getLogger(__name__)

_PACE_OVER = 4  # batches that the mean time of a job moves over
_CHECK_EVERY = 0.25  # seconds between checks that the request of a waiting job is still there


@dataclass(eq=False)
class _Job:
    """A call that waits.

    Attributes
    ----------
    work : takes the arguments of a batch of jobs, and gives a result for each
    argument : this job's
    batch_key : jobs of the same key may share a batch; None: the job shares none
    result : what `work` gave or raised
    """

    work: Callable[[list[Any]], Sequence[Any]]
    argument: Any
    batch_key: Hashable
    result: Future[Any] = field(default_factory=Future)


class JobQueue:
    """One thread that works off jobs, so that rerankers never block a search.

    Parameters
    ----------
    name : for messages and metrics
    max_waiting : jobs that may wait; further ones are refused
    max_batch : the most jobs of a batch
    window : seconds to wait for more jobs after a batch of several
    on_batch : called with the queue's name, the size of each batch, and the number of jobs waiting
    max_seconds : a job that would wait longer, judging by the pace of the last ones, is refused at
        once
    """

    def __init__(
        self,
        name: str,
        max_waiting: int,
        max_batch: int = 1,
        window: float = 0.0,
        on_batch: Callable[[str, int, int], object] | None = None,
        max_seconds: float = math.inf,
    ) -> None:
        self.name = name
        self.max_waiting = max_waiting
        self.max_batch = max_batch
        self.window = window
        self.max_seconds = max_seconds
        self.waiting: deque[_Job] = deque()
        self._on_batch = on_batch
        self._seconds_per_job = 0.0
        self._last_size = 1
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name=f'queue-{name}', daemon=True)

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
        """The result of `work()`, run alone in the queue's thread; raises the errors of
        `call_batched`.
        """
        return self.call_batched(lambda _: [work()], None, batch_key=None, trace=trace)

    def call_batched(
        self,
        work: Callable[[list[Any]], Sequence[Any]],
        argument: Any,
        batch_key: Hashable,
        trace: Trace = SILENT,
    ) -> Any:
        """The result for `argument` of one call of `work` with the arguments of all jobs of a
        batch.

        If `work` fails for a batch, it is called for each job alone, so that an error reaches only
        the job that caused it.

        Parameters
        ----------
        work : takes a list of arguments, and gives a result for each
        argument : of this job
        batch_key : jobs that wait with the same key share a batch; None: the job is run separately
        trace : its `advance` is called while the job waits

        Raises
        ------
        OverloadedError : too many jobs wait, or too long ones
        Exception : what `work` raises; and what `trace.advance` raises, which ends the job
        """
        job = _Job(work, argument, batch_key)
        self._add(job)
        try:
            while not job.result.done():
                with suppress(TimeoutError):
                    job.result.exception(_CHECK_EVERY)
                trace.advance(0)
        except BaseException:
            job.result.cancel()
            with self._changed:
                if job in self.waiting:
                    self.waiting.remove(job)
            raise
        return job.result.result()

    def _add(self, job: _Job) -> None:
        with self._changed:
            jobs = len(self.waiting)
            if jobs >= self.max_waiting:
                raise OverloadedError(
                    f'{jobs} requests wait already ({self.name}): try again later'
                )
            seconds = jobs * self._seconds_per_job
            if seconds > self.max_seconds:
                raise OverloadedError(
                    f'{seconds:.0f} s of work wait already ({self.name}): try again later'
                )
            self.waiting.append(job)
            self._changed.notify()

    def _work(self) -> None:
        """Work off batches until the queue stops and is empty."""
        while batch := self._take_batch():
            self._report(len(batch))
            start = time.monotonic()
            wanted = [job for job in batch if job.result.set_running_or_notify_cancel()]
            if self.max_batch == 1:
                # While two threads hold OpenMP's threads, all of these wait slowly: a query takes
                # twice as long.
                name = f'job-{self.name}'
                thread = threading.Thread(target=_run, args=(wanted,), name=name, daemon=True)
                thread.start()
                thread.join()
            else:
                _run(wanted)
            seconds_per_job = (time.monotonic() - start) / len(batch)
            self._seconds_per_job += (seconds_per_job - self._seconds_per_job) / _PACE_OVER

    def _report(self, size: int) -> None:
        """Call `on_batch`. Its errors are logged, because jobs would otherwise wait forever."""
        if self._on_batch is None:
            return
        try:
            self._on_batch(self.name, size, len(self.waiting))
        except Exception:
            logger.exception('a batch of the queue %s was not counted', self.name)

    def _take_batch(self) -> list[_Job]:
        """Wait for a job, and take it from the queue with those that share its batch; none if
        the queue stops.
        """
        with self._changed:
            self._wait_for_jobs()
            batch = self._next_batch()
            for job in batch:
                self.waiting.remove(job)
            return batch

    def _wait_for_jobs(self) -> None:
        """Wait until a job is there, and perhaps more, or the queue stops."""
        while True:
            self._changed.wait_for(lambda: self.waiting or self._stopping)
            if self.waiting and self.waiting[0].batch_key is not None:
                self._changed.wait_for(lambda: len(self.waiting) >= self._last_size, self.window)
            # While more jobs were waited for, the first one may have left.
            if self.waiting or self._stopping:
                return

    def _next_batch(self) -> list[_Job]:
        if not self.waiting:
            return []
        first = self.waiting[0]
        if first.batch_key is None:
            return [first]
        alike = [job for job in self.waiting if job.batch_key == first.batch_key]
        batch = alike[: self.max_batch]
        self._last_size = len(batch)
        return batch


def _run(batch: list[_Job]) -> None:
    """Set the results of jobs; after an error, each job is run again separately."""
    if not batch:
        return
    try:
        results = batch[0].work([job.argument for job in batch])
    except Exception as error:
        if len(batch) == 1:
            batch[0].result.set_exception(error)
            return
        for job in batch:
            _run([job])
        return
    for job, result in zip(batch, results, strict=True):
        job.result.set_result(result)


@dataclass(frozen=True)
class _Search:
    """The topics of one request, and how many hits each gets."""

    topics: Sequence[Query]
    k: int | None


@dataclass(frozen=True)
class _RequestRuns:
    """The run of one request, and the runs of the ranker's parts, in their order."""

    run: Run
    of_parts: Sequence[Run] = ()


class BatchedRanker(Ranker, recorded_as='BatchedRanker'):
    """A ranker that works in a queue.

    A first stage searches for all requests that wait, at once. A reranker takes one request after
    the other.

    Parameters
    ----------
    ranker : that works
    queue : where
    name : of the ranker, for clients
    keeps_parts : whether the trace keeps the rankings of a fusion's parts, as `PARTS`
    """

    def __init__(
        self, ranker: Ranker, queue: JobQueue, name: str, keeps_parts: bool = False
    ) -> None:
        self.keeps_parts = keeps_parts
        self.ranker = ranker
        self.queue = queue
        self.name = name
        self.reads = ranker.reads
        self.n_excerpts = ranker.n_excerpts
        self.has_excerpts = ranker.has_excerpts

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        new_run: Run
        if run is None:
            search = _Search(topics, k)
            runs: _RequestRuns = self.queue.call_batched(
                self._search_all, search, batch_key=self.ranker, trace=trace
            )
            new_run = runs.run
            if self.keeps_parts:
                for topic in topics:
                    trace.keep(PARTS, topic.qid, [run[topic.qid] for run in runs.of_parts])
        else:
            lengths = [len(run[topic.qid]) for topic in topics]
            trace.begins(self.name, sum(self.planned(lengths)), 'inputs')
            new_run = self.queue.call(lambda: self.ranker.rank(topics, run, k, trace), trace)
        return new_run

    def _search_all(self, searches: Sequence[_Search]) -> list[_RequestRuns]:
        """What each search finds: all are searched to the greatest depth, and each ranking is cut
        to its own.
        """
        queries: list[Query] = []
        for search in searches:
            for topic in search.topics:
                queries.append(Query(str(len(queries)), topic.text))
        depths = [search.k for search in searches if search.k is not None]
        deepest = max(depths) if len(depths) == len(searches) else None
        notes = Notes() if self.keeps_parts else SILENT
        run = self.ranker.rank(queries, None, deepest, notes)
        runs_of_parts = []
        if isinstance(notes, Notes):
            runs_of_parts = [leaf.run for leaf in notes.leaves()]
        runs_by_request = []
        all_numbers = iter(run)
        for search in searches:
            numbers = list(islice(all_numbers, len(search.topics)))
            qids = [topic.qid for topic in search.topics]
            rankings = [run[number][: search.k] for number in numbers]
            of_parts: list[Run] = []
            for of_part in runs_of_parts:
                rankings_of_part = [of_part[number] for number in numbers]
                of_parts.append(dict(zip(qids, rankings_of_part, strict=True)))
            request_run = dict(zip(qids, rankings, strict=True))
            runs_by_request.append(_RequestRuns(request_run, of_parts))
        return runs_by_request

    def by_documents(self) -> Self:
        ranker = self.ranker.by_documents()
        return self.with_settings(ranker=ranker)

    def holds(self, docid: str) -> bool:
        return self.ranker.holds(docid)

    @property
    def gives_document_scores(self) -> bool:
        return self.ranker.gives_document_scores

    def document_scores(
        self, topic: Query, docids: Sequence[str], hits: Ranking
    ) -> list[float | None]:
        return self.ranker.document_scores(topic, docids, hits)

    def unjudged(self, topic: Query) -> Unjudged | None:
        return self.ranker.unjudged(topic)

    def warnings(self, query: str) -> list[str]:
        return self.ranker.warnings(query)

    def reasons(self, query: str, docids: Sequence[str]) -> dict[str, tuple[Reason, ...]]:
        return self.ranker.reasons(query, docids)

    def planned(self, lengths: Sequence[int]) -> list[int]:
        return self.ranker.planned(lengths)

    def with_stored_texts(self, query: str, ranking: Ranking, n_excerpts: int = 1) -> Ranking:
        if not self.has_excerpts:
            return super().with_stored_texts(query, ranking, n_excerpts)

        def add_texts() -> Ranking:
            return self.ranker.with_stored_texts(query, ranking, n_excerpts)

        hits: Ranking = self.queue.call(add_texts)
        return hits

    def with_shown_texts(self, query: str, ranking: Ranking) -> Ranking:
        if not self.has_excerpts:
            return super().with_shown_texts(query, ranking)
        hits: Ranking = self.queue.call(lambda: self.ranker.with_shown_texts(query, ranking))
        return hits
