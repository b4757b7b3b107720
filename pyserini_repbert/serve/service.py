"""A service: its indexes, rerankers and lanes, and its operations, which HTTP routes and MCP tools call."""

from __future__ import annotations

import asyncio
import ctypes
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pyserini_repbert import catalog
from pyserini_repbert.errors import InputError, PyseriniRepbertError, UnknownNameError
from pyserini_repbert.pipeline.spec import StageSpec
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.serve.answers import Answer, Answerer, Ask, GoneError, Step, Tell, checked, stopping
from pyserini_repbert.serve.explanations import explanation
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.lanes import Lanes
from pyserini_repbert.serve.refusals import NotFoundError, NotReadyError, TooLateError
from pyserini_repbert.serve.rerankers import Rerankers, inferences
from pyserini_repbert.serve.settings import ServeSettings

_TRIMMED_EVERY = 2.0  # seconds; it takes some 20 ms, 0.1 ms if there is nothing to return


class Service:
    """Answers requests; `open` it first, in the event loop that it answers in.

    Parameters
    ----------
    settings : its indexes, rerankers and limits
    on_batch : called with a lane's name and the size of each batch
    on_step : called with each step of each answer

    Attributes
    ----------
    indexes : by alias; empty until the service is open
    failure : why it could not be opened; None if nothing failed
    """

    def __init__(
        self,
        settings: ServeSettings,
        on_batch: Callable[[str, int], object] = lambda lane, size: None,
        on_step: Callable[[Step], object] = lambda step: None,
    ) -> None:
        self.settings = settings
        self.lanes = Lanes(settings, on_batch)
        self.rerankers = Rerankers(settings)
        self.indexes: dict[str, ServedIndex] = {}
        self.failure: str | None = None
        self._trimming: asyncio.Task[None] | None = None
        self._answerer = Answerer(self.lanes, self.rerankers, on_step)

    async def open(self) -> None:
        """Start the lanes and open the indexes.

        What is raised is noted in `failure`.
        """
        for lane in self.lanes.all:
            lane.start()
        self._trimming = asyncio.create_task(_trimmed())
        try:
            self.indexes = await _opened(self.settings, self.lanes)
        except PyseriniRepbertError as error:
            self.failure = str(error)
            raise

    async def close(self) -> None:
        """Finish the waiting jobs, then stop the lanes and close the indexes."""
        if self._trimming is not None:
            self._trimming.cancel()
        await asyncio.gather(*(lane.stop() for lane in self.lanes.all))
        for index in self.indexes.values():
            index.close()

    @property
    def served(self) -> Mapping[str, ServedIndex]:
        """The indexes by alias, at least one. Raises NotReadyError until all are open."""
        if not self.indexes:
            raise NotReadyError(self.failure or 'the indexes are being opened: ask again')
        return self.indexes

    def index(self, alias: str) -> ServedIndex:
        """The index with an alias. Raises UnknownNameError, with the nearest alias, and NotReadyError."""
        served = self.served
        if alias not in served:
            near = catalog.did_you_mean(alias, served)
            raise UnknownNameError(f"there is no index '{alias[:80]}' here{near}: there are {', '.join(served)}")
        return served[alias]

    async def search(self, alias: str, ask: Ask, tell: Tell | None = None) -> Answer:
        """The answer to a question."""
        index = self.index(alias)
        ask = checked(ask, index, self.rerankers, self.settings.limits)
        async with self._in_time(bool(ask.stages)):
            return await self._answerer.answer(ask, index, tell)

    async def raw(self, alias: str, docid: str) -> str:
        """A document as it is stored. Raises NotFoundError for a docid that the index lacks."""
        index = self.index(alias)
        async with self._in_time(False):
            (found,) = await index.raws([docid])
        if found is None:
            raise NotFoundError(f"index '{alias}' has no document '{docid[:200]}'")
        return found

    async def rerank(self, alias: str, query: str, docids: Sequence[str], spec: StageSpec) -> Ranking:
        """Documents of an index in a reranker's order.

        Raises NotFoundError for a docid that the index lacks, InputError for one given twice.
        """
        index, limits = self.index(alias), self.settings.limits
        ask = checked(Ask(query, min(Ask.hits, limits.hits), stages=(spec,)), index, self.rerankers, limits)
        async with self._in_time(True):
            hits = await self._with_texts(index, docids)
            return await self._answerer.reranked(ask, hits, [], [], None)

    async def _with_texts(self, index: ServedIndex, docids: Sequence[str]) -> Ranking:
        if len(set(docids)) < len(docids):
            raise InputError('a docid was given twice: give each once')
        texts = await index.texts(docids)
        for docid, text in zip(docids, texts, strict=True):
            if text is None:
                raise NotFoundError(f"index '{index.alias}' has no document '{docid[:200]}'")
        return Ranking(docids, [0.0] * len(docids), texts)

    async def explain(
        self,
        alias: str,
        model: str,
        query: str,
        docids: Sequence[str],
        options: Mapping[str, Any],
        tell: Tell | None = None,
    ) -> dict[str, Any]:
        """Explain passages by a reranker, or by the first one of a system; the form is `explanations.explanation`'s."""
        index, limits = self.index(alias), self.settings.limits
        name = self.rerankers.named(model)
        if not query.strip() or len(query) > limits.query_characters:
            raise InputError(f'a query of 1 to {limits.query_characters:,} characters was expected')
        if not docids or len(docids) > limits.rerank_depth:
            raise InputError(f'{len(docids)} docids were given, expected 1 to {limits.rerank_depth}')
        if inferences(self.rerankers.systems[name], len(docids), {}) > limits.inferences:
            raise InputError(f'{len(docids)} passages take more than {limits.inferences:,} model inputs: give fewer')
        gone = [False]
        async with self._in_time(True):
            hits = await self._with_texts(index, docids)

            def work() -> dict[str, Any]:
                return explanation(self.rerankers, name, query, hits, options, stopping(gone, name, 0, tell))

            try:
                return await self.lanes.rerank.call(work)
            except asyncio.CancelledError:
                gone[0] = True
                raise

    @asynccontextmanager
    async def _in_time(self, reranks: bool) -> AsyncIterator[None]:
        limits = self.settings.limits
        seconds = limits.rerank_seconds if reranks else limits.search_seconds
        start = time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            raise TooLateError(
                f'no answer within {time.monotonic() - start:.0f} s: ask for less, or try again later'
            ) from error
        except GoneError as error:
            raise TooLateError('the request was given up') from error


