"""What rankers report while they rank: progress, each part's own run, costs, values to keep."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

_Item = TypeVar('_Item')
_END: Any = object()

# What `StageCost` adds up over queries.
_SUMMED = (
    'queries',
    'inferences',
    'seconds',
    'tokens',
    'candidates',
    'truncated',
    'stored',
    'calls',
    'repaired',
    'answer_tokens',
)
# What only a language model by address counts.
_OF_ADDRESSES = ('calls', 'repaired', 'answer_tokens')


@dataclass(frozen=True)
class StageCost:
    """The cost of one stage over some queries.

    Attributes
    ----------
    stage : its name, as in 'monobert@1000'
    queries : how many it reranked
    inferences : model inputs; a query takes k0 of monoBERT, k1(k1 - 1) of duoBERT (Multi-Stage
        section 5.3, figure 4)
    seconds : wall-clock time spent in it, summed over devices
    tokens : in all inputs, without padding; None if the reranker does not count them
    candidates : how many it scored
    truncated : candidates whose text was cut; None if the reranker does not count them
    stored : candidates scored by stored vectors, without reading their text: not part of `tokens`
        and `truncated`
    precision : of the model: 'float32', 'bfloat16', 'float16', 'int8'; None if the reranker does
        not say
    calls : requests to a language model's address, without answers that were kept from before; None
        for other models
    repaired : answers of a language model that were not as it was asked; None for other models
    answer_tokens : the `tokens` of a language model's answers; None for other models
    """

    stage: str
    queries: int
    inferences: int
    seconds: float
    tokens: int | None
    candidates: int
    truncated: int | None
    stored: int = 0
    precision: str | None = None
    calls: int | None = None
    repaired: int | None = None
    answer_tokens: int | None = None

    def __add__(self, other: StageCost) -> StageCost:
        """The same stage over more queries."""
        sums: dict[str, Any] = {}
        for name in _SUMMED:
            mine = getattr(self, name)
            theirs = getattr(other, name)
            sums[name] = None
            if mine is not None and theirs is not None:
                sums[name] = mine + theirs
        return replace(self, **sums)

    @property
    def inferences_per_query(self) -> float:
        """Mean number of model inputs of a query."""
        return self._per_query(self.inferences)

    @property
    def truncated_share(self) -> float | None:
        """Truncated candidates as a share of those whose text was read.

        None if none was read or counted.
        """
        read = self.candidates - self.stored
        if self.truncated is None or not read:
            return None
        return self.truncated / read

    def as_json(self) -> dict[str, object]:
        """All values, with inferences and seconds per query."""
        values = asdict(self)
        for name in _OF_ADDRESSES:
            if values[name] is None:
                del values[name]
        return values | {
            'inferences_per_query': self.inferences_per_query,
            'seconds_per_query': self._per_query(self.seconds),
        }

    def _per_query(self, total: float) -> float:
        return total / self.queries if self.queries else 0.0


class StageTimes:
    """How many seconds each stage of an encoding or a reranking was busy.

    The stages are 'reading', 'computing' and 'writing'. Stages that overlap add up to more than the
    time that has passed since `start`. The stage 'waiting' is not work: it is a part of 'writing'.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.start = time.perf_counter()

    @contextmanager
    def busy(self, stage: str) -> Iterator[None]:
        """A context whose time is the stage's."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start

    def making(self, stage: str, items: Iterator[_Item]) -> Generator[_Item]:
        """The same items; the stage makes them."""
        while True:
            with self.busy(stage):
                item = next(items, _END)
            if item is _END:
                return
            yield item


class Trace:
    """What rankers report while they rank.

    This trace keeps nothing; `Notes` keeps all; commands draw progress bars.
    """

    def part(self, name: str, label: str = '') -> Trace:
        """The trace of a part of a fusion or a pipeline.

        Parameters
        ----------
        name : of the part: no other part of the ranker has it
        label : what reports call the part; default: its name
        """
        return self

    def begins(self, step: str, total: int, unit: str) -> None:
        """A step of `total` units begins: 'search', 'rerank'."""

    def advance(self, n: int) -> None:
        """`n` more units are done. May raise an error, which ends the work."""

    def ranked(self, run: dict[str, Any]) -> None:
        """The run of the part that is traced here."""

    def spent(self, cost: StageCost) -> None:
        """What the part took."""

    def keep(self, what: str, qid: str, value: Any) -> None:
        """A value of one topic: 'scores', which can be replayed without a model."""


SILENT = Trace()


class Notes(Trace):
    """All that was reported, as a tree with a node for each part.

    Workers send it back, and part files store it. `progress` gets `begins` and `advance`.

    Attributes
    ----------
    name : what reports call the part
    parts : the notes of its parts by their names, in their order
    run : the part's own `ranking.Run`, without texts
    cost : None if the part does not say what it took
    seconds : of wall clock until the part had its run, waiting included
    kept : values by kind and qid
    """

    def __init__(self, progress: Trace = SILENT, name: str = '') -> None:
        self.progress = progress
        self.name = name
        self.parts: dict[str, Notes] = {}
        self.run: dict[str, Any] = {}
        self.cost: StageCost | None = None
        self.seconds = 0.0
        self.kept: dict[str, dict[str, Any]] = {}
        self._start = time.perf_counter()

    def part(self, name: str, label: str = '') -> Notes:
        """The notes of a part."""
        if name not in self.parts:
            self.parts[name] = Notes(self.progress, label or name)
        return self.parts[name]

    def begins(self, step: str, total: int, unit: str) -> None:
        self.progress.begins(step, total, unit)

    def advance(self, n: int) -> None:
        self.progress.advance(n)

    def ranked(self, run: dict[str, Any]) -> None:
        """Keep the run, without texts."""
        self.seconds = time.perf_counter() - self._start
        for qid, ranking in run.items():
            self.run[qid] = ranking.without_texts()

    def spent(self, cost: StageCost) -> None:
        if self.cost is not None:
            cost = self.cost + cost
        self.cost = cost

    def keep(self, what: str, qid: str, value: Any) -> None:
        self.kept.setdefault(what, {})[qid] = value

    def add(self, other: Notes) -> None:
        """Add the notes of the same ranker on other topics."""
        self.run |= other.run
        self.seconds += other.seconds
        if other.cost is not None:
            self.spent(other.cost)
        for what, values in other.kept.items():
            self.kept.setdefault(what, {}).update(values)
        for name, part in other.parts.items():
            self.part(name, part.name).add(part)

    def leaves(self) -> list[Notes]:
        """The notes of the parts without further parts, in their order: as `Ranker.leaves`."""
        return [notes for notes in self.walk() if not notes.parts]

    def walk(self) -> Iterator[Notes]:
        """These notes and the notes of all parts, in the order of the parts."""
        yield self
        for part in self.parts.values():
            yield from part.walk()
