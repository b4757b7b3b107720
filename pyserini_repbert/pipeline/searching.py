"""One search, from a request to its hits: open what it names, search, fuse and rerank."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from pyserini_repbert.data.passages import PassageTexts
from pyserini_repbert.encode.opening import query_encoder
from pyserini_repbert.fusion.methods import ALPHA, RRF_K, FusionMethod, combiner
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.models.checkpoints.used import used_models
from pyserini_repbert.names.index_building import ready_folder
from pyserini_repbert.names.indexes import NamedIndex
from pyserini_repbert.names.texts import texts_opener
from pyserini_repbert.pipeline.reranking import Reranked, Settings, opened_stages, run_stages
from pyserini_repbert.pipeline.specs import StageSpec
from pyserini_repbert.pipeline.stages import Stage
from pyserini_repbert.ranking import Query, Run
from pyserini_repbert.record import Input, Model, checksum
from pyserini_repbert.search.dense import RepBertSearcher
from pyserini_repbert.search.exact import Search
from pyserini_repbert.search.first_stage import FirstStage, open_sparse

Progress = Callable[[int], object]


@dataclass(frozen=True)
class Request:
    """What to search, and how.

    Attributes
    ----------
    index : a folder or a catalog name; not needed where `sparse` names the only index
    encoder : of the dense index, by default the one that it names; None with `sparse`: no dense search
    sparse : techniques, 'NAME' or 'NAME@INDEX'
    sparse_first : fuse with the sparse rankings first
    ann : search the approximate index
    method, alpha, rrf_k, depth, remove_duplicates : of the fusion, as in `FirstStage`
    stages, settings : rerankers, and how they run; device and precision are the query encoder's, too
    corpus : with `build`, the passages of the index to build; otherwise the passages to rerank
    k1, b : of BM25, instead of those of the techniques
    build, download : build a missing catalog index; fetch a missing prebuilt one
    max_length : query length in wordpieces, above which it is cut
    threads, batch_size : CPU threads; topics searched together
    device_dtype, spread : as in `RepBertSearcher`
    """

    index: str | None = None
    encoder: str | None = None
    sparse: tuple[str, ...] = ()
    sparse_first: bool = False
    ann: bool = False
    method: FusionMethod = FusionMethod.INTERLEAVE
    alpha: float = ALPHA
    rrf_k: float = RRF_K
    depth: int | None = None
    stages: tuple[StageSpec, ...] = ()
    settings: Settings = field(default_factory=Settings)
    corpus: str | None = None
    build: bool = False
    download: bool = False
    max_length: int | None = None
    threads: int = 1
    batch_size: int = 512
    k1: float | None = None
    b: float | None = None
    device_dtype: str = 'float16'
    spread: Callable[[DenseBundle], Search] | None = None
    remove_duplicates: bool = False

    @property
    def is_dense(self) -> bool:
        """Whether a dense index is searched."""
        return bool(self.encoder) or not self.sparse


class Watcher(Protocol):
    """Receives the progress of a search."""

    def building(self, index: NamedIndex | Path) -> Progress:
        """Called before an index is built, with its catalog entry or folder; returns a callback for passages done."""

    def begins(self, what: str, total: int, unit: str) -> Progress:
        """Called before a step, 'search' or 'rerank', of `total` units; returns a callback for units done."""


class Found(NamedTuple):
    """The result of a search.

    Attributes
    ----------
    run : the hits of every topic, `hits` deep
    names, parts : the name and the own run of each first-stage searcher
    milliseconds : mean time of the first stage for a topic
    reranked : the rerankers' result; None without rerankers, or without hits
    models, indexes : the checkpoints that ran; the indexes that were searched
    """

    run: Run
    names: tuple[str, ...]
    parts: list[Run]
    milliseconds: float
    reranked: Reranked | None
    models: tuple[Model, ...]
    indexes: tuple[Input, ...]


class Opened(NamedTuple):
    """The opened parts of a request.

    Attributes
    ----------
    first, stages : the first stage and the rerankers, which several devices open themselves
    texts : opens the passages to rerank; None if the first stage gives them
    indexes, models : the indexes and the query encoders, for records
    """

    first: FirstStage
    stages: Sequence[StageSpec] | Sequence[Stage]
    texts: Callable[[Iterable[str]], PassageTexts] | None
    indexes: tuple[Input, ...]
    models: tuple[Model, ...]


def search(
    request: Request,
    topics: Sequence[Query],
    hits: int,
    watcher: Watcher,
    with_texts: bool = False,
    already: Opened | None = None,
) -> Found:
    """Search all topics.

    Everything that the request names is opened before anything is searched; errors are those of its parts.

    Parameters
    ----------
    hits : the depth of the result
    with_texts : give hits their text, where an index stores it
    already : the request as `opened` returned it, for several searches

    Returns
    -------
    the result, with a ranking for every topic
    """
    stage, stages, texts, indexes, models = already or opened(request, watcher)
    depth = max(hits, request.stages[0].k) if request.stages else hits
    run: Run = {}
    parts: list[Run] = [{} for _ in stage.names]
    start = time.perf_counter()
    progress = watcher.begins('search', len(topics), 'topics')
    for first in range(0, len(topics), request.batch_size):
        batch = topics[first : first + request.batch_size]
        found, own = stage.run(batch, depth, request.threads)
        run |= found
        for part, more in zip(parts, own, strict=True):
            part |= more
        progress(len(batch))
    milliseconds = 1000 * (time.perf_counter() - start) / max(len(topics), 1)
    reranked = None
    if request.stages and any(run.values()):
        reranked = run_stages(
            topics,
            run,
            stages,
            texts or stage,
            request.settings,
            on_total=lambda total: watcher.begins('rerank', total, 'inputs'),
        )
        run |= reranked.run
    run = {qid: ranking[:hits] for qid, ranking in run.items()}
    if with_texts:
        run = {qid: stage.with_texts(ranking) for qid, ranking in run.items()}
    models = (*models, *(reranked.models if reranked else ()))
    return Found(run, stage.names, parts, milliseconds, reranked, models, indexes)


def opened(request: Request, watcher: Watcher) -> Opened:
    """Open what a request names; the searchers are in the order in which their rankings are fused."""
    combiner(len(request.sparse) + request.is_dense, request.method, None, request.alpha, request.rrf_k)
    apart = request.corpus if request.stages and not request.build else None
    texts = texts_opener(apart, None) if apart else None
    device = request.settings.devices[0]
    named: list[tuple[str, Any]] = []
    for spec in request.sparse:
        settings = (request.download, device, request.k1, request.b)
        named.append((spec, open_sparse(spec, request.index, watcher.building, *settings)))
    indexes = [Input('sparse', spec, checksum(getattr(searcher, 'index', ''))) for spec, searcher in named]
    if request.is_dense:
        dense, folder = _dense(request, device, watcher)
        name = Path(getattr(dense.query_encoder, 'name', 'dense')).name
        named.insert(len(named) if request.sparse_first else 0, (name, dense))
        indexes.append(Input('index', str(request.index), checksum(folder)))
    elif request.index:
        indexes.append(Input('index', request.index))
    names, searchers = zip(*named, strict=True)
    formula = (request.method, request.alpha, request.rrf_k, request.depth)
    stage = FirstStage(names, searchers, *formula, request.remove_duplicates)
    stages = opened_stages(request.stages, request.settings)
    return Opened(stage, stages, texts, tuple(indexes), used_models(stage.encoders()))


def _dense(request: Request, device: str, watcher: Watcher) -> tuple[RepBertSearcher, Path]:
    precision = request.settings.precision or 'float32'
    folder = ready_folder(
        str(request.index),
        request.encoder,
        device,
        request.build,
        request.corpus,
        precision,
        on_build=watcher.building,
    )
    encoder = None
    if request.encoder:
        encoder = query_encoder(request.encoder, device, precision=precision, max_length=request.max_length)
    return (
        RepBertSearcher(
            folder, encoder, device, ann=request.ann, device_dtype=request.device_dtype, spread=request.spread
        ),
        folder,
    )
