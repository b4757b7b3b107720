"""A query through systems, fusion and rerankers, each in its lane, with the cost and the ranking of every step."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pyserini_repbert.data.identifiers import has_surrogates
from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.fused import fused_depth
from pyserini_repbert.fusion.methods import ALPHA, RRF_K, FusionMethod, combiner
from pyserini_repbert.pipeline.spec import StageSpec, check_depths
from pyserini_repbert.ranking import Query, Ranking
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.lanes import Lanes
from pyserini_repbert.serve.rerankers import Rerankers
from pyserini_repbert.serve.settings import Limits
from pyserini_repbert.trace import Notes, Trace

MAX_K1 = 1e6
PROVENANCE_DEPTH = 100  # ranks that provenance and the measures of a judged topic know at least

Tell = Callable[[str, int, int], object]  # stage, inputs done, inputs in all


class GoneError(Exception):
    """Ends work whose answer nobody waits for any more."""


@dataclass(frozen=True)
class Ask:
    """What a client asks of an index; `checked` refuses what it may not ask for.

    Attributes
    ----------
    query : its text
    hits : candidates of the answer
    systems : names of systems, fused in this order; empty: the index's default
    fusion, alpha, rrf_k : as `method`, `alpha` and `rrf_k` of `fusion.fuse`; None: its default
    stages : rerankers, applied in this order
    weights : BM25's k1 and b; None: the index's
    deep : whether at least `PROVENANCE_DEPTH` hits are ranked, however few are shown
    """

    query: str
    hits: int = 10
    systems: tuple[str, ...] = ()
    fusion: str = FusionMethod.INTERLEAVE
    alpha: float | None = None
    rrf_k: float | None = None
    stages: tuple[StageSpec, ...] = ()
    weights: tuple[float, float] | None = None
    deep: bool = False


class Part(NamedTuple):
    """A ranking on the way to an answer.

    Attributes
    ----------
    name : a system, a fusion method or a stage
    ranking : its hits
    below : its length, if there may be further hits below; None if these are all
    """

    name: str
    ranking: Ranking
    below: int | None = None


class Step(NamedTuple):
    """One step of an answer.

    Attributes
    ----------
    step : a system ('dense', 'bm25'), a fusion method or a stage ('monobert-demo@50')
    ms : milliseconds of wall clock, waiting included
    inferences : model inputs; 1 for a query that was encoded
    candidates : hits found, or candidates reranked
    tokens : tokens of a reranker's inputs; None if not counted
    truncated : candidates whose text was cut; None if not counted
    precision : what a reranker's model ran in; None for other steps
    """

    step: str
    ms: float
    inferences: int = 0
    candidates: int = 0
    tokens: int | None = None
    truncated: int | None = None
    precision: str | None = None


@dataclass(frozen=True)
class Answer:
    """The answer to an `Ask`.

    Attributes
    ----------
    ask : as `checked` returns it
    ranking : the hits
    whole : the final ranking, as deep as it was made
    parts : the rankings of each system, of their fusion if there are several, and of each stage
    steps : what each step took
    """

    ask: Ask
    ranking: Ranking
    whole: Part
    parts: tuple[Part, ...]
    steps: tuple[Step, ...]


def bm25_weights(k1: float | None, b: float | None) -> tuple[float, float] | None:
    """The `weights` of an `Ask`. Raises InputError for k1 without b, or b without k1."""
    if k1 is None and b is None:
        return None
    if k1 is None or b is None:
        raise InputError("'k1' and 'b' go together: give both")
    return k1, b


def checked(ask: Ask, index: ServedIndex, rerankers: Rerankers, limits: Limits) -> Ask:
    """The ask with the names of its systems in place of a default or 'hybrid'."""
    if not ask.query.strip():
        raise InputError('the query is empty: give a question')
    if has_surrogates(ask.query):
        raise InputError('the query has half of a surrogate pair, which is no character')
    if len(ask.query) > limits.query_characters:
        raise InputError(f'the query has {len(ask.query):,} characters, at most {limits.query_characters:,} are read')
    if not 1 <= ask.hits <= limits.hits:
        raise InputError(f'{ask.hits} hits were asked for, expected 1 to {limits.hits}')
    systems = index.chosen(ask.systems)
    combiner(len(systems), ask.fusion, None, _or(ask.alpha, ALPHA), _or(ask.rrf_k, RRF_K))
    constants = (('alpha', ask.alpha, FusionMethod.INTERPOLATION), ('rrf_k', ask.rrf_k, FusionMethod.RRF))
    for name, value, needed in constants:
        if value is not None and ask.fusion != needed:
            raise InputError(f"'{name}' is for fusion '{needed}', '{ask.fusion}' was asked for")
    if ask.weights is not None:
        k1, b = ask.weights
        if systems != ('bm25',):
            raise InputError("'k1' and 'b' are for system 'bm25' alone")
        if not 0 <= k1 <= MAX_K1 or not 0 <= b <= 1:
            raise InputError(f'k1={k1} b={b}: expected k1 from 0 to {MAX_K1:g}, b from 0 to 1')
    if ask.stages:
        check_depths([stage.label for stage in ask.stages], [stage.k for stage in ask.stages])
        rerankers.check(ask.stages, limits)
    return replace(ask, systems=systems)


class Answerer:
    """Answers queries with a service's lanes and rerankers."""

    def __init__(self, lanes: Lanes, rerankers: Rerankers, on_step: Callable[[Step], object]) -> None:
        self._lanes, self._rerankers, self._on_step = lanes, rerankers, on_step

    async def answer(self, ask: Ask, index: ServedIndex, tell: Tell | None = None) -> Answer:
        """The answer to a `checked` ask. Raises OverloadedError where too many jobs wait.

        Parameters
        ----------
        tell : called in the rerank lane's thread with (stage, inputs done, inputs in all)
        """
        steps: list[Step] = []
        depth = max(ask.hits, *(stage.k for stage in ask.stages[:1]), PROVENANCE_DEPTH if ask.deep else 0)
        single = len(ask.systems) == 1
        wanted = depth if single else fused_depth(ask.fusion, depth) or depth
        found = await asyncio.gather(*(self._first(ask, index, name, wanted, steps) for name in ask.systems))

        def part(name: str, ranking: Ranking, asked: int) -> Part:
            return Part(name, ranking, len(ranking) if asked <= len(ranking) < index.passages else None)

        parts = [part(name, ranking, wanted) for name, ranking in zip(ask.systems, found, strict=True)]
        ranking = found[0]
        if not single:
            start = time.perf_counter()
            combine = combiner(len(found), ask.fusion, depth, _or(ask.alpha, ALPHA), _or(ask.rrf_k, RRF_K))
            ranking = combine(found)
            self._note(steps, Step(str(ask.fusion), _ms(start), candidates=len(ranking)))
            parts.append(part(str(ask.fusion), ranking, depth))
        below = parts[-1].below
        if ask.stages and ranking:
            docids = ranking.docids[: ask.stages[0].k]
            texts = await index.texts(docids)
            ranking = ranking.with_texts(dict(zip(docids, texts, strict=True)))
            ranking = await self.reranked(ask, ranking, parts, steps, tell)
        return Answer(ask, ranking[: ask.hits], Part('', ranking, below), tuple(parts), tuple(steps))

    async def _first(self, ask: Ask, index: ServedIndex, system: str, k: int, steps: list[Step]) -> Ranking:
        start = time.perf_counter()
        found = await index.ranking(system, ask.query, k, ask.weights)
        self._note(steps, Step(system, _ms(start), int(index.encodes(system)), len(found)))
        return found

    async def reranked(
        self, ask: Ask, ranking: Ranking, parts: list[Part], steps: list[Step], tell: Tell | None
    ) -> Ranking:
        """Rerank a ranking with texts by the stages of an ask; each stage adds to `parts` and `steps`."""
        gone = [False]
        for spec in ask.stages:
            start = time.perf_counter()
            try:
                ranking, step = await self._lanes.rerank.call(self._apply, spec, ask.query, ranking, gone, start, tell)
            except asyncio.CancelledError:
                gone[0] = True
                raise
            self._note(steps, step)
            parts.append(Part(str(spec), ranking[: spec.k]))
        return ranking

    def _apply(
        self, spec: StageSpec, query: str, ranking: Ranking, gone: Sequence[bool], start: float, tell: Tell | None
    ) -> tuple[Ranking, Step]:
        """Apply one stage, in the rerank lane; it ends early, with GoneError, if nobody waits for it."""
        reranker = self._rerankers.reranker(spec)
        (total,) = reranker.planned([len(ranking)])
        progress = Trace()
        progress.advance = stopping(gone, str(spec), total, tell)  # type: ignore[method-assign,assignment]
        progress.advance(0)
        notes = Notes(progress)
        reranked = reranker.rank([Query('0', query)], {'0': ranking}, None, notes)['0']
        cost = notes.cost
        counts = (cost.inferences, cost.candidates, cost.tokens, cost.truncated, cost.precision) if cost else ()
        return reranked, Step(str(spec), _ms(start), *counts)

    def _note(self, steps: list[Step], step: Step) -> None:
        steps.append(step)
        self._on_step(step)


def stopping(gone: Sequence[bool], name: str, total: int, tell: Tell | None) -> Callable[[int], None]:
    """A progress callback for a stage of `total` inputs; it raises GoneError once `gone[0]` is true."""
    done = 0

    def update(n: int) -> None:
        nonlocal done
        done += n
        if gone[0]:
            raise GoneError
        if tell is not None:
            tell(name, done, total)

    return update


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


def _ms(start: float) -> float:
    return round(1000 * (time.perf_counter() - start), 3)
