"""Counters of a service, in Prometheus's format."""

from __future__ import annotations

import os
from collections.abc import Iterable

from starlette.responses import Response

from pyserini_repbert.errors import needs
from pyserini_repbert.serve.answer_models import Step
from pyserini_repbert.serve.queues import JobQueue
from pyserini_repbert.serve.settings import METRICS_FOLDER

with needs('prometheus_client', __name__, 'serve'):
    from prometheus_client import (
        CollectorRegistry,
        Counter,
        Gauge,
        Histogram,
        ProcessCollector,
        generate_latest,
        multiprocess,
    )

# Upper bounds of the histograms: seconds, and jobs of a batch.
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_SIZES = (1, 2, 4, 8, 16, 32, 64)
_METHODS = ('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS')


class Metrics:
    """Counters in a separate registry, so that several services can run in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        common = {'namespace': 'pyserini_repbert', 'registry': self.registry}
        self._requests = Counter(
            'requests', 'Requests answered', ['route', 'method', 'status'], **common
        )
        self._seconds = Histogram(
            'request_seconds', 'Time to an answer', ['route'], buckets=_SECONDS, **common
        )
        self._batches = Histogram(
            'batch_size', 'Jobs done together', ['queue'], buckets=_SIZES, **common
        )
        self._steps = Histogram(
            'step_seconds', 'Time of a step of an answer', ['step'], buckets=_SECONDS, **common
        )
        self._inferences = Counter('inferences', 'Model inputs', ['step'], **common)
        self._waiting = Gauge(
            'waiting', 'Jobs that wait', ['queue'], multiprocess_mode='livesum', **common
        )
        ProcessCollector(registry=self.registry)

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request.

        Parameters
        ----------
        route : its path with the names of parameters
        method : of HTTP; a client may send any word
        status : of the answer
        seconds : until the answer
        """
        known = method if method in _METHODS else 'other'
        self._requests.labels(route, known, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def count_batch(self, queue: str, size: int, waiting: int) -> None:
        """Count a batch of a queue, and the jobs that wait beside it."""
        self._batches.labels(queue).observe(size)
        self._waiting.labels(queue).set(waiting)

    def count_step(self, step: Step) -> None:
        """Count a step of an answer; a stage counts under its reranker's name, whatever its
        depth.
        """
        name = step['step'].partition('@')[0]
        self._steps.labels(name).observe(step['ms'] / 1000)
        if step['inferences']:
            self._inferences.labels(name).inc(step['inferences'])

    def response(self, queues: Iterable[JobQueue]) -> Response:
        """All counters, and the lengths of the queues, in Prometheus's format.

        Of a service of several processes, the sums over all of them.
        """
        for queue in queues:
            self._waiting.labels(queue.name).set(len(queue.waiting))
        registry = self.registry
        if METRICS_FOLDER in os.environ:
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)
        return Response(generate_latest(registry), media_type='text/plain; version=0.0.4')
