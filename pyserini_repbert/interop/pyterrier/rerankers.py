"""Rerankers: monoBERT, duoBERT, EPIC and CEDR on result frames."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pyserini_repbert.files import StrPath
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.interop.pyterrier.frames import candidates_of, pd, pt, ranked_frame
from pyserini_repbert.models.cross_encoder import log_probabilities
from pyserini_repbert.pipeline.opening import open_reranker
from pyserini_repbert.pipeline.pipeline import cut_batches
from pyserini_repbert.ranking import Query, Ranking
from pyserini_repbert.rerank.aggregation import Aggregation
from pyserini_repbert.rerank.base import Reranker, rescored
from pyserini_repbert.rerank.cedr import CedrReranker
from pyserini_repbert.rerank.duobert import DuoBertReranker
from pyserini_repbert.rerank.epic import EpicReranker
from pyserini_repbert.rerank.monobert import MonoBertReranker

PAIRS = 'duobert_p'


class Rerank(pt.Transformer):  # type: ignore[misc]
    """Any reranker: a result frame in, the same rows with new scores out, best first.

    Equal scores keep the order of the stage before: by 'rank', or else of the rows. Queries share the model's batches.
    Other columns stay.

    Parameters
    ----------
    reranker : a reranker, or its name: of the catalog, a checkpoint folder, or a class (`MODULE:CLASS`)
    """

    reads_text = True  # whether the frame needs the column 'text'
    added: tuple[str, ...] = ()  # columns that the transformer adds

    def __init__(self, reranker: Reranker | str) -> None:
        self.reranker: Any = open_reranker(reranker) if isinstance(reranker, str) else reranker
        self.reads_text = self.reranker.needs_text

    def transform(self, inp: Any) -> Any:
        """The frame reranked.

        Raises InputValidationError for a frame without a needed column, InputError for a candidate without text, and
        what the reranker raises.
        """
        needed = ['query', 'text'] if self.reads_text else ['query']
        pt.validate.result_frame(inp, extra_columns=needed)
        asked = candidates_of(inp)
        rows: list[int] = []
        rankings: list[Ranking] = []
        columns: dict[str, list[Any]] = {name: [] for name in self.added}
        for batch in cut_batches([self.reranker.inferences(len(item.rows)) for item in asked]):
            part = asked[batch.start : batch.stop]
            ranked, added = self._reranked([item.query for item in part], [item.ranking for item in part])
            for item, ranking in zip(part, ranked, strict=True):
                row = dict(zip(item.ranking.docids, item.rows, strict=True))
                rows += [row[docid] for docid in ranking.docids]
            rankings += ranked
            for name in self.added:
                columns[name] += added[name]
        return ranked_frame(inp, rows, rankings, {name: pd.Series(own, dtype=object) for name, own in columns.items()})

    def _reranked(self, queries: list[str], rankings: list[Ranking]) -> tuple[list[Ranking], dict[str, list[Any]]]:
        topics = [Query(str(place), query) for place, query in enumerate(queries)]
        run = {topic.qid: ranking for topic, ranking in zip(topics, rankings, strict=True)}
        return list(self.reranker.rank(topics, run, None).values()), {}


class TextRerankTransformer(Rerank):
    """Base of the rerankers that always need 'text'; subclasses name the class of their reranker as `kind`.

    Parameters
    ----------
    model : catalog name, checkpoint folder, or an open reranker of that class
    device, settings : as of that class, whose errors are raised
    """

    kind: ClassVar[Callable[..., Reranker]]

    def __init__(self, model: str | Path | Reranker, device: str = 'cpu', **settings: Any) -> None:
        self.model, self.device, self.settings = model, device, settings
        self.reranker = model if isinstance(model, Reranker) else self.kind(model, device, **settings)


class MonoBert(TextRerankTransformer):
    """monoBERT, a `MonoBertReranker`; the frame needs 'text', which `PassageText` adds."""

    kind = MonoBertReranker


class DuoBert(Rerank):
    """duoBERT; n candidates take n(n - 1) model inputs, so cut first: `monobert % 50 >> DuoBert(…)`.

    Parameters
    ----------
    model : catalog name, checkpoint folder, or a DuoBertReranker, which keeps its own method and settings
    method : 'sum', 'binary', 'min', 'max', or 'sample' with `samples`
    device, settings : as of `DuoBertReranker`, whose errors are raised
    matrix : add the column 'duobert_p': for each hit i float64 (n,), the p_ij against the query's hits j by 'rank', NaN
        for itself and for pairs that were not compared; stacked, a query's rows are the matrix
    """

    reranker: DuoBertReranker

    def __init__(
        self,
        model: str | Path | DuoBertReranker,
        method: Aggregation | str = Aggregation.SUM,
        device: str = 'cpu',
        matrix: bool = False,
        **settings: Any,
    ) -> None:
        self.model, self.method, self.device, self.matrix, self.settings = model, method, device, matrix, settings
        if not isinstance(model, DuoBertReranker):
            model = DuoBertReranker(model, device, method, **settings)
        self.reranker = model
        self.added = (PAIRS,) if matrix else ()

    def _reranked(self, queries: list[str], rankings: list[Ranking]) -> tuple[list[Ranking], dict[str, list[Any]]]:
        if not self.matrix:
            return super()._reranked(queries, rankings)
        for query, ranking in zip(queries, rankings, strict=True):
            self.reranker.check(query, ranking)
        ranked, pairs = [], []
        matrices = self.reranker.pair_differences(queries, rankings)
        for query, ranking, matrix in zip(queries, rankings, matrices, strict=True):
            ranked.append(rescored(ranking, self.reranker.aggregated(query, matrix)))
            place = {docid: number for number, docid in enumerate(ranking.docids)}
            order = [place[docid] for docid in ranked[-1].docids]
            pairs += list(np.exp(log_probabilities(matrix[np.ix_(order, order)])))
        return ranked, {PAIRS: pairs}


class Epic(Rerank):
    """EPIC; with an index, the frame needs text only for passages that the index lacks.

    Parameters
    ----------
    model : catalog name, checkpoint folder, or an EpicReranker
    index : an EPIC bundle or its folder; None: every passage's text is encoded
    device, settings : as of `EpicReranker`, whose errors are raised
    """

    reranker: EpicReranker

    def __init__(
        self,
        model: str | Path | EpicReranker,
        index: StrPath | EpicBundle | None = None,
        device: str = 'cpu',
        **settings: Any,
    ) -> None:
        self.model, self.index, self.device, self.settings = model, index, device, settings
        self.reranker = model if isinstance(model, EpicReranker) else EpicReranker(model, device, index, **settings)
        self.reads_text = self.reranker.index is None


class Cedr(TextRerankTransformer):
    """CEDR, a `CedrReranker`; scores are comparable within one query only. The frame needs 'text'."""

    kind = CedrReranker
