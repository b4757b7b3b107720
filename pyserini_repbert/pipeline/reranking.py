"""Reranking a whole run: windows of queries, on one or several devices, resumable to the same bytes."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.passages import PassageTexts
from pyserini_repbert.pipeline.costs import StageCost, added
from pyserini_repbert.pipeline.partial import PartFile, Window, run_digest
from pyserini_repbert.pipeline.runners import Job, LocalRunner, Opening, PoolRunner
from pyserini_repbert.pipeline.specs import StageSpec
from pyserini_repbert.pipeline.stages import check_depths, with_texts
from pyserini_repbert.pipeline.windows import WINDOW_INPUTS, cut_windows
from pyserini_repbert.ranking import Candidate, Query
from pyserini_repbert.rerank.base import Progress
from pyserini_repbert.rerank.kept import KeptScores
from pyserini_repbert.runs import Run

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """How a run is reranked.

    Attributes
    ----------
    devices : 'cpu', 'cuda:0', …; queries are split between several
    precision, backend, token_budget : of the rerankers, where they know them
    drop_rest : drop the candidates that a stage did not rerank, instead of leaving them below in their order
    keep : keep the scores of the last two stages; further depths k0 that have to be replayable, none of them: ()
    window_inputs : model inputs after which a window ends and is safe from a kill
    """

    devices: tuple[str, ...] = ('cpu',)
    precision: str | None = None
    backend: str | None = None
    token_budget: int | None = None
    drop_rest: bool = False
    keep: tuple[int, ...] | None = None
    window_inputs: int = WINDOW_INPUTS


@dataclass(frozen=True)
class Reranked:
    """The result: the new run, the cost of each stage, and the kept scores (none unless asked for)."""

    run: Run
    costs: list[StageCost]
    kept: list[KeptScores]


def run_stages(
    topics: Sequence[Query],
    run: Run,
    stages: Sequence[StageSpec],
    texts: PassageTexts | Callable[[Iterable[str]], PassageTexts],
    settings: Settings | None = None,
    output: StrPath | None = None,
    resume: bool = False,
    overwrite: bool = False,
    about: Mapping[str, Any] | None = None,
    on_total: Callable[[int], Progress] | None = None,
) -> Reranked:
    """Rerank the run's candidates of each topic through all stages.

    Topics that the run lacks are left out, and so (with a warning) are queries of the run that the topics lack.

    Parameters
    ----------
    texts : passage text by docid, or what opens it for the docids that will be asked for
    output : the file that the result is meant for: finished windows are noted in `OUTPUT.part`, which the caller
        removes with `partial.finished` once the output is written; None notes nothing
    resume, overwrite : go on with a part file that is there, or begin anew
    about : what else decides the result (the corpus's name), compared on resuming
    on_total : called with the number of model inputs to come; gives what is called with those done

    Raises
    ------
    InputError
        for stages that do not fit together, no common query, a passage that cannot be found, a part file in the way
    BusyError
        where another process writes the same output
    MismatchError
        where `resume` meets the part file of another run, model or setting
    """
    chosen = settings or Settings()
    check_depths([spec.label for spec in stages], [spec.k for spec in stages])
    asked = _common(topics, run)
    opening = Opening(tuple(stages), chosen.precision, chosen.backend, chosen.token_budget)
    several = len(chosen.devices) > 1
    runner = PoolRunner(opening, chosen.devices) if several else LocalRunner(opening.open(chosen.devices[0]))
    plan = runner.plan([len(run[query.qid].docids) for query in asked])
    windows = cut_windows(plan.inferences, chosen.window_inputs)
    with contextlib.ExitStack() as held:
        part, done = None, {}
        if output is not None:
            decisive = {
                'stages': plan.identities,
                'drop_rest': chosen.drop_rest,
                'keep': chosen.keep,
                'window_inputs': chosen.window_inputs,
                'run': run_digest(asked, run, None if not chosen.drop_rest else stages[0].k),
                'about': dict(about or {}),
            }
            part = held.enter_context(PartFile(output, decisive, resume, overwrite))
            done = part.done
        on_progress = on_total(sum(plan.inferences)) if on_total is not None else None
        if on_progress is not None and done:
            on_progress(sum(plan.inferences[position] for number in done for position in windows[number]))
        left = [number for number in range(len(windows)) if number not in done]
        wanted = [asked[i] for number in left for i in windows[number]]
        source = _open(texts, wanted, run, stages[0].k) if left else None
        finished: dict[int, Window] = dict(done)
        jobs = _jobs(left, windows, asked, run, source, stages[0].k, chosen)
        for number, window in runner.run(jobs, on_progress):
            finished[number] = window
            if part is not None:
                part.append(number, window)
    ordered = [finished[number] for number in range(len(windows))]
    return Reranked(
        {qid: ranked for window in ordered for qid, ranked in window.rankings},
        added([window.costs for window in ordered]),
        [kept for window in ordered for kept in window.kept],
    )


def _common(topics: Sequence[Query], run: Run) -> list[Query]:
    asked = [query for query in topics if query.qid in run and run[query.qid].docids]
    if not asked:
        raise InputError(f'none of the {len(topics)} topics is a query of the run: give the topics it was made for')
    unknown = len(run.keys() - {query.qid for query in topics})
    if unknown:
        logger.warning('%d queries of the run are not among the topics: left out', unknown)
    return asked


def _open(
    texts: PassageTexts | Callable[[Iterable[str]], PassageTexts], topics: Sequence[Query], run: Run, depth: int
) -> PassageTexts:
    if not callable(texts):
        return texts
    return texts({docid: None for query in topics for docid in run[query.qid].docids[:depth]})


def _jobs(
    left: Sequence[int],
    windows: Sequence[range],
    topics: Sequence[Query],
    run: Run,
    texts: PassageTexts | None,
    depth: int,
    settings: Settings,
) -> Iterator[tuple[int, Job]]:
    """The windows to compute, their passages fetched when it is their turn."""
    for number in left:
        own = [topics[position] for position in windows[number]]
        lists = [[Candidate(*hit) for hit in zip(*run[query.qid], strict=True)] for query in own]
        yield number, Job(own, with_texts(lists, texts, depth), settings.drop_rest, settings.keep)
