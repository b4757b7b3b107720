"""The service's counters, for Prometheus."""

from __future__ import annotations

from pyserini_repbert.errors import needs
from pyserini_repbert.serve.forms import Step

with needs('prometheus_client', __name__, 'serve'):
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_SIZES = (1, 2, 4, 8, 16, 32, 64)
_METHODS = ('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS')


class Metrics:
    """Counters in a registry of their own, so that several services can run in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own = {'registry': self.registry}
        self._requests = Counter('pyserini_repbert_requests', 'Requests answered', ['route', 'method', 'status'], **own)
        self._seconds = Histogram(
            'pyserini_repbert_request_seconds', 'Time to an answer', ['route'], buckets=_SECONDS, **own
        )
        self._batches = Histogram('pyserini_repbert_batch_size', 'Jobs done together', ['lane'], buckets=_SIZES, **own)
        self._steps = Histogram(
            'pyserini_repbert_step_seconds', 'Time of a step of an answer', ['step'], buckets=_SECONDS, **own
        )
        self._inferences = Counter('pyserini_repbert_inferences', 'Model inputs', ['step'], **own)
        self._waiting = Gauge('pyserini_repbert_waiting', 'Jobs that wait', ['lane'], **own)
        ProcessCollector(registry=self.registry)

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request; status 0, of a client that went away before an answer, counts as 499."""
        known = method if method in _METHODS else 'other'  # a client may send any word
        self._requests.labels(route, known, str(status or 499)).inc()
        self._seconds.labels(route).observe(seconds)

    def batch(self, lane: str, size: int) -> None:
        """Count a batch of a lane."""
        self._batches.labels(lane).observe(size)

    def step(self, step: Step) -> None:
        """Count a step of an answer; a stage counts under its reranker's name, whatever its depth."""
        name = step.step.partition('@')[0]
        self._steps.labels(name).observe(step.ms / 1000)
        if step.inferences:
            self._inferences.labels(name).inc(step.inferences)

    def waiting(self, lane: str, length: int) -> None:
        """Note the length of a lane's queue."""
        self._waiting.labels(lane).set(length)

    def text(self) -> bytes:
        """All counters in Prometheus's format."""
        return bytes(generate_latest(self.registry))