async def _trimmed() -> None:
    """Return freed memory to the system now and then.

    Models read inputs of many shapes, and glibc keeps what each has freed: more than the models themselves take.
    """
    trim = getattr(ctypes.CDLL(None), 'malloc_trim', None)  # other C libraries have none
    while trim is not None:
        await asyncio.sleep(_TRIMMED_EVERY)
        await asyncio.to_thread(trim, 0)


async def _opened(settings: ServeSettings, lanes: Lanes) -> dict[str, ServedIndex]:
    """Open the indexes of a service, those without a base_index first: alias -> index, in the order of the settings."""
    known = {own.alias: own for own in settings.indexes}
    spread = [own.alias for own in settings.indexes if own.ray]
    if len(spread) > 1:  # workers occupy their machines, and each holds one index
        raise InputError(f"indexes '{spread[0]}' and '{spread[1]}' name a Ray cluster: a service searches one on Ray")
    found: dict[str, ServedIndex] = {}
    for own in sorted(settings.indexes, key=lambda own: own.base_index is not None):
        base = None
        if own.base_index is not None:
            if own.base_index not in known:
                near = catalog.did_you_mean(own.base_index, known)
                raise UnknownNameError(f"index '{own.alias}' names '{own.base_index}' as its base_index{near}")
            base = found.get(own.base_index)
            if base is None or base.index_type != 'tf':
                raise InputError(f"index '{own.alias}': its base_index '{own.base_index}' has to be a Lucene index")
        index = ServedIndex(own, settings, lanes)
        await index.open(base)
        found[own.alias] = index
        await asyncio.sleep(0)
    return {alias: found[alias] for alias in known}
