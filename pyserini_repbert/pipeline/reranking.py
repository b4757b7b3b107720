"""Reranking a whole run in query batches, on one or several devices; a resumed reranking gives the same bytes."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyserini_repbert.data.passages import PassageTexts
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.pipeline.costs import StageCost, added
from pyserini_repbert.pipeline.query_batches import BATCH_INPUTS, cut_batches
from pyserini_repbert.pipeline.resume import BatchResult, PartFile, run_digest
from pyserini_repbert.pipeline.runners import Job, LocalRunner, Opening, PoolRunner, Runner
from pyserini_repbert.pipeline.specs import StageSpec
from pyserini_repbert.pipeline.stages import Stage, check_depths, with_texts
from pyserini_repbert.ranking import Query, Run
from pyserini_repbert.record import Model
from pyserini_repbert.rerank.base import Progress
from pyserini_repbert.rerank.saved_scores import SavedScores

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """How a run is reranked.

    Attributes
    ----------
    devices : 'cpu', 'cuda:0', …; queries are split between several
    precision, backend, token_budget : passed to the rerankers that have such a parameter
    drop_rest : drop the candidates that a stage did not rerank, instead of leaving them below in their order
    save : None saves no scores; else those of the last two stages are saved, and duoBERT compares the pairs that
        replays at these further depths k0 need
    batch_inputs : model inputs after which a query batch ends and is written to the part file
    spread : makes a runner for other machines from an Opening and the device to use on each
    """

    devices: tuple[str, ...] = ('cpu',)
    precision: str | None = None
    backend: str | None = None
    token_budget: int | None = None
    drop_rest: bool = False
    save: tuple[int, ...] | None = None
    batch_inputs: int = BATCH_INPUTS
    spread: Callable[[Opening, str], Runner] | None = None


@dataclass(frozen=True)
class Reranked:
    """The new run, the cost of each stage, the saved scores (empty unless requested), the models that ran."""

    run: Run
    costs: list[StageCost]
    saved: list[SavedScores]
    models: tuple[Model, ...] = ()


def run_stages(
    topics: Sequence[Query],
    run: Run,
    stages: Sequence[StageSpec] | Sequence[Stage],
    texts: PassageTexts | Callable[[Iterable[str]], PassageTexts] | None,
    settings: Settings | None = None,
    output: StrPath | None = None,
    resume: bool = False,
    overwrite: bool = False,
    about: Mapping[str, Any] | None = None,
    on_total: Callable[[int], Progress] | None = None,
) -> Reranked:
    """Rerank the run's candidates of each topic through all stages.

    Topics without hits in the run are left out, and so (with a warning) are queries of the run without a topic.

    Parameters
    ----------
    stages : specifications, opened on each device; or opened stages, which run in this process
    texts : passage text by docid, or a function that opens it for the docids needed; None if no text is needed
    output : the file that the caller will write: finished batches are stored in `OUTPUT.part`, which the caller removes
        with `resume.finished` afterwards; None stores nothing
    resume, overwrite : continue an existing part file, or begin anew
    about : further values that decide the result (the corpus's name), compared on resuming
    on_total : called with the number of model inputs to come; returns a callback for those done

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
    check_depths([stage.label for stage in stages], [stage.k for stage in stages])
    asked = _common(topics, run)
    runner = _runner(stages, chosen)
    plan = runner.plan([len(run[query.qid]) for query in asked])
    batches = cut_batches(plan.inferences, chosen.batch_inputs)
    with contextlib.ExitStack() as held:
        part, done = None, {}
        if output is not None:
            decisive = {
                'stages': plan.identities,
                'drop_rest': chosen.drop_rest,
                'save': chosen.save,
                'batch_inputs': chosen.batch_inputs,
                'run': run_digest(asked, run, None if not chosen.drop_rest else stages[0].k),
                'about': dict(about or {}),
            }
            part = held.enter_context(PartFile(output, decisive, resume, overwrite))
            done = part.done
        on_progress = on_total(sum(plan.inferences)) if on_total is not None else None
        if on_progress is not None and done:
            on_progress(sum(plan.inferences[position] for number in done for position in batches[number]))
        left = [number for number in range(len(batches)) if number not in done]
        wanted = [asked[i] for number in left for i in batches[number]]
        source = _open(texts, wanted, run, stages[0].k) if left else None
        finished: dict[int, BatchResult] = dict(done)
        jobs = _jobs(left, batches, asked, run, source, stages[0].k, chosen)
        for number, result in runner.run(jobs, on_progress):
            finished[number] = result
            if part is not None:
                part.append(number, result)
    ordered = [finished[number] for number in range(len(batches))]
    return Reranked(
        {qid: ranked for batch in ordered for qid, ranked in batch.rankings},
        added([batch.costs for batch in ordered]),
        [saved for batch in ordered for saved in batch.saved],
        plan.models,
    )


def opened_stages(stages: Sequence[StageSpec], settings: Settings) -> Sequence[StageSpec] | Sequence[Stage]:
    """The stages, opened if they run in this process, for several calls of `run_stages`."""
    return opened_here(stages, settings) if _runs_here(settings) else stages


def opened_here(stages: Sequence[StageSpec] | Sequence[Stage], settings: Settings) -> Sequence[Stage]:
    """The stages, opened on the first device unless they are open already."""
    opening = _opening(stages, settings)
    return opening.open(settings.devices[0]) if opening.specs else [s for s in stages if isinstance(s, Stage)]


def _runs_here(settings: Settings) -> bool:
    return settings.spread is None and len(settings.devices) == 1


def _opening(stages: Sequence[StageSpec] | Sequence[Stage], settings: Settings) -> Opening:
    specs = tuple(stage for stage in stages if isinstance(stage, StageSpec))
    return Opening(specs, settings.precision, settings.backend, settings.token_budget)


def _runner(stages: Sequence[StageSpec] | Sequence[Stage], settings: Settings) -> Runner:
    if _runs_here(settings) or isinstance(stages[0], Stage):
        return LocalRunner(opened_here(stages, settings))
    opening = _opening(stages, settings)
    return settings.spread(opening, settings.devices[0]) if settings.spread else PoolRunner(opening, settings.devices)


def _common(topics: Sequence[Query], run: Run) -> list[Query]:
    asked = [query for query in topics if run.get(query.qid)]
    if run and not asked:
        raise InputError(f'none of the {len(topics)} topics is a query of the run: give the topics it was made for')
    unknown = len(run.keys() - {query.qid for query in topics})
    if unknown:
        logger.warning('%d queries of the run are not among the topics: left out', unknown)
    return asked


def _open(
    texts: PassageTexts | Callable[[Iterable[str]], PassageTexts] | None,
    topics: Sequence[Query],
    run: Run,
    depth: int,
) -> PassageTexts | None:
    if not callable(texts):
        return texts
    return texts({docid: None for query in topics for docid in run[query.qid].docids[:depth]})


def _jobs(
    left: Sequence[int],
    batches: Sequence[range],
    topics: Sequence[Query],
    run: Run,
    texts: PassageTexts | None,
    depth: int,
    settings: Settings,
) -> Iterator[tuple[int, Job]]:
    """(number, job) of each batch in `left`; a batch's texts are fetched when it is taken."""
    for number in left:
        own = [topics[position] for position in batches[number]]
        rankings = with_texts([run[query.qid] for query in own], texts, depth)
        yield number, Job(own, rankings, settings.drop_rest, settings.save)
