"""`search` writes the run of topics."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyserini_repbert.commands.command import count_text
from pyserini_repbert.commands.flags import record_output, used_fusion
from pyserini_repbert.commands.parts import recorded_by_parts
from pyserini_repbert.commands.reranking import report
from pyserini_repbert.commands.search_steps import (
    deepen_pipeline,
    naming_command,
    noted_searchers,
    open_followers,
    warn_of_queries,
)
from pyserini_repbert.commands.terminal import ProgressBars, cut_text
from pyserini_repbert.data.model_judges import TAUGHT_BY
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Run

if TYPE_CHECKING:
    from pyserini_repbert.pipeline.pipeline import Pipeline
    from pyserini_repbert.pipeline.resolving import ResolvedSearch

# From so many queries together on, exact search is faster (figures: docs/guides/own-corpus.md).
_MANY = 8


def write_topics_run(
    options: argparse.Namespace, resolved: ResolvedSearch, machine: Machine
) -> None:
    """Write the run of all topics and the other requested outputs; print times and costs."""
    from pyserini_repbert.data.runs import write_run
    from pyserini_repbert.fusion.interleaving import write_provenance
    from pyserini_repbert.names.topics import load_topics
    from pyserini_repbert.pipeline.opening import open_resolved
    from pyserini_repbert.pipeline.pipeline import run_pipeline

    topics = load_topics(options.topics, options.topics_format)
    _advise_exact_search(options, resolved.spec.scan, n_topics=len(topics))
    with ProgressBars(options) as watcher:
        with naming_command(options):
            opened = open_resolved(resolved, machine, watcher.building)
        pipeline = deepen_pipeline(opened.pipeline, options)
        with contextlib.closing(pipeline):
            recorded = opened.recorded()
            # A search that cannot be followed is refused before it takes its time.
            followers = open_followers(options, resolved, pipeline)
            run = run_pipeline(
                pipeline,
                topics,
                k=options.hits,
                trace=watcher,
                batch_topics=machine.batch_size,
            )
            ended = time.perf_counter()
            for follower in followers:
                follower.write(topics, run, watcher)
            warn_of_queries(topics, pipeline, watcher, with_qids=True)
    write_run(options.output, run, options.output_format, options.tag)
    record_output(
        options,
        options.output,
        ('topics', 'corpus', 'index', 'sparse'),
        models=recorded.models,
        inputs=recorded.indexes,
        rankers=recorded.rankers,
        used={
            **_used(resolved.spec),
            **_teacher_of(resolved),
            **recorded_by_parts('search', watcher),
        },
    )
    searchers = noted_searchers(watcher)
    names = [searcher.name for searcher in searchers]
    if options.provenance:
        first_runs = [searcher.run for searcher in searchers]
        write_provenance(options.provenance, names, first_runs, run)
    times = _times_text(watcher.began, ended, len(topics), ' + '.join(names))
    n_topics = count_text(len(topics), 'topic')
    print(f'{options.output}: {n_topics}{_losses_text(run, pipeline)}, {times}')
    if 'rerank' in watcher.began or pipeline.rewriting is not None:
        report(options, pipeline.rerankers, watcher)


def _used(spec: PipelineSpec) -> dict[str, Any]:
    """The values that flags have, or would have, for the record."""
    decided = {'rankings': spec.rankings, 'adapted': spec.adapted, 'fusion': spec.fusion}
    return decided | used_fusion(spec)


def _teacher_of(resolved: ResolvedSearch) -> dict[str, str]:
    """The language model from whose grades the search learned, for the record; empty without
    one.
    """
    teacher = None if resolved.index is None else resolved.index.taught_by()
    return {} if teacher is None else {TAUGHT_BY: teacher}


def _advise_exact_search(options: argparse.Namespace, scan: str, n_topics: int) -> None:
    """Say on stderr that a scan is slower for so many topics, if it is."""
    together = min(n_topics, options.batch_size)
    # Exact search multiplies the vectors of many questions together, but not the vectors of tokens.
    is_dense = not options.rankings or 'dense' in options.rankings
    if scan and is_dense and together >= _MANY and not options.quiet:
        print(
            f'for {together} topics together, exact search is faster, and misses '
            f'nothing: leave out --{scan}',
            file=sys.stderr,
        )


def _losses_text(run: Run, pipeline: Pipeline) -> str:
    """', 2 without hits, 3 cut to 20 wordpieces'; '' if nothing was lost."""
    silent = sum(not ranking for ranking in run.values())
    text = f', {silent} without hits' if silent else ''
    searchers = pipeline.first.leaves() if pipeline.first else ()
    for searcher in searchers:
        text += cut_text(getattr(searcher, 'query_encoder', None))
    return text


def _times_text(began: Mapping[str, float], ended: float, n_topics: int, searchers: str) -> str:
    """'12.3 ms each (bm25)'; with a reranker the total, then what searching and reranking took.

    Parameters
    ----------
    began : when each step began, in seconds of `time.perf_counter`
    ended : when the last step ended
    n_topics : how many topics shared the time
    searchers : their names
    """

    def each(seconds: float) -> str:
        return f'{1000 * seconds / max(n_topics, 1):.1f}'

    total = each(ended - began['search'])
    if 'rerank' not in began:
        return f'{total} ms each ({searchers})'
    searching = each(began['rerank'] - began['search'])
    reranking = each(ended - began['rerank'])
    return f'{total} ms each: {searching} searching ({searchers}), {reranking} reranking'
