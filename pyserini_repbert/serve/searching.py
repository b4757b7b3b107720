"""Searches: the pipeline that answers a request, and what each of its steps took."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import BaseModel, Field

from pyserini_repbert.fusion.fused import fused_depth
from pyserini_repbert.pipeline.opening import joined
from pyserini_repbert.ranking import Query, Ranking
from pyserini_repbert.serve.indexes import ADAPTED, ANN, DENSE, ServedIndex
from pyserini_repbert.serve.requests import Ask
from pyserini_repbert.serve.rerankers import Rerankers
from pyserini_repbert.trace import Notes, StageCost, Trace

PROVENANCE_DEPTH = 100  # ranks that provenance and the measures of a judged topic know at least
_QID = '0'


class Step(BaseModel):
    """The cost of a step of an answer."""

    step: str = Field(description='a ranking, the fusion, or a reranker with its depth')
    ms: float = Field(description='milliseconds of wall clock, waiting included')
    inferences: int = Field(description='model inputs')
    candidates: int = Field(description='hits of the ranking, or those that a reranker took')
    tokens: int | None = Field(default=None, description='tokens that a reranker read')
    truncated: int | None = Field(default=None, description='passages that a reranker cut')
    precision: str | None = Field(default=None, description='what a reranker computed in')


class GoneError(Exception):
    """Ends work whose answer nobody waits for any more."""


class RequestTrace(Trace):
    """How far a request is; ends its work once nobody waits for it."""

    def __init__(self) -> None:
        self.gone = False  # whether nobody waits for the answer any more
        self.now: tuple[str, int, int | None] | None = (
            None  # the stage that reranks, inputs done, and in all if known
        )

    def begins(self, step: str, total: int, unit: str) -> None:
        if unit == 'inputs':
            self.now = step, 0, total or None

    def advance(self, n: int) -> None:
        """Raises GoneError once nobody waits for the answer."""
        if self.gone:
            raise GoneError
        if self.now is not None:
            stage, inputs, total = self.now
            self.now = stage, inputs + n, total


@dataclass(frozen=True)
class PartRanking:
    """A ranking on the way to an answer."""

    name: str  # a system, a fusion method or a stage
    ranking: Ranking
    below: int | None = (
        None  # its length, if there may be further hits below; None if these are all
    )


@dataclass(frozen=True)
class Answer:
    """The answer to a `checked` ask."""

    ask: Ask
    whole: PartRanking  # the final ranking, as deep as it was made
    parts: tuple[
        PartRanking, ...
    ]  # of each system, of their fusion if there are several, and of each stage
    steps: tuple[Step, ...]

    @property
    def ranking(self) -> Ranking:
        """The hits."""
        return self.whole.ranking[: self.ask.hits]


def answer(
    ask: Ask,
    index: ServedIndex,
    rerankers: Rerankers,
    trace: Trace,
    on_step: Callable[[Step], object],
) -> Answer:
    """The answer to a `checked` ask.

    Raises OverloadedError where too many jobs wait, and what `trace` raises.
    """
    spec = ask.spec
    systems = [index.ranker(name, spec.k1, spec.b) for name in ask.systems]
    stages = [rerankers.stage(stage, trace) for stage in spec.stages]
    depth = max(
        ask.hits, *(stage.k for stage in spec.stages[:1]), PROVENANCE_DEPTH if ask.deep else 0
    )
    notes = Notes(trace)
    ranking = joined(spec, systems, stages, index).rank(
        [Query(_QID, ask.query)], None, depth, notes
    )[_QID]

    searched = notes.parts['search']
    reranked = notes.parts.get('rerank')
    systems_notes = searched.leaves()
    searched_depth = depth if len(systems) == 1 else fused_depth(spec.fusion, depth) or depth
    parts = []
    steps = []
    for part_notes in systems_notes:
        parts.append(_part(part_notes.name, part_notes.run[_QID], searched_depth, index.passages))
        name = part_notes.name
        hits = len(part_notes.run[_QID])
        encodes = name in (DENSE, ANN, ADAPTED) or index.index_type == 'impact'
        steps.append(Step(step=name, ms=_ms(part_notes), inferences=int(encodes), candidates=hits))
    if len(systems) > 1:
        parts.append(_part(spec.fusion, searched.run[_QID], depth, index.passages))
        ms = _ms(searched) - max(map(_ms, systems_notes))
        steps.append(
            Step(step=spec.fusion, ms=ms, inferences=0, candidates=len(searched.run[_QID]))
        )
    below = parts[-1].below
    stage_notes = reranked.leaves() if reranked else []
    for stage, part_notes in zip(
        stages, stage_notes, strict=False
    ):  # nothing is reranked where nothing was found
        parts.append(PartRanking(stage.name, part_notes.run[_QID][: stage.reads]))
        cost = part_notes.cost or StageCost(stage.name, 1, 0, 0.0, None, 0, None)
        counts = {name: getattr(cost, name) for name in Step.model_fields.keys() - {'step', 'ms'}}
        steps.append(Step(step=stage.name, ms=_ms(part_notes), **counts))
    for step in steps:
        on_step(step)
    return Answer(ask, PartRanking('', ranking, below), tuple(parts), tuple(steps))


def _part(name: str, ranking: Ranking, depth: int, passages: int) -> PartRanking:
    return PartRanking(name, ranking, len(ranking) if depth <= len(ranking) < passages else None)


def _ms(notes: Notes) -> float:
    return round(1000 * notes.seconds, 3)
