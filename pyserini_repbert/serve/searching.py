"""One search: its pipeline, the rankings on the way to its hits, and the cost of each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyserini_repbert.collection.confidence import KNOWN_HITS
from pyserini_repbert.collection.estimating import AnswerConfidence
from pyserini_repbert.pipeline.opening import join_rankers
from pyserini_repbert.ranking import Query, Ranker, Ranking
from pyserini_repbert.search.confidence import TOP
from pyserini_repbert.serve.answer_models import Step
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.queues import PARTS
from pyserini_repbert.serve.requests import Search
from pyserini_repbert.serve.rerankers import Rerankers
from pyserini_repbert.trace import Notes, StageCost, Trace

PROVENANCE_DEPTH = 100  # ranks that provenance and the measures of a judged topic know at least
_QID = '0'


class GoneError(Exception):
    """Ends work whose answer nobody waits for any more."""


@dataclass(frozen=True)
class StageProgress:
    """How far a reranking stage of a request is.

    Attributes
    ----------
    stage : its name
    done : model inputs so far
    total : model inputs in all; None if not known
    """

    stage: str
    done: int
    total: int | None


class RequestTrace(Trace):
    """How far a request is; ends its work once nobody waits for it.

    Attributes
    ----------
    gone : whether nobody waits for the answer any more
    progress : of the stage that reranks; None before the first one
    """

    def __init__(self) -> None:
        self.gone = False
        self.progress: StageProgress | None = None

    def begins(self, step: str, total: int, unit: str) -> None:
        if unit == 'inputs':
            self.progress = StageProgress(step, done=0, total=total or None)

    def advance(self, n: int) -> None:
        """Raises GoneError once nobody waits for the answer."""
        if self.gone:
            raise GoneError
        progress = self.progress
        if progress is not None:
            self.progress = StageProgress(progress.stage, progress.done + n, progress.total)


@dataclass(frozen=True)
class RankedPart:
    """A ranking on the way to an answer: of a system, of the fusion, or of a reranker.

    Attributes
    ----------
    ranking : its hits, without texts
    below : how many ranks are known, if further hits may follow; None if these are all
    step : its cost
    """

    ranking: Ranking
    below: int | None
    step: Step

    @property
    def name(self) -> str:
        return self.step['step']


@dataclass(frozen=True)
class Answer:
    """The answer to a search.

    Attributes
    ----------
    search : the search, with the names of its systems
    ranking : the final ranking, as deep as it was made
    hits : as many as the search asks for; of documents, with the passages that decided
    below : how many of its ranks are known, if further hits may follow; None if these are all
    parts : of each system, of their fusion if there are several, and of each reranker
    warnings : what a user should hear of the query
    confidence : how far the hits can be believed; None where nobody asked
    """

    search: Search
    ranking: Ranking
    hits: Ranking
    below: int | None
    parts: tuple[RankedPart, ...]
    warnings: tuple[str, ...] = ()
    confidence: AnswerConfidence | None = None


def answer_search(
    search: Search,
    index: ServedIndex,
    rerankers: Rerankers,
    trace: Trace,
    on_step: Callable[[Step], object],
) -> Answer:
    """The answer to a search.

    Parameters
    ----------
    search : as `resolve_search` returns it
    index : what it searches
    rerankers : those that its stages name
    trace : learns how far the reranking is
    on_step : called with the cost of each step

    Raises
    ------
    OverloadedError : too many jobs wait
    Exception : what `trace` raises
    """
    spec = search.spec
    systems = [index.ranker(name, spec) for name in search.systems]
    if search.like is not None:
        systems = [system.by_documents() for system in systems]
    stages = rerankers.stages(spec.stages, trace, index.documents(spec.filter))
    depth = _search_depth(search)
    notes = Notes(trace)
    topic = Query(_QID, search.text)
    pipeline = join_rankers(spec, systems, stages, index.source_for(search.like))
    if search.confidence:
        pipeline = pipeline.searching_deeper(KNOWN_HITS)
    ranking = pipeline.rank([topic], None, depth, notes)[_QID]
    confidence = None
    hits = ranking[: search.hits]
    if search.confidence:
        confidence = _estimate(search, index, rerankers, ranking, notes.parts['search'])
        rows = confidence.believed_rows(search.min_confidence)[: search.hits]
        hits = ranking.select_rows(rows, [ranking.scores[row] for row in rows])
        confidence = confidence.of_rows(rows)
    if pipeline.has_excerpts:
        hits = pipeline.with_decisive_texts(topic, hits, notes)

    parts = _first_stage_parts(search, index, depth, notes.parts['search'])
    below = parts[-1].below
    # Nothing is reranked where nothing was found.
    if 'rerank' in notes.parts:
        parts += _reranker_parts(stages, notes.parts['rerank'])
    for part in parts:
        on_step(part.step)
    warnings: list[str] = []
    if not ranking:
        warnings = index.filter_warnings(search.spec.filter)
    # Of no document, words say nothing.
    asked = [] if warnings else systems
    for system, part in zip(asked, parts, strict=False):
        # A system that finds something has read words.
        if not part.ranking:
            warnings += system.warnings(search.text)
    return Answer(search, ranking, hits, below, tuple(parts), tuple(warnings), confidence)


def _estimate(
    search: Search, index: ServedIndex, rerankers: Rerankers, ranking: Ranking, notes: Notes
) -> AnswerConfidence:
    """How far an answer can be believed; `notes` are of the first stage."""
    stages = search.spec.stages
    estimator = index.estimator(search.systems, search.spec)
    rankings = {}
    for leaf in notes.leaves():
        of_parts = leaf.kept.get(PARTS)
        if of_parts is None:
            rankings[leaf.name] = leaf.run[_QID]
        else:
            # What scores others anew is not part of theirs, and comes behind them.
            runs = [*of_parts[_QID], leaf.run[_QID]][: len(estimator.rankings)]
            rankings |= zip(estimator.rankings, runs, strict=True)
    relevances = None
    if estimator.reads_relevances:
        read = ranking[: stages[-1].k]
        values = rerankers.relevances(stages[-1].name, read.scores)
        relevances = dict(zip(read.docids, values, strict=True))
    return estimator.estimate(search.query, ranking.docids, rankings, relevances)


def _search_depth(search: Search) -> int:
    """How many hits the first stage gives."""
    depth = search.hits
    if search.spec.stages:
        depth = max(depth, search.spec.stages[0].k)
    if search.provenance:
        depth = max(depth, PROVENANCE_DEPTH)
    if search.confidence:
        depth = max(depth, TOP)
    return depth


def _first_stage_parts(
    search: Search, index: ServedIndex, depth: int, notes: Notes
) -> list[RankedPart]:
    """The ranking of each system, and their fusion if there are several."""
    systems = notes.leaves()
    fusion = search.spec.fusion_settings
    searched_depth = depth
    if len(systems) > 1:
        searched_depth = fusion.depth_for(depth) or depth
    parts = []
    for system in systems:
        ranking = system.run[_QID]
        is_encoded = search.like is None and index.encodes_queries(system.name)
        step = _first_stage_step(system.name, _milliseconds(system), int(is_encoded), len(ranking))
        parts.append(RankedPart(ranking, _ranks_known(ranking, searched_depth, index), step))
    if len(systems) > 1:
        ranking = notes.run[_QID]
        slowest = max(part.step['ms'] for part in parts)
        ms = _milliseconds(notes) - slowest
        step = _first_stage_step(str(fusion.method), ms, 0, len(ranking))
        parts.append(RankedPart(ranking, _ranks_known(ranking, depth, index), step))
    return parts


def _first_stage_step(name: str, ms: float, inferences: int, candidates: int) -> Step:
    """A step that read no passages."""
    return Step(
        step=name,
        ms=ms,
        inferences=inferences,
        candidates=candidates,
        tokens=None,
        truncated=None,
        precision=None,
    )


def _reranker_parts(stages: Sequence[Ranker], notes: Notes) -> list[RankedPart]:
    """What each reranker read, in its new order."""
    notes_of_stages = notes.leaves()
    parts = []
    for stage, stage_notes in zip(stages, notes_of_stages, strict=True):
        cost = stage_notes.cost or StageCost(
            stage.name,
            queries=1,
            inferences=0,
            seconds=0.0,
            tokens=None,
            candidates=0,
            truncated=None,
        )
        step = Step(
            step=stage.name,
            ms=_milliseconds(stage_notes),
            inferences=cost.inferences,
            candidates=cost.candidates,
            tokens=cost.tokens,
            truncated=cost.truncated,
            precision=cost.precision,
        )
        read = stage_notes.run[_QID][: stage.reads]
        parts.append(RankedPart(read, below=None, step=step))
    return parts


def _ranks_known(ranking: Ranking, depth: int, index: ServedIndex) -> int | None:
    """How many ranks are known of a ranking, if it may go on below; None if it is whole."""
    hits = len(ranking)
    return hits if depth <= hits < index.hits else None


def _milliseconds(notes: Notes) -> float:
    return round(1000 * notes.seconds, 3)
