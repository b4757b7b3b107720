"""One search: its pipeline, the rankings on the way to its hits, and the cost of each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pyserini_repbert.data.copies import DistinctHits, depths_of, distinct_hits
from pyserini_repbert.extension import loaded
from pyserini_repbert.pipeline.opening import join_rankers
from pyserini_repbert.pipeline.pipeline import Pipeline
from pyserini_repbert.ranking import Query, Ranker, Ranking
from pyserini_repbert.serve.answer_models import Step
from pyserini_repbert.serve.answer_parts import AnswerAddition, AnswerFollower
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.queues import BatchedRanker
from pyserini_repbert.serve.requests import Search
from pyserini_repbert.serve.rerankers import Rerankers
from pyserini_repbert.trace import Notes, StageCost, Trace

PROVENANCE_DEPTH = 100  # ranks that provenance and the measures of a judged topic know at least
_QID = '0'


class GoneError(Exception):
    """Ends work whose answer nobody waits for."""


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
    """The progress of a request. Ends its work once nobody waits for it.

    Attributes
    ----------
    gone : whether nobody waits for the answer
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
    copies : if they are grouped: the docids of files with the same text, by the docid of a hit
    below : how many of its ranks are known, if further hits may follow; None if these are all
    parts : of each system, of their fusion if there are several, and of each reranker
    warnings : what to tell a user about the query
    added : what extensions add: the fields of the answer, by name
    of_hits : the fields of each hit, by name
    """

    search: Search
    ranking: Ranking
    hits: Ranking
    below: int | None
    parts: tuple[RankedPart, ...]
    warnings: tuple[str, ...] = ()
    added: Mapping[str, Any] = field(default_factory=dict)
    of_hits: Sequence[Mapping[str, Any]] = ()
    copies: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class _RankedSearch:
    """What a pipeline and the extensions made of a search.

    Attributes
    ----------
    depth : how many hits were ranked, at most
    ranking : these hits, without texts
    notes : what the rankers reported
    additions : what extensions add
    shown : the hits of the answer, with their rows in the ranking
    """

    depth: int
    ranking: Ranking
    notes: Notes
    additions: Sequence[AnswerAddition]
    shown: DistinctHits


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
    index : the index that it searches
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
    followers = _followers(search, index, rerankers)
    pipeline = join_rankers(spec, systems, stages, index.source_for(search.like))
    n_known = max([0, *(follower.n_known for follower in followers)])
    if n_known:
        pipeline = pipeline.searching_deeper(n_known)
    ranked = _rank(search, pipeline, followers, trace)
    ranking = ranked.ranking
    notes = ranked.notes

    parts = _first_stage_parts(search, index, ranked.depth, notes.parts['search'])
    below = parts[-1].below
    # Nothing is reranked where nothing was found.
    if 'rerank' in notes.parts:
        parts += _reranker_parts(stages, notes.parts['rerank'])
    for part in parts:
        on_step(part.step)
    warnings = []
    if not ranking:
        warnings = index.filter_warnings(spec.filter)
    if not warnings:
        warnings = _unread_words(search.text, systems, parts)
    added: dict[str, Any] = {}
    for addition in ranked.additions:
        added |= addition.fields
    return Answer(
        search=search,
        ranking=ranking,
        hits=ranked.shown.hits,
        below=below,
        parts=tuple(parts),
        warnings=tuple(warnings),
        added=added,
        of_hits=[_fields_of_hit(row, ranked.additions) for row in ranked.shown.rows],
        copies=ranked.shown.copies,
    )


def _rank(
    search: Search, pipeline: Pipeline, followers: Sequence[AnswerFollower], trace: Trace
) -> _RankedSearch:
    """The hits of a search; deeper ones take the places of copies, if those are grouped.

    Parameters
    ----------
    search : as `resolve_search` returns it
    pipeline : ranks it
    followers : what extensions do then
    trace : as in `answer_search`
    """
    topic = Query(_QID, search.text)
    for n_hits in depths_of(search.hits) if search.group_copies else (search.hits,):
        depth = max([_search_depth(search, n_hits), *(own.n_hits for own in followers)])
        notes = Notes(trace)
        ranking = pipeline.rank([topic], None, depth, notes)[_QID]
        additions = [own.follow(ranking, notes.parts['search']) for own in followers]
        kept_rows = _rows_that_stay(ranking, additions)
        kept = ranking.select_rows(kept_rows, [ranking.scores[row] for row in kept_rows])
        add_texts = partial(_with_texts, pipeline, topic, notes)
        shown = _best_hits(search, kept, add_texts)
        if not shown.are_too_few(search.hits, kept, depth):
            break
    rows = [kept_rows[row] for row in shown.rows]
    return _RankedSearch(depth, ranking, notes, additions, replace(shown, rows=rows))


def _best_hits(
    search: Search, ranking: Ranking, add_texts: Callable[[Ranking], Ranking]
) -> DistinctHits:
    """As many hits as the search asks for, with their texts."""
    if search.group_copies:
        return distinct_hits(ranking, search.hits, add_texts)
    hits = ranking[: search.hits]
    return DistinctHits(range(len(hits)), add_texts(hits), copies={})


def _with_texts(pipeline: Pipeline, topic: Query, notes: Notes, hits: Ranking) -> Ranking:
    """Hits of documents with the passages that decided; other hits as they are."""
    return pipeline.with_decisive_texts(topic, hits, notes) if pipeline.has_excerpts else hits


def _unread_words(
    text: str, systems: Sequence[BatchedRanker], parts: Sequence[RankedPart]
) -> list[str]:
    """What the systems that find nothing say of the words of a question.

    Parameters
    ----------
    text : the question
    systems : that were searched
    parts : what each of them found, in their order; others may follow
    """
    warnings: list[str] = []
    for system, part in zip(systems, parts, strict=False):
        # A system that finds something has read words.
        if not part.ranking:
            warnings += system.warnings(text)
    return warnings


def _followers(search: Search, index: ServedIndex, rerankers: Rerankers) -> list[AnswerFollower]:
    """What extensions do after this search."""
    followers = []
    for part in loaded('in_answers'):
        follower = part.follower(search, index, rerankers)
        if follower is not None:
            followers.append(follower)
    return followers


def _rows_that_stay(ranking: Ranking, additions: Sequence[AnswerAddition]) -> list[int]:
    """The rows of the hits that no extension leaves out."""
    rows = list(range(len(ranking)))
    for addition in additions:
        if addition.rows is not None:
            kept = set(addition.rows)
            rows = [row for row in rows if row in kept]
    return rows


def _fields_of_hit(row: int, additions: Sequence[AnswerAddition]) -> dict[str, Any]:
    """The fields that extensions add to a hit, by its row."""
    fields: dict[str, Any] = {}
    for addition in additions:
        if addition.of_hits:
            fields |= addition.of_hits[row]
    return fields


def _search_depth(search: Search, n_hits: int) -> int:
    """How many hits the first stage gives, for `n_hits` ranked ones."""
    depth = n_hits
    if search.spec.stages:
        depth = max(depth, search.spec.stages[0].k)
    if search.provenance:
        depth = max(depth, PROVENANCE_DEPTH)
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
    """How many ranks of a ranking are known, if it may continue below; None if it is complete."""
    hits = len(ranking)
    return hits if depth <= hits < index.hits else None


def _milliseconds(notes: Notes) -> float:
    return round(1000 * notes.seconds, 3)
