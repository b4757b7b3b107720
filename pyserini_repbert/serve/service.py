"""A service: its indexes, rerankers and queues, and its operations, which HTTP routes and MCP
tools call.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from pyserini_repbert import catalog
from pyserini_repbert.errors import InputError, MissingResourceError, UnknownNameError
from pyserini_repbert.explain.explaining import explanation
from pyserini_repbert.pipeline.spec import StageSpec
from pyserini_repbert.ranking import Query, Ranking
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.refusals import NotReadyError, TooLateError
from pyserini_repbert.serve.requests import Ask, check_query, checked
from pyserini_repbert.serve.rerankers import Rerankers
from pyserini_repbert.serve.searching import Answer, GoneError, RequestTrace, Step, answer
from pyserini_repbert.serve.settings import ServeSettings
from pyserini_repbert.serve.together import Queue
from pyserini_repbert.trace import Trace

_TRIMMED_EVERY = 2.0  # seconds; it takes some 20 ms, 0.1 ms if there is nothing to return
_WINDOW = 0.003  # seconds that dense queries wait for each other while several come
_TOGETHER = 64  # the most queries that are searched together
_Result = TypeVar('_Result')


class Service:
    """Answers requests; `open` it first.

    Its operations wait for their results: `run` calls them in a thread.
    """

    def __init__(
        self,
        settings: ServeSettings,
        on_batch: Callable[[str, int], object] = lambda queue, size: (
            None
        ),  # called with the size of each batch
        on_step: Callable[[Step], object] = lambda step: (
            None
        ),  # called with each step of each answer
    ) -> None:
        self.settings = settings
        self._on_step = on_step
        limits = settings.limits
        waiting = settings.limits.waiting
        queues = (
            Queue('dense', waiting, _TOGETHER, _WINDOW, on_batch, limits.search_seconds),
            Queue('java', waiting, _TOGETHER, 0.0, on_batch, limits.search_seconds),
            Queue('rerank', waiting, 1, 0.0, on_batch, limits.rerank_seconds),
        )
        self.queues = {queue.name: queue for queue in queues}
        # more threads than can wait in the queues and be worked for: a full queue refuses, not the
        # threads
        self._threads = ThreadPoolExecutor((waiting + _TOGETHER) * (len(queues) + 1), 'request')
        self.rerankers = Rerankers(settings, self.queues['rerank'])
        self.indexes: dict[str, ServedIndex] = {}
        self.traces: dict[
            str, RequestTrace
        ] = {}  # by the ids of the requests that wait for an answer
        self.failure: str | None = None  # why the indexes could not be opened
        self._trimming: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start the queues and open the indexes."""
        for queue in self.queues.values():
            queue.start()
        self._trimming = asyncio.create_task(_trimmed())
        self.indexes = await asyncio.to_thread(self._open_indexes)

    def _open_indexes(self) -> dict[str, ServedIndex]:
        """Open the indexes, those without a base_index first: alias -> index, in the order of
        the settings.
        """
        settings = self.settings.indexes
        on_ray = [f"'{alias}'" for alias, index_settings in settings.items() if index_settings.ray]
        if len(on_ray) > 1:  # workers occupy their machines, and each holds one index
            raise InputError(
                f'indexes {" and ".join(on_ray)} name a Ray cluster: a service searches one on Ray'
            )
        indexes: dict[str, ServedIndex] = {}
        for alias, index_settings in sorted(
            settings.items(), key=lambda item: item[1].base_index is not None
        ):
            name = index_settings.base_index
            base = indexes.get(name or '')
            if name and (base is None or base.index_type != 'tf'):
                near = '' if name in settings else catalog.did_you_mean(name, settings)
                raise InputError(
                    f"index '{alias}': its base_index '{name}' has to be a Lucene index here{near}"
                )
            indexes[alias] = ServedIndex(alias, index_settings, self.settings, self.queues, base)
        gc.collect()
        gc.freeze()  # to go through all that is open takes 80 ms, in which no request is answered
        return {alias: indexes[alias] for alias in settings}

    async def close(self) -> None:
        """Finish the waiting jobs, then stop the queues and close the indexes."""
        if self._trimming is not None:
            self._trimming.cancel()
        for queue in self.queues.values():
            await asyncio.to_thread(queue.stop)
        self._threads.shutdown()
        for index in self.indexes.values():
            index.close()
        gc.unfreeze()

    async def run(
        self,
        work: Callable[[RequestTrace], _Result],
        reranks: bool = False,
        trace: RequestTrace | None = None,
    ) -> _Result:
        """The result of `work(trace)`, which calls operations, in a thread; it ends early if its
        caller is cancelled.

        Raises TooLateError where the limits give no more time.
        """
        seconds = (
            self.settings.limits.rerank_seconds if reranks else self.settings.limits.search_seconds
        )
        trace = trace or RequestTrace()
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.get_running_loop().run_in_executor(self._threads, work, trace)
        except TimeoutError as error:
            raise TooLateError(
                f'no answer within {seconds:.0f} s: ask for less, or try again later'
            ) from error
        except GoneError as error:
            raise TooLateError('the request was given up') from error
        finally:
            trace.gone = True

    @property
    def served(self) -> Mapping[str, ServedIndex]:
        """The indexes by alias, at least one. Raises NotReadyError until all are open."""
        if not self.indexes:
            raise NotReadyError(self.failure or 'the indexes are being opened: ask again')
        return self.indexes

    def index(self, alias: str) -> ServedIndex:
        """The index with an alias.

        Raises UnknownNameError, with the nearest alias, and NotReadyError.
        """
        served = self.served
        if alias not in served:
            near = catalog.did_you_mean(alias, served)
            raise UnknownNameError(
                f"there is no index '{alias[:80]}' here{near}: there are {', '.join(served)}"
            )
        return served[alias]

    def search(self, alias: str, asks: Sequence[Ask], trace: Trace) -> list[Answer]:
        """The answers to questions, which are searched together."""
        index = self.index(alias)
        asks = [checked(ask, index, self.rerankers, self.settings.limits) for ask in asks]
        one = partial(
            answer, index=index, rerankers=self.rerankers, trace=trace, on_step=self._on_step
        )
        if len(asks) == 1:
            return [one(asks[0])]
        with ThreadPoolExecutor(len(asks)) as threads:
            return list(threads.map(one, asks))

    def rerank(
        self, alias: str, query: str, docids: Sequence[str], spec: StageSpec, trace: Trace
    ) -> Ranking:
        """Documents of an index in a reranker's order."""
        hits = self._hits(alias, query, docids, spec)
        return self.rerankers.stage(spec, trace).rank(
            [Query('0', query)], {'0': hits}, None, trace
        )['0']

    def _hits(self, alias: str, query: str, docids: Sequence[str], spec: StageSpec) -> Ranking:
        """The documents with their texts, if a client may have them reranked so."""
        index = self.index(alias)
        check_query(query, self.settings.limits)
        self.rerankers.check([spec])
        if len(set(docids)) < len(docids):
            raise InputError('a docid was given twice: give each once')
        texts = index.texts(docids)
        if None in texts:
            absent = docids[texts.index(None)]
            raise MissingResourceError(f"index '{index.alias}' has no document '{absent[:200]}'")
        return Ranking(docids, [0.0] * len(docids), texts)

    def explain(
        self,
        alias: str,
        model: str,
        query: str,
        docids: Sequence[str],
        options: Mapping[str, Any],
        trace: Trace,
    ) -> Any:
        """Explain passages by a reranker, or by the first one of a system; the form is
        `explain.explanation`'s.
        """
        first_of = {system: name for name, system in reversed(self.rerankers.systems.items())}
        name = model if model in self.rerankers.systems else first_of.get(model, model)
        hits = self._hits(alias, query, docids, StageSpec(name, len(docids)))
        return self.rerankers.queue.call(
            lambda: explanation(self.rerankers.opened(name), query, hits, **options, trace=trace),
            trace,
        )


async def _trimmed() -> None:
    """Return freed memory to the system now and then.

    Models read inputs of many shapes, and glibc keeps what each has freed: more than the models
    themselves take.
    """
    trim = getattr(ctypes.CDLL(None), 'malloc_trim', None)  # other C libraries have none
    while trim is not None:
        await asyncio.sleep(_TRIMMED_EVERY)
        await asyncio.to_thread(trim, 0)
