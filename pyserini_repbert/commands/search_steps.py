"""What `search` does for questions and for topics."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyserini_repbert.commands.console import printable
from pyserini_repbert.commands.terminal import ProgressBars
from pyserini_repbert.errors import MissingResourceError
from pyserini_repbert.extension import parts_of
from pyserini_repbert.ranking import Query

if TYPE_CHECKING:
    from pyserini_repbert.commands.parts import SearchFollower
    from pyserini_repbert.pipeline.pipeline import Pipeline
    from pyserini_repbert.pipeline.resolving import ResolvedSearch
    from pyserini_repbert.trace import Notes

RUN_HITS = 1000


def shows_ranks(options: argparse.Namespace) -> bool:
    """Whether the ranks of hits in each ranking are shown."""
    return bool(options.provenance or options.explain) or asks_at_prompt(options)


def asks_at_prompt(options: argparse.Namespace) -> bool:
    """Whether questions are typed: none is given, and stdin is a terminal."""
    if options.query or options.like or options.topics:
        return False
    return sys.stdin is not None and sys.stdin.isatty()


def deepen_pipeline(pipeline: Pipeline, options: argparse.Namespace) -> Pipeline:
    """The pipeline, which searches as deep as it takes to show ranks, and as what follows
    it reads.
    """
    if shows_ranks(options):
        return pipeline.searching_deeper(RUN_HITS)
    depth = max((part.depth(options) for part in parts_of('search')), default=0)
    if depth:
        return pipeline.searching_deeper(depth)
    return pipeline


@contextlib.contextmanager
def naming_command(options: argparse.Namespace) -> Iterator[None]:
    """A context whose error about an index that can be built says which command builds it."""
    try:
        yield
    except MissingResourceError as error:
        if 'build' not in error.parameters:
            raise
        again = shlex.join([*options.command, '--build'])
        raise MissingResourceError(f'{error}: {again}') from error


def open_followers(
    options: argparse.Namespace, resolved: ResolvedSearch, pipeline: Pipeline
) -> list[SearchFollower]:
    """What extensions say about hits, if flags ask for it. Raises the errors of
    `CommandPart.follow`.
    """
    followers = []
    for part in parts_of('search'):
        follower = part.follow(options, resolved, pipeline)
        if follower is not None:
            followers.append(follower)
    return followers


def warn_of_queries(
    topics: Sequence[Query],
    pipeline: Pipeline,
    watcher: ProgressBars,
    *,
    with_qids: bool = False,
) -> None:
    """Say on stderr which query a searcher cannot read; of several, the first."""
    warnings: list[str] = []
    for topic in topics:
        # A searcher that finds something has read words.
        if all(searcher.run[topic.qid] for searcher in noted_searchers(watcher)):
            continue
        about = f"topic '{topic.qid}': " if with_qids else ''
        warnings += [f'{about}{warning}' for warning in pipeline.warnings(topic.text)]
    if warnings:
        others = f' (and {len(warnings) - 1} more)' if len(warnings) > 1 else ''
        print(f'warning: {printable(warnings[0])}{others}', file=sys.stderr)


def noted_searchers(watcher: ProgressBars) -> list[Notes]:
    """What each searcher of the first stage reported."""
    return watcher.parts['search'].leaves()
