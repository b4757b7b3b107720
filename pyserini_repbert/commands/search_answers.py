"""`search` answers questions: their hits, with reasons, in the terminal."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyserini_repbert.commands.search_steps import (
    RUN_HITS,
    asks_at_prompt,
    deepen_pipeline,
    naming_command,
    noted_searchers,
    open_followers,
    warn_of_queries,
)
from pyserini_repbert.commands.terminal import (
    ProgressBars,
    answer_questions,
    hits_text,
    piped_questions,
    scores_in_rankings,
)
from pyserini_repbert.data.copies import DistinctHits, depths_of, distinct_hits
from pyserini_repbert.data.origins import readable_docid, stored_docid
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.ranking import Query, Ranking

if TYPE_CHECKING:
    from pyserini_repbert.commands.parts import SearchFollower
    from pyserini_repbert.data.snippets import WordMatch
    from pyserini_repbert.pipeline.pipeline import Pipeline
    from pyserini_repbert.pipeline.resolving import ResolvedSearch
    from pyserini_repbert.rerank.base import Reranker


def show_answers(options: argparse.Namespace, resolved: ResolvedSearch, machine: Machine) -> None:
    """Show the hits of each question; with --explain also why they are there."""
    from pyserini_repbert.pipeline.opening import open_resolved

    with ProgressBars(options) as watcher, naming_command(options):
        pipeline = open_resolved(resolved, machine, watcher.building).pipeline
    pipeline = deepen_pipeline(pipeline, options)
    liked: list[str] = []
    if options.like:
        by_documents = pipeline.by_documents()
        liked = _stored_docids(pipeline, options.like)
        pipeline = by_documents

    with contextlib.closing(pipeline):
        followers = open_followers(options, resolved, pipeline)
        depth = resolved.spec.depth
        if depth is not None:
            # So deep were the rankings searched whose ranks are shown.
            depth = max(depth, RUN_HITS)

        without_hits = _without_hits(resolved)

        def answers(questions: Sequence[str]) -> list[str]:
            return _answers(questions, pipeline, options, depth, followers, without_hits)

        if asks_at_prompt(options):
            answer_questions(lambda question: answers([question])[0])
        elif options.query or liked:
            print('\n\n'.join(answers(options.query or liked)))
        else:
            for question in piped_questions():
                print(answers([question])[0], flush=True)


def _stored_docids(pipeline: Pipeline, docids: Sequence[str]) -> list[str]:
    """The stored docids of documents that are questions. Raises the errors of
    `Searcher.more_like`.
    """
    stored = [stored_docid(docid, pipeline.holds) for docid in docids]
    for docid in stored:
        pipeline.check_document(docid)
    return stored


def _answers(
    questions: Sequence[str],
    pipeline: Pipeline,
    options: argparse.Namespace,
    depth: int | None,
    followers: Sequence[SearchFollower] = (),
    without_hits: str = 'no hits',
) -> list[str]:
    """The hits of each question as text, with reasons on request.

    Parameters
    ----------
    questions : are ranked together
    pipeline : ranks them
    options : the command's flags
    depth : how many hits of each first stage are known; None: as many as it has
    followers : say something of the hits
    without_hits : is said of a question that finds nothing
    """
    from pyserini_repbert.lucene.languages import language_of
    from pyserini_repbert.lucene.query_words import word_finder

    topics = [Query(str(number), text) for number, text in enumerate(questions)]
    answers = _find_distinct(topics, pipeline, options, followers)
    find_words = _find_no_words if options.like else word_finder(language_of(pipeline))
    texts = []
    for topic in topics:
        answer = answers[topic.qid]
        hits = answer.distinct.hits
        reasons: Sequence[Sequence[str]] = ()
        if options.explain or asks_at_prompt(options):
            reasons = _reasons(topic, hits, pipeline, options, answer.watcher, depth)
        question = f'like {readable_docid(topic.text)}' if options.like else topic.text
        text = hits_text(
            question,
            hits,
            reasons,
            find_words,
            lines_below=answer.lines if hits else [*answer.lines, without_hits],
            marks=answer.marks,
            scores=_shown_scores(topic, hits, pipeline, answer.watcher),
            copies=answer.distinct.copies,
        )
        texts.append(text)
    return texts


@dataclass(frozen=True)
class _ShownHits:
    """The answer to a question.

    Attributes
    ----------
    distinct : the hits that are shown
    lines : what extensions say about the question
    marks : of each hit; none if nothing is said
    watcher : has the intermediate runs
    """

    distinct: DistinctHits
    lines: Sequence[str]
    marks: Sequence[Sequence[str]]
    watcher: ProgressBars


def _find_distinct(
    topics: Sequence[Query],
    pipeline: Pipeline,
    options: argparse.Namespace,
    followers: Sequence[SearchFollower],
) -> dict[str, _ShownHits]:
    """The answer to each question by its qid, with `--hits` hits of different texts."""
    answers: dict[str, _ShownHits] = {}
    waiting = topics
    for depth in depths_of(options.hits):
        n_hits = max([depth, *(follower.n_hits for follower in followers)])
        with ProgressBars(options) as watcher:
            run = pipeline.rank(waiting, None, n_hits, watcher)
        if not answers:
            warn_of_queries(topics, pipeline, watcher)
        short = []
        for topic in waiting:
            said = _follow(topic, run[topic.qid], followers, watcher)
            add_texts = partial(pipeline.with_decisive_texts, topic, notes=watcher)
            distinct = distinct_hits(said.ranking, options.hits, add_texts)
            marks = [said.marks[row] for row in distinct.rows] if said.marks else ()
            answers[topic.qid] = _ShownHits(distinct, said.lines, marks, watcher)
            if distinct.are_too_few(options.hits, said.ranking, n_hits):
                short.append(topic)
        if not short:
            break
        waiting = short
    return answers


def _without_hits(resolved: ResolvedSearch) -> str:
    """The message for a question without hits."""
    index = resolved.index
    if index is None or resolved.spec.sparse:
        return 'no hits'
    of_models = index.offered.of_models
    # From an index with vectors, users expect hits by meaning.
    if of_models and of_models.isdisjoint(index.rankings):
        return 'no hits: this search is only by words'
    return 'no hits'


def _shown_scores(
    topic: Query, hits: Ranking, pipeline: Pipeline, watcher: ProgressBars
) -> list[str]:
    """The scores of hits as a person reads them; none: their own.

    The best hit of a fusion has nearly the same score for any question, so the scores in the
    rankings that were fused are shown.
    """
    if pipeline.first is None or len(pipeline.first.parts) < 2 or pipeline.rerankers is not None:
        return []
    rankings = {name: notes.run[topic.qid] for name, notes in watcher.parts['search'].parts.items()}
    return scores_in_rankings(hits, rankings)


@dataclass(frozen=True)
class _Said:
    """Hits of a question, and what extensions say of them.

    Attributes
    ----------
    ranking : the hits that are shown
    lines : of the question
    marks : of each hit; none if nothing is said
    """

    ranking: Ranking
    lines: Sequence[str] = ()
    marks: Sequence[Sequence[str]] = ()


def _follow(
    topic: Query, ranking: Ranking, followers: Sequence[SearchFollower], watcher: ProgressBars
) -> _Said:
    """The hits of a topic that are shown, and what followers say, one after the other."""
    if not followers:
        return _Said(ranking)
    lines: list[str] = []
    marks: list[tuple[str, ...]] = [()] * len(ranking)
    for follower in followers:
        followed = follower.follow(topic, ranking, watcher)
        if followed.line:
            lines.append(followed.line)
        if followed.marks:
            marks = [(*own, mark) for own, mark in zip(marks, followed.marks, strict=True)]
        if followed.rows is not None:
            marks = [marks[row] for row in followed.rows]
            scores = [ranking.scores[row] for row in followed.rows]
            ranking = ranking.select_rows(followed.rows, scores)
    return _Said(ranking, lines, marks)


def _reasons(
    topic: Query,
    hits: Ranking,
    pipeline: Pipeline,
    options: argparse.Namespace,
    watcher: ProgressBars,
    depth: int | None,
) -> list[list[str]]:
    """The lines below each hit: its rank in each ranking, and with --explain why it is there.

    Parameters
    ----------
    topic, hits : the question and its answer
    pipeline : has ranked
    options : the command's flags
    watcher : has the run of each ranking
    depth : as in `_answers`
    """
    from pyserini_repbert.explain.explaining import hit_reasons

    searchers = noted_searchers(watcher)
    names = [searcher.name for searcher in searchers]
    rankings = [searcher.run[topic.qid] for searcher in searchers]
    if not options.explain:
        return hit_reasons(topic.text, hits, names, rankings, depth=depth)
    reasons = pipeline.reasons(topic.text, hits.docids)
    reranker = last_reranker(pipeline)
    return hit_reasons(topic.text, hits, names, rankings, reranker, depth, reasons)


def _find_no_words(query: str, text: str) -> list[WordMatch]:
    """No word of a document's text: its name has no meaning."""
    return []


def last_reranker(pipeline: Pipeline) -> Reranker | None:
    """The last reranker of a pipeline on one device; None without one."""
    from pyserini_repbert.rerank.base import Reranker

    rerankers = [leaf for leaf in pipeline.leaves() if isinstance(leaf, Reranker)]
    return rerankers[-1] if rerankers else None
