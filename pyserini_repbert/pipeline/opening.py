"""`open_pipeline`: the one place that opens what a spec names.

`join_rankers` makes a pipeline of rankers that are open already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import loaded
from pyserini_repbert.fusion.fused import Fusion
from pyserini_repbert.fusion.fusing import combiner
from pyserini_repbert.fusion.methods import FusionMethod
from pyserini_repbert.indexes.kind import USUAL_RANKING, Index, SearchOptions, kind_of
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.lucene.languages import language_of
from pyserini_repbert.models.checkpoints.checkpoint import models_of
from pyserini_repbert.models.tokenizer import share_workers
from pyserini_repbert.names.building import OnBuild, build_silently
from pyserini_repbert.pipeline.pipeline import Pipeline, RerankerChain
from pyserini_repbert.pipeline.resolving import ResolvedSearch, resolve
from pyserini_repbert.pipeline.spec import PipelineSpec, StageSpec
from pyserini_repbert.ranking import Ranker
from pyserini_repbert.record import Input, Model, checksum
from pyserini_repbert.rerank.base import Reranker
from pyserini_repbert.systems.registry import load

if TYPE_CHECKING:
    from pyserini_repbert.indexes.documents import IndexDocuments
    from pyserini_repbert.pipeline.pipeline import Texts
    from pyserini_repbert.search.feedback import VectorFeedback


@dataclass(frozen=True)
class RecordedPipeline:
    """What the record of a run says of its pipeline.

    Attributes
    ----------
    models : that it runs
    indexes : that it searches
    rankers : what identifies the user's own rankers and those beside them; empty without any
    """

    models: tuple[Model, ...]
    indexes: tuple[Input, ...]
    rankers: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class _Searcher:
    """An open first stage, and what gives the inputs that it reads."""

    ranker: Ranker
    inputs: Callable[[], tuple[Input, ...]]


@dataclass(frozen=True)
class OpenedPipeline:
    """A pipeline that is open.

    Attributes
    ----------
    pipeline : ranks until it is closed
    spec : that it was opened for
    searchers : its first stages, in the order in which they are fused
    """

    pipeline: Pipeline
    spec: PipelineSpec
    searchers: Sequence[_Searcher]

    def recorded(self) -> RecordedPipeline:
        """What the record of a run says; ask before the run, which closes the pipeline.

        Files are read for their checksums, which no question needs.
        """
        spec = self.spec
        pipeline = self.pipeline
        indexes: list[Input] = []
        for searcher in self.searchers:
            indexes += searcher.inputs()
        rankers: tuple[Mapping[str, Any], ...] = ()
        if spec.has_own_rankers or spec.reads_index or _needs_identities(spec):
            rankers = tuple(leaf.identity() for leaf in pipeline.leaves())
        if pipeline.rewriting is not None:
            rankers = (pipeline.rewriting.identity(), *rankers)
        return RecordedPipeline(models_of(pipeline), tuple(indexes), rankers)


def _needs_identities(spec: PipelineSpec) -> bool:
    """Whether extensions need the identities of rankers in the record."""
    return any(part.needs_identities(spec) for part in loaded('in_pipelines'))


def open_pipeline(spec: PipelineSpec, machine: Machine | None = None) -> OpenedPipeline:
    """Open everything that a spec names. Raises the errors of `resolve`."""
    return open_resolved(resolve(spec, machine), machine)


def open_resolved(
    resolved: ResolvedSearch,
    machine: Machine | None = None,
    on_build: OnBuild = build_silently,
) -> OpenedPipeline:
    """The pipeline of a search that is resolved; to close its first stage releases the index."""
    spec = resolved.spec
    machine = machine or Machine()
    try:
        searchers = _open_searchers(resolved, machine, on_build)
        rerankers = [_open_rerankers(resolved, machine)] if spec.stages else []
        texts = _open_texts(spec, machine)
    except BaseException:
        resolved.close()
        raise
    pipeline = join_rankers(spec, [searcher.ranker for searcher in searchers], rerankers, texts)
    try:
        for part in loaded('in_pipelines'):
            pipeline = part.wrap(pipeline, spec)
    except BaseException:
        pipeline.close()
        raise
    return OpenedPipeline(pipeline, spec, searchers)


def open_searcher(spec: PipelineSpec, machine: Machine | None = None) -> Any:
    """The first stage of a spec: its only searcher, or the search of a collection."""
    return open_pipeline(spec, machine).pipeline.first


def join_rankers(
    spec: PipelineSpec,
    searchers: Sequence[Ranker],
    rerankers: Sequence[Ranker] = (),
    texts: Texts | None = None,
) -> Pipeline:
    """A pipeline of open rankers.

    Parameters
    ----------
    spec : says how several searchers are fused
    searchers : first stages, in the order of fusion
    rerankers : rank what the searchers find
    texts : gives the passages to rerank; default: the first stage
    """
    first = list(searchers)
    if len(first) > 1:
        first = [Fusion(searchers, spec.fusion_settings)]
    return Pipeline([*first, *rerankers], texts)


def _open_texts(spec: PipelineSpec, machine: Machine) -> Texts | None:
    """What gives the passages to rerank, if the spec names it; otherwise the first stage does."""
    if not spec.stages or machine.build or not (spec.corpus or spec.texts_index):
        return None
    if spec.texts_index:
        kind = kind_of(spec.texts_index)
        if kind.finds_passages:
            # The passages of a document that fit the query best are found by their vectors.
            options = SearchOptions(precision=spec.precision, rankings=(USUAL_RANKING,))
            return kind.open(spec.texts_index, options).searcher(machine)
    from pyserini_repbert.indexes.texts import texts_opener

    return texts_opener(
        spec.corpus, spec.texts_index, spec.corpus_format, spec.fields, machine.download
    )


def _open_searchers(
    resolved: ResolvedSearch, machine: Machine, on_build: OnBuild
) -> list[_Searcher]:
    """The first stages of a search, in the order in which they are fused."""
    spec = resolved.spec
    if FusionMethod(spec.fusion) is not FusionMethod.INTERLEAVE:
        # Refuses wrong settings before anything is opened.
        combiner(spec.n_rankings, spec.fusion_settings)
    feedback = None
    if spec.prf is not None:
        from pyserini_repbert.search.feedback import VectorFeedback

        feedback = VectorFeedback.parse(spec.prf)
    searchers = [_open_sparse(name, spec, machine, on_build) for name in spec.sparse]
    if resolved.index is not None:
        position = len(searchers) if spec.sparse_first else 0
        searchers.insert(position, _open_index(resolved.index, spec, machine, on_build))
    _check_language(spec, [searcher.ranker for searcher in searchers])
    if feedback is not None:
        _give_feedback([searcher.ranker for searcher in searchers], feedback)
    shared = {'threads': machine.threads, 'remove_duplicates': spec.remove_duplicates}
    return [
        _Searcher(searcher.ranker.with_settings(**shared), searcher.inputs)
        for searcher in searchers
    ]


def _give_feedback(rankers: Sequence[Ranker], feedback: VectorFeedback) -> None:
    """Let the dense rankings among these take feedback. Raises InputError if there is none."""
    leaves: list[Any] = []
    for ranker in rankers:
        leaves += ranker.leaves()
    dense = [leaf for leaf in leaves if leaf.takes_feedback]
    for leaf in dense:
        leaf.feedback = feedback
    if not dense:
        raise InputError(
            'prf needs a dense ranking, and this search has none: for Lucene, name bm25+rm3',
            parameters=('prf',),
        )


def _check_language(spec: PipelineSpec, rankers: Sequence[Ranker]) -> None:
    """Raises InputError for a language that no index takes."""
    if spec.language is None:
        return
    languages = [language_of(ranker) for ranker in rankers]
    if spec.language not in languages:
        known = ', '.join(f"'{language}'" for language in languages if language)
        problem = f'their own records say {known}' if known else 'none was named'
        raise InputError(
            f"language '{spec.language}' is for Lucene indexes that do not say their own, and "
            f'{problem}: leave it out',
            parameters=('language',),
        )


def _open_sparse(name: str, spec: PipelineSpec, machine: Machine, on_build: OnBuild) -> _Searcher:
    """The first stage that `sparse` names."""
    from pyserini_repbert.names.sparse import open_sparse

    ranker = open_sparse(
        name,
        spec.index,
        on_build,
        machine.download,
        machine.devices[0],
        spec.k1,
        spec.b,
        spec.language,
    )
    index = getattr(ranker, 'index', None)
    if not isinstance(index, str | Path):
        index = name
    return _Searcher(
        ranker.with_settings(name=name),
        lambda: (Input('sparse', name, checksum(index)),),
    )


def _open_index(index: Index, spec: PipelineSpec, machine: Machine, on_build: OnBuild) -> _Searcher:
    """The rankings of an index. If there are no others, they are fused as the spec says."""
    fusion = None
    if len(index.rankings) > 1 and not spec.sparse:
        fusion = spec.fusion_settings
    ranker = index.searcher(machine, fusion, on_build)
    return _Searcher(ranker, index.inputs)


def _open_rerankers(resolved: ResolvedSearch, machine: Machine) -> Ranker:
    """The rerankers of a search, in workers if there are several devices or a cluster."""
    spec = resolved.spec
    on_ray = machine.ray is not None and not spec.searches
    if not on_ray:
        # A cluster that searches does not rerank.
        machine = machine.model_copy(update={'ray': None})
        if len(machine.devices) == 1:
            return open_chain(spec, machine, machine.devices[0], resolved.index)
    from pyserini_repbert.pipeline.spreading import SpreadRerankers

    return SpreadRerankers(open_chain, spec, machine)


def open_chain(
    spec: PipelineSpec, machine: Machine, device: str, index: Index | None = None
) -> RerankerChain:
    """The rerankers of a spec on one device: what each worker opens.

    Parameters
    ----------
    spec : names them
    machine : where they run
    device : of this machine
    index : that is searched; None: it is opened, if a stage reads it
    """
    rerankers = [_open_stage(stage, spec, machine, device) for stage in spec.stages]
    if spec.reads_index:
        from pyserini_repbert.rerank.documents import bind_documents

        rerankers = bind_documents(rerankers, _open_documents(spec, machine, device, index))
    stages: list[Ranker] = [*rerankers]
    if spec.save_scores:
        from pyserini_repbert.systems.duobert.saved_scores import ScoreRecorder

        recorder = ScoreRecorder(rerankers[-2:], spec.replay_k0)
        stages = [*rerankers[:-2], recorder]
    chain = RerankerChain(stages)
    workers_of_device = -(-machine.workers // len(machine.devices))
    share_workers(chain.tokenizers, workers_of_device)
    return chain


def _open_documents(
    spec: PipelineSpec, machine: Machine, device: str, index: Index | None
) -> IndexDocuments:
    """The documents that stages read; arguments are as in `open_chain`.

    Raises InputError if no index is named.
    """
    if spec.save_scores:
        raise InputError(
            'scores are saved of the candidates of a run, and a stage that reads the index has '
            'others: leave one out',
            parameters=('pairs',),
        )
    from pyserini_repbert.indexes.documents import IndexDocuments

    machine = machine.model_copy(update={'devices': (device,), 'ray': None})
    if index is not None:
        return IndexDocuments(index, machine)
    location = spec.index or spec.texts_index
    if location is None:
        names = ', '.join(stage.label for stage in spec.stages if stage.reads_index)
        raise InputError(
            f'{names} reads the index that is searched: name one',
            parameters=('index',),
        )
    kind = kind_of(location)
    options = SearchOptions(precision=spec.precision)
    if spec.index is not None:
        options = SearchOptions.of(spec)
    return IndexDocuments(kind.open(location, options), machine, closes=True)


def _open_stage(stage: StageSpec, spec: PipelineSpec, machine: Machine, device: str) -> Reranker:
    """The reranker of a stage, with its depth and its share of the score."""
    from pyserini_repbert.names.rerankers import open_reranker

    settings: dict[str, Any] = {}
    for part in loaded('in_pipelines'):
        settings |= part.reranker_settings(spec)
    reranker = open_reranker(
        stage.name,
        device,
        stage.own_options,
        precision=spec.precision,
        backend=spec.backend,
        token_budget=machine.batch_tokens,
        **settings,
    )
    return apply_stage(reranker, stage, spec.drop_rest)


def apply_stage(reranker: Reranker, stage: StageSpec, drop_rest: bool = False) -> Reranker:
    """A reranker with the settings of its stage that all systems take.

    Parameters
    ----------
    reranker : with the stage's own options
    stage : how many candidates and passages of each it reads; its share of the score
    drop_rest : whether candidates that it does not read are dropped

    Raises InputError for settings that the reranker does not take.
    """
    _check_excerpts(reranker, stage.name, stage.n_excerpts)
    reranker = reranker.with_settings(
        reads=stage.k,
        drop_rest=drop_rest,
        score_share=stage.score_share,
        n_excerpts=stage.n_excerpts,
    )
    for option, value in stage.wrapping:
        reranker = load(option.wrap)(reranker, value)
    return reranker


def _check_excerpts(reranker: Reranker, name: str, n_excerpts: int) -> None:
    """Raises InputError for several passages of a document for a reranker that compares.

    `name` is what the user calls it.
    """
    if n_excerpts > 1 and reranker.compares:
        raise InputError(
            f"'{name}' compares the candidates of a list, each with one passage: leave "
            "'passages' out"
        )
