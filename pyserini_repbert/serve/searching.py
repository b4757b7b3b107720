"""Searches: what a client may ask, the pipeline that answers it, and what each of its steps took."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pyserini_repbert.data.values import has_surrogates
from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.fused import Fusion, fused_depth
from pyserini_repbert.fusion.methods import ALPHA, RRF_K, FusionMethod
from pyserini_repbert.pipeline.pipeline import Pipeline
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Query, Ranker, Ranking
from pyserini_repbert.serve.forms import Step
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.rerankers import Rerankers
from pyserini_repbert.serve.settings import Limits
from pyserini_repbert.trace import Notes, StageCost, Trace

PROVENANCE_DEPTH = 100  # ranks that provenance and the measures of a judged topic know at least
_QID = '0'


class GoneError(Exception):
    """Ends work whose answer nobody waits for any more."""


class RequestTrace(Trace):
    """How far a request is; ends its work once nobody waits for it.

    Attributes
    ----------
    gone : whether the answer is of no use any more
    now : the stage that reranks, model inputs done, and in all (None: not known); None before
    """

    def __init__(self) -> None:
        self.gone = False
        self.now: tuple[str, int, int | None] | None = None

    def begins(self, step: str, total: int, unit: str) -> None:
        """A stage begins, or is to begin."""
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
class Ask:
    """What a client asks of an index; `checked` refuses what it may not ask for.

    Attributes
    ----------
    query : its text
    hits : candidates of the answer
    systems : names of systems, fused in this order; empty: the index's default
    spec : the fusion, its `alpha` or `rrf_k`, the stages, and BM25's k1 and b
    deep : whether at least `PROVENANCE_DEPTH` hits are ranked, however few are shown
    """

    query: str
    hits: int = 10
    systems: Sequence[str] = ()
    spec: PipelineSpec = field(default_factory=PipelineSpec)
    deep: bool = False


@dataclass(frozen=True)
class PartRanking:
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


@dataclass(frozen=True)
class Answer:
    """The answer to an `Ask`.

    Attributes
    ----------
    ask : as `checked` returns it
    whole : the final ranking, as deep as it was made
    parts : the rankings of each system, of their fusion if there are several, and of each stage
    steps : what each step took
    """

    ask: Ask
    whole: PartRanking
    parts: tuple[PartRanking, ...]
    steps: tuple[Step, ...]

    @property
    def ranking(self) -> Ranking:
        """The hits."""
        return self.whole.ranking[: self.ask.hits]


def checked(ask: Ask, index: ServedIndex, rerankers: Rerankers, limits: Limits) -> Ask:
    """The ask with the names of its systems in place of a default or 'hybrid'."""
    check_query(ask.query, limits)
    if not 1 <= ask.hits <= limits.hits:
        raise InputError(f'{ask.hits} hits were asked for, expected 1 to {limits.hits}')
    systems, spec = index.chosen(ask.systems), ask.spec
    constants = (('alpha', spec.alpha, FusionMethod.INTERPOLATION), ('rrf_k', spec.rrf_k, FusionMethod.RRF))
    for name, value, needed in constants:
        if value is not None and spec.fusion != needed:
            raise InputError(f"'{name}' is for fusion '{needed}', '{spec.fusion}' was asked for")
    if (spec.k1 is not None or spec.b is not None) and systems != ('bm25',):
        raise InputError("'k1' and 'b' are for system 'bm25' alone")
    rerankers.check(spec.stages, limits)
    return replace(ask, systems=systems)


def check_query(query: str, limits: Limits) -> None:
    """Raises InputError for a query that is empty, too long, or no text."""
    if not query.strip():
        raise InputError('the query is empty: give a question')
    if has_surrogates(query):
        raise InputError('the query has half of a surrogate pair, which is no character')
    if len(query) > limits.query_characters:
        raise InputError(f'the query has {len(query):,} characters, at most {limits.query_characters:,} are read')


def answer(
    ask: Ask, index: ServedIndex, rerankers: Rerankers, trace: Trace, on_step: Callable[[Step], object]
) -> Answer:
    """The answer to a `checked` ask. Raises OverloadedError where too many jobs wait, and what `trace` raises."""
    spec = ask.spec
    systems: list[Ranker] = [index.ranker(name, spec.k1, spec.b) for name in ask.systems]
    alpha, rrf_k = (ALPHA if spec.alpha is None else spec.alpha), (RRF_K if spec.rrf_k is None else spec.rrf_k)
    fusion = Fusion(systems, spec.fusion, alpha, rrf_k)
    first = fusion if len(systems) > 1 else systems[0]
    stages = [rerankers.stage(stage, trace) for stage in spec.stages]
    depth = max(ask.hits, *(stage.k for stage in spec.stages[:1]), PROVENANCE_DEPTH if ask.deep else 0)
    notes = Notes(trace)
    ranking = Pipeline([first, *stages], index).rank([Query(_QID, ask.query)], None, depth, notes)[_QID]

    searched, reranked = notes.parts[0], notes.parts.get(1)
    systems_notes = list(searched.parts.values()) or [searched]
    searched_depth = depth if len(systems) == 1 else fused_depth(spec.fusion, depth) or depth
    parts, steps = [], []
    for own in systems_notes:
        parts.append(_part(own.name, own.run[_QID], searched_depth, index.passages))
        steps.append(_step(own.name, own.seconds, int(index.encodes(own.name)), len(own.run[_QID])))
    if len(systems) > 1:
        parts.append(_part(spec.fusion, searched.run[_QID], depth, index.passages))
        seconds = searched.seconds - max(own.seconds for own in systems_notes)
        steps.append(_step(spec.fusion, seconds, 0, len(searched.run[_QID])))
    below = parts[-1].below
    stage_notes = (list(reranked.parts.values()) or [reranked]) if reranked else []
    for stage, own in zip(stages, stage_notes, strict=False):  # nothing is reranked where nothing was found
        parts.append(PartRanking(stage.name, own.run[_QID][: stage.reads]))
        cost = own.cost or StageCost(stage.name, 1, 0, 0.0, None, 0, None)
        counts = (cost.inferences, cost.candidates, cost.tokens, cost.truncated, cost.precision)
        steps.append(_step(stage.name, own.seconds, *counts))
    for step in steps:
        on_step(step)
    return Answer(ask, PartRanking('', ranking, below), tuple(parts), tuple(steps))


def _part(name: str, ranking: Ranking, depth: int, passages: int) -> PartRanking:
    return PartRanking(name, ranking, len(ranking) if depth <= len(ranking) < passages else None)


def _step(
    name: str,
    seconds: float,
    inferences: int,
    candidates: int,
    tokens: int | None = None,
    truncated: int | None = None,
    precision: str | None = None,
) -> Step:
    return Step(
        step=name,
        ms=round(1000 * seconds, 3),
        inferences=inferences,
        candidates=candidates,
        tokens=tokens,
        truncated=truncated,
        precision=precision,
    )
