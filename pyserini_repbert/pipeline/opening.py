"""`open_pipeline`: the one place that opens what a spec names, and that joins rankers that are
open already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pyserini_repbert.fusion.fused import Fusion
from pyserini_repbert.fusion.fusing import combiner
from pyserini_repbert.models.checkpoints.checkpoint import models_of
from pyserini_repbert.models.tokenizer import share_workers
from pyserini_repbert.names.dense import RepBertSearcher
from pyserini_repbert.names.indexes import NamedIndex, ready_folder
from pyserini_repbert.names.rankers import names_class
from pyserini_repbert.names.rerankers import open_reranker
from pyserini_repbert.names.sparse import open_sparse
from pyserini_repbert.names.texts import texts_opener
from pyserini_repbert.pipeline.adapted_folder import apply_adaptation, apply_query_map
from pyserini_repbert.pipeline.pipeline import Chain, Pipeline, Texts
from pyserini_repbert.pipeline.spec import Machine, PipelineSpec
from pyserini_repbert.ranking import Ranker
from pyserini_repbert.record import Input, Model, checksum
from pyserini_repbert.systems.duobert.saved_scores import Saving

Building = Callable[[NamedIndex | Path], Any]
"""Called before an index is built; returns a callback for passages done."""


class Opened(NamedTuple):
    """A pipeline, and what its record has: models, indexes, and what identifies rankers of the
    user's own.
    """

    pipeline: Pipeline
    models: tuple[Model, ...]
    indexes: tuple[Input, ...]
    rankers: tuple[Mapping[str, Any], ...] = ()


def open_pipeline(
    spec: PipelineSpec, machine: Machine | None = None, on_build: Building = lambda index: int
) -> Opened:
    """Open everything that a spec names; `on_build` is called with an index, or its folder,
    before it is built.
    """
    spec = apply_adaptation(spec)
    machine = machine or Machine()
    texts = None
    if spec.stages and not machine.build and (spec.corpus or spec.texts_index):
        texts = texts_opener(
            spec.corpus, spec.texts_index, spec.corpus_format, spec.fields, machine.download
        )
    searchers, indexes = _searchers(spec, machine, on_build) if spec.searches else ([], [])
    pipeline = joined(spec, searchers, [_rerankers(spec, machine)] if spec.stages else [], texts)
    has_own = any(
        map(
            names_class,
            [*(name.partition('@')[0] for name in spec.sparse), *(s.name for s in spec.stages)],
        )
    )
    rankers = tuple(leaf.identity() for leaf in pipeline.leaves()) if has_own else ()
    return Opened(pipeline, models_of(pipeline), tuple(indexes), rankers)


def open_searcher(spec: PipelineSpec, machine: Machine | None = None) -> Any:
    """The only searcher of a spec."""
    (searcher,) = open_pipeline(spec, machine).pipeline.leaves()
    return searcher


def joined(
    spec: PipelineSpec,
    searchers: Sequence[Ranker],
    rerankers: Sequence[Ranker] = (),
    texts: Texts | None = None,
) -> Pipeline:
    """A pipeline of open rankers: of searchers, which are fused as the spec says, and of
    rerankers.
    """
    first = (
        searchers if len(searchers) < 2 else [Fusion(searchers, depth=spec.depth, **spec.formula)]
    )
    return Pipeline([*first, *rerankers], texts)


def _searchers(
    spec: PipelineSpec, machine: Machine, on_build: Building
) -> tuple[list[Ranker], list[Input]]:
    """The searchers of a spec, in the order in which they are fused; and the indexes that they
    search.
    """
    formula = spec.formula
    if spec.fusion != 'interleave':
        combiner(
            len(spec.sparse) + spec.is_dense, **formula
        )  # refuses wrong settings before anything is opened
    device = machine.devices[0]
    changes = {'threads': machine.threads, 'remove_duplicates': spec.remove_duplicates}
    parts: list[Ranker] = []
    indexes: list[Input] = []
    for name in spec.sparse:
        searcher = open_sparse(
            name, spec.index, on_build, machine.download, device, spec.k1, spec.b
        )
        place = getattr(searcher, 'index', None)
        parts.append(searcher.with_settings(name=name, **changes))
        indexes.append(
            Input('sparse', name, checksum(place if isinstance(place, str | Path) else name))
        )
    if spec.is_dense:
        dense, folder = _dense(spec, machine, device, on_build)
        if spec.adapted:
            dense = apply_query_map(dense, spec.adapted)
            indexes.append(Input('adapted', spec.adapted, checksum(spec.adapted)))
        parts.insert(
            len(parts) if spec.sparse_first else 0,
            dense.with_settings(name=Path(dense.name).name, **changes),
        )
        indexes.append(Input('index', str(spec.index), checksum(folder)))
    elif spec.index:
        indexes.append(Input('index', spec.index))
    return parts, indexes


def _dense(
    spec: PipelineSpec, machine: Machine, device: str, on_build: Building
) -> tuple[RepBertSearcher, Path]:
    folder = ready_folder(
        str(spec.index),
        spec.encoder,
        device,
        machine.build,
        spec.corpus,
        spec.precision,
        on_build=on_build,
    )
    spread = None
    if machine.ray is not None:
        from pyserini_repbert.pipeline.ray_shards import ShardSearch

        spread = partial(ShardSearch, machine.ray, device=device)
    settings = spec.model_dump(include={'ann', 'device_dtype', 'precision', 'max_length'})
    return RepBertSearcher(folder, spec.encoder, device, spread=spread, **settings), folder


def _rerankers(spec: PipelineSpec, machine: Machine) -> Ranker:
    on_ray = machine.ray is not None and not spec.searches
    if not on_ray and len(machine.devices) == 1:
        return open_chain(spec, machine, machine.devices[0])
    from pyserini_repbert.pipeline.spreading import Spread

    return Spread(open_chain, spec, machine if on_ray else machine.model_copy(update={'ray': None}))


def open_chain(spec: PipelineSpec, machine: Machine, device: str) -> Chain:
    """The rerankers of a spec on one device: what each worker opens."""
    settings = {
        'precision': spec.precision,
        'backend': spec.backend,
        'token_budget': machine.batch_tokens,
    }
    rerankers = [
        open_reranker(
            stage.name,
            device,
            {name: value for name, value in stage.options if name != 'weight'},
            **settings,
        ).with_settings(
            reads=stage.k, drop_rest=spec.drop_rest, weight=dict(stage.options).get('weight')
        )
        for stage in spec.stages
    ]
    chain = Chain(
        [*rerankers[:-2], Saving(rerankers[-2:], spec.replay_k0)] if spec.save_scores else rerankers
    )
    share_workers(chain.tokenizers, -(-machine.workers // len(machine.devices)))
    return chain
