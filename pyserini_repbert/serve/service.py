"""A service: its indexes, rerankers and queues, and its operations, which HTTP routes and MCP
tools call.

The way of a search: a route or a tool makes a `Search` of the request and calls `Service.run`. In a
separate thread, `Service.search` checks it (`requests.resolve_search`), opens a pipeline of
`BatchedRanker`s (`searching.answer_search`), and runs it. The rankers wait in the queues. The route
then makes JSON of the `Answer` (`answers.search_answer`).
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pyserini_repbert import catalog
from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.identity import KnownCollection
from pyserini_repbert.collection.judgments import JudgmentStore
from pyserini_repbert.collection.nearest_sentences import MOST_INPUTS
from pyserini_repbert.errors import (
    InputError,
    LostCollectionError,
    MissingResourceError,
    PyseriniRepbertError,
    UnknownNameError,
)
from pyserini_repbert.explain.explaining import RANKINGS, explain_rankings, explanation
from pyserini_repbert.extension import loaded
from pyserini_repbert.models.ahead import return_memory
from pyserini_repbert.pipeline.spec import StageSpec
from pyserini_repbert.ranking import Query, Ranking
from pyserini_repbert.serve.answer_models import Step
from pyserini_repbert.serve.current import CurrentIndex
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.learning import CollectionLearner
from pyserini_repbert.serve.offered_rerankers import offered_rerankers
from pyserini_repbert.serve.queues import JobQueue
from pyserini_repbert.serve.refusals import NotAllowedError, NotReadyError, TooLateError
from pyserini_repbert.serve.requests import Search, check_query, resolve_search
from pyserini_repbert.serve.rerankers import Rerankers
from pyserini_repbert.serve.searching import (
    Answer,
    GoneError,
    RequestTrace,
    answer_search,
)
from pyserini_repbert.serve.settings import ServeSettings
from pyserini_repbert.serve.writes import CollectionWriter
from pyserini_repbert.trace import Trace

logger = logging.getLogger(__name__)

# Seconds between two looks for new generations of collections; a look takes a millisecond.
_LOOKED_EVERY = 0.5
# Seconds between two returns of memory; one takes some 20 ms, 0.1 ms if there is nothing to return.
_MEMORY_RETURNED_EVERY = 2.0
_WINDOW = 0.003  # seconds that dense queries wait for each other while several come
_MAX_BATCH = 64  # the most queries that are searched together
_Result = TypeVar('_Result')


class Service:
    """Answers requests; `open` it first.

    Its operations wait for their results: `run` calls them in a thread.

    Parameters
    ----------
    settings : its indexes and its limits
    on_batch : called with a queue's name, the size of each batch, and the number of jobs waiting
    on_step : called with each step of each answer

    Attributes
    ----------
    queues : by name
    rerankers : those that clients may name
    encoders : the indexes' encoders, for texts of other programs
    writers : of the collections that clients may write into, by alias
    judgment_stores : of the indexes that take judgments, by alias
    learners : of the collections that learn from their judgments, by alias
    traces : by the ids of the requests that wait for an answer
    failure : why the indexes could not be opened
    """

    def __init__(
        self,
        settings: ServeSettings,
        on_batch: Callable[[str, int, int], object] | None = None,
        on_step: Callable[[Step], object] = lambda step: None,
    ) -> None:
        self.settings = settings
        self._on_step = on_step
        limits = settings.limits
        waiting = limits.waiting
        queues = [
            JobQueue('dense', waiting, _MAX_BATCH, _WINDOW, on_batch, limits.search_seconds),
            JobQueue('java', waiting, _MAX_BATCH, 0.0, on_batch, limits.search_seconds),
            JobQueue('rerank', waiting, 1, 0.0, on_batch, limits.rerank_seconds),
        ]
        # Their answers may take long, so other rerankers must not wait for them.
        queues += [
            JobQueue(name, waiting, 1, 0.0, on_batch, limits.rerank_seconds)
            for name in offered_rerankers(settings)
        ]
        self.queues = {queue.name: queue for queue in queues}
        # There are more threads than can wait in the queues and be worked for: a full queue
        # refuses, not the threads.
        self._threads = ThreadPoolExecutor((waiting + _MAX_BATCH) * (len(queues) + 1), 'request')
        self.rerankers = Rerankers(settings, self.queues)
        # What extensions keep for further requests, by names that they choose.
        self.known_to_parts: dict[str, Any] = {}
        # By alias; empty until all are open.
        self._current: dict[str, CurrentIndex] = {}
        self._renewing = threading.Lock()
        self.writers: dict[str, CollectionWriter] = {}
        self._all_writers: dict[str, CollectionWriter] = {}
        # What extensions have started: each a `RunningPart`.
        self._running_parts: list[Any] = []
        self.judgment_stores: dict[str, JudgmentStore] = {}
        self.learners: dict[str, CollectionLearner] = {}
        self.traces: dict[str, RequestTrace] = {}
        self.failure: str | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Start the queues and open the indexes."""
        for queue in self.queues.values():
            queue.start()
        self._tasks.append(asyncio.create_task(_return_memory()))
        self._current = await asyncio.to_thread(self._open_indexes)
        self._open_writers()
        self._open_judgments()
        self._tasks.append(asyncio.create_task(self._follow_collections()))
        await asyncio.to_thread(self._start_parts)

    async def try_open(self) -> None:
        """Open it; `failure` says why that failed."""
        try:
            await self.open()
        except Exception as error:
            self.failure = str(error) if isinstance(error, PyseriniRepbertError) else repr(error)
            logger.debug('the indexes cannot be opened', exc_info=True)

    def _open_indexes(self) -> dict[str, CurrentIndex]:
        """Open the indexes, those without a base_index first: alias -> index, in the order of
        the settings.
        """
        settings = self.settings.indexes
        on_ray = [f"'{alias}'" for alias, index in settings.items() if index.ray]
        if len(on_ray) > 1:
            # Workers occupy their machines, and each holds one index.
            raise InputError(
                f'indexes {" and ".join(on_ray)} name a Ray cluster: a service searches at '
                'most one of them on Ray'
            )
        opened: dict[str, ServedIndex] = {}
        for alias in sorted(settings, key=lambda alias: settings[alias].base_index is not None):
            base = self._base_of(alias, opened)
            opened[alias] = ServedIndex(alias, settings[alias], self.settings, self.queues, base)
        gc.collect()
        # To go through all that is open takes 80 ms, in which no request is answered.
        gc.freeze()
        return {alias: CurrentIndex(opened[alias]) for alias in settings}

    async def _follow_collections(self) -> None:
        """Switch to each new generation of a collection, no matter which process published it."""
        reported: dict[str, str] = {}
        while True:
            await asyncio.sleep(_LOOKED_EVERY)
            for alias, current in self._current.items():
                try:
                    await asyncio.to_thread(self._renew, alias, current)
                    reported.pop(alias, None)
                    current.problem = None
                except Exception as error:
                    if isinstance(error, LostCollectionError):
                        current.problem = str(error)
                    # It is tried again, and said once.
                    if reported.get(alias) != str(error):
                        reported[alias] = str(error)
                        logger.warning(
                            "index '%s' stays on its generation, the newest cannot be opened: %s",
                            alias,
                            error,
                        )

    def _renew(self, alias: str, current: CurrentIndex) -> None:
        """Open the newest generation of a collection, if it is another."""
        with self._renewing:
            index = current.newest
            # What was learned since then also counts.
            index.forget_learned()
            if index.has_newer_version():
                settings = self.settings.indexes[alias]
                newer = ServedIndex(alias, settings, self.settings, self.queues, None, before=index)
                current.replace(newer)

    def _open_writers(self) -> None:
        """Let clients write into the collections that the settings say.

        Raises InputError if no key may write.
        """
        for alias in self._current:
            if not self.settings.indexes[alias].writable:
                continue
            if not self.settings.write_keys:
                raise InputError(
                    f"index '{alias}' is writable, and no key may write: give write_keys"
                )
            self.writers[alias] = self.writer_of(alias)

    def writer_of(self, alias: str) -> CollectionWriter:
        """What writes into a collection, for clients and for extensions; it is opened once."""
        if alias not in self._all_writers:
            current = self._current[alias]
            self._all_writers[alias] = CollectionWriter(
                Path(self.settings.indexes[alias].location),
                self.settings.device,
                self.settings.limits,
                on_published=partial(self._renew, alias, current),
                expected=partial(_known_collection, current),
            )
        return self._all_writers[alias]

    def _start_parts(self) -> None:
        """Let extensions do their work beside the service."""
        for part in loaded('in_services'):
            running = part.start(self)
            if running is not None:
                self._running_parts.append(running)

    def _open_judgments(self) -> None:
        """Let people judge in collections, and in the indexes whose settings name a file."""
        for alias, current in self._current.items():
            settings = self.settings.indexes[alias]
            if isinstance(settings.judgments, str):
                self.judgment_stores[alias] = JudgmentStore(Path(settings.judgments))
            elif current.newest.index.kind.is_writable and settings.judgments is None:
                folder = Path(settings.location)
                if not os.access(folder, os.W_OK):
                    logger.info("index '%s' takes no judgments: its folder is read-only", alias)
                    continue
                self.judgment_stores[alias] = judgments_of(folder)
                self.learners[alias] = CollectionLearner(folder, self.settings.device)

    def judgments(self, alias: str) -> JudgmentStore:
        """The judgments of an index.

        Raises the errors of `check_alias`, NotAllowedError for an index that takes none, and
        LostCollectionError if its folder no longer holds the collection.
        """
        self.check_alias(alias)
        self._check_folder(alias)
        store = self.judgment_stores.get(alias)
        if store is None:
            raise NotAllowedError(f"index '{alias}' takes no judgments here")
        return store

    def learner(self, alias: str) -> CollectionLearner:
        """What lets a collection learn. Raises errors as `judgments`."""
        self.check_alias(alias)
        self._check_folder(alias)
        learner = self.learners.get(alias)
        if learner is None:
            raise NotAllowedError(f"index '{alias}' does not learn from judgments here")
        return learner

    def _check_folder(self, alias: str) -> None:
        """Raises LostCollectionError if the folder of an index no longer holds the opened index."""
        self._current[alias].newest.index.has_newer()

    def check_ready(self) -> None:
        """Raises NotReadyError until the indexes are open, and where the folder of one holds
        another collection, an earlier state of it, or none.
        """
        problems = []
        for alias in self.served:
            problem = self._current[alias].problem
            if problem is not None:
                problems.append(f"index '{alias}': {problem}")
        if problems:
            raise NotReadyError('; '.join(problems))

    def renew(self, alias: str) -> None:
        """Answer new requests from what the folder of a collection has now."""
        self._renew(alias, self._current[alias])

    def _base_of(self, alias: str, opened: Mapping[str, ServedIndex]) -> ServedIndex | None:
        """The Lucene index that another one names as its base_index; None if it names none."""
        settings = self.settings.indexes
        name = settings[alias].base_index
        if not name:
            return None
        base = opened.get(name)
        if base is None or base.index_type != 'tf':
            near = '' if name in settings else catalog.did_you_mean(name, settings)
            raise InputError(
                f"index '{alias}': its base_index '{name}' has to be a Lucene index here{near}"
            )
        return base

    async def close(self) -> None:
        """Finish the waiting jobs, then stop the queues and close the indexes."""
        for part in self._running_parts:
            await asyncio.to_thread(part.stop)
        for writer in self._all_writers.values():
            await asyncio.to_thread(writer.stop)
        for learner in self.learners.values():
            await asyncio.to_thread(learner.stop)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for queue in self.queues.values():
            await asyncio.to_thread(queue.stop)
        self._threads.shutdown()
        for current in self._current.values():
            current.close()
        gc.unfreeze()

    async def run(
        self,
        work: Callable[[RequestTrace], _Result],
        reranks: bool = False,
        trace: RequestTrace | None = None,
    ) -> _Result:
        """The result of `work(trace)`, which calls operations, in a thread; it ends early if its
        caller is cancelled.

        Parameters
        ----------
        work : takes the trace
        reranks : whether it has the time limit of reranking, not of searches
        trace : None: a new one

        Raises
        ------
        TooLateError : the limits give no more time
        """
        limits = self.settings.limits
        seconds = limits.rerank_seconds if reranks else limits.search_seconds
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
        if not self._current:
            raise NotReadyError(self.failure or 'the indexes are being opened: ask again')
        return {alias: current.newest for alias, current in self._current.items()}

    def hold(self, alias: str) -> AbstractContextManager[ServedIndex]:
        """A context with the index that has an alias; of a collection, with its newest generation,
        which stays open until the end.

        Raises the errors of `check_alias`.
        """
        self.check_alias(alias)
        return self._current[alias].hold()

    def check_alias(self, alias: str) -> None:
        """Raises UnknownNameError, with the nearest alias, for an unknown one, and NotReadyError
        before the indexes are open.
        """
        served = self.served
        if alias not in served:
            near = catalog.did_you_mean(alias, served)
            raise UnknownNameError(
                f"there is no index '{alias[:80]}' here{near}: there are {', '.join(served)}"
            )

    def search(self, index: ServedIndex, search: Search, trace: Trace) -> Answer:
        """The answer to a search in an index that the caller holds."""
        (answer,) = self.search_batch(index, [search], trace)
        return answer

    def search_batch(
        self, index: ServedIndex, searches: Sequence[Search], trace: Trace
    ) -> list[Answer]:
        """The answers to searches, which are checked first and then made together."""
        limits = self.settings.limits
        resolved = [resolve_search(search, index, self.rerankers, limits) for search in searches]

        def answer(search: Search) -> Answer:
            return answer_search(search, index, self.rerankers, trace, self._on_step)

        if len(resolved) == 1:
            return [answer(resolved[0])]
        with ThreadPoolExecutor(len(resolved)) as threads:
            return list(threads.map(answer, resolved))

    def rerank(
        self, index: ServedIndex, query: str, docids: Sequence[str], stage: StageSpec, trace: Trace
    ) -> Ranking:
        """Documents of an index in a reranker's order.

        Parameters
        ----------
        index : which the caller holds
        query : a question
        docids : of the documents
        stage : the reranker, with its options
        trace : learns how far the reranking is
        """
        hits = self._check_hits(index, query, docids, stage)
        reranker = self.rerankers.stage(stage, trace, index.documents(None))
        run = reranker.rank([Query('0', query)], {'0': hits}, None, trace)
        return run['0']

    def explain(
        self,
        index: ServedIndex,
        model: str,
        query: str,
        docids: Sequence[str],
        options: Mapping[str, Any],
        trace: Trace,
    ) -> Any:
        """Why a reranker scores documents as it does, in the form of `explain.explanation`, or why
        rankings of a collection have them, in the form of `explain_rankings`.

        Parameters
        ----------
        index : which the caller holds
        model : a reranker; a system, which means its first reranker; a ranking of a collection; or
            `RANKINGS`, the rankings that answer if none is named
        query : a question
        docids : of the documents
        options : of `explain.explanation`
        trace : learns how far it is
        """
        explains_itself = index.passage_finder is not None
        if explains_itself and (model == RANKINGS or model in index.systems):
            return self._explain_rankings(index, model, query, docids, trace)
        if model == RANKINGS:
            raise InputError(
                f"index '{index.alias}' is not a collection, whose rankings explain hits: name a "
                "reranker as 'model'"
            )
        name = self.rerankers.resolve_name(model)
        hits = self._check_hits(index, query, docids, StageSpec(name, len(docids)))

        def explain() -> Any:
            return explanation(self.rerankers.open(name), query, hits, **options, trace=trace)

        return self.rerankers.queue_of(name).call(explain, trace)

    def _explain_rankings(
        self, index: ServedIndex, model: str, query: str, docids: Sequence[str], trace: Trace
    ) -> Any:
        """Why rankings of a collection have documents; arguments are as in `explain`."""
        limits = self.settings.limits
        check_query(query, limits)
        most = min(limits.rerank_depth, limits.inferences // MOST_INPUTS)
        if len(docids) > most:
            raise InputError(
                f'{len(docids)} documents were given, at most {most} are explained here'
            )
        hits = self._hits_of(index, query, docids, n_excerpts=1)
        systems = index.default if model == RANKINGS else (model,)

        def explain() -> Any:
            rankers = [index.ranker(name) for name in systems]
            return explain_rankings(model, rankers, query, hits)

        return self.queues['rerank'].call(explain, trace)

    def _check_hits(
        self, index: ServedIndex, query: str, docids: Sequence[str], stage: StageSpec
    ) -> Ranking:
        """The documents with their texts, if a client may have them reranked so."""
        check_query(query, self.settings.limits)
        self.rerankers.check([stage])
        return self._hits_of(index, query, docids, stage.n_excerpts)

    def _hits_of(
        self, index: ServedIndex, query: str, docids: Sequence[str], n_excerpts: int
    ) -> Ranking:
        """The documents with their texts.

        Raises InputError for one given twice, MissingResourceError for an unknown one.
        """
        stored = [index.store.stored_docid(docid) for docid in docids]
        if len(set(stored)) < len(stored):
            raise InputError('a docid was given twice: give each once')
        hits = Ranking(stored, [0.0] * len(stored))
        hits = index.with_texts(query, hits, n_excerpts)
        for hit in hits:
            if hit.text is None:
                raise MissingResourceError(
                    f"index '{index.alias}' has no document '{hit.docid[:200]}'"
                )
        return hits


def _known_collection(current: CurrentIndex) -> KnownCollection | None:
    """The collection that searches see."""
    known: KnownCollection | None = current.newest.index.known
    return known


async def _return_memory() -> None:
    """Return freed memory to the system now and then."""
    while True:
        await asyncio.sleep(_MEMORY_RETURNED_EVERY)
        await asyncio.to_thread(return_memory)
