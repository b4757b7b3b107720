"""What a client may ask: the forms of requests, shared by HTTP and MCP, and the checks of what
they name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat

from pyserini_repbert.data.values import has_surrogates
from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.fusing import combiner
from pyserini_repbert.fusion.methods import FusionName, NormalizationName
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import check_question
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.rerankers import Rerankers
from pyserini_repbert.serve.settings import Limits

_HITS = 10  # of an answer, unless the request says how many


def _field(name: str, least: float | None = None, most: float | None = None) -> Any:
    """A field of `PipelineSpec`, with its help, and what a client may give."""
    return Field(ge=least, le=most, description=PipelineSpec.model_fields[name].description)


_SYSTEMS = (
    "rankings of the index, fused if several: 'dense', 'bm25', …; 'hybrid' is dense and bm25; "
    "default: all that the index's `default` names"
)
_STAGES = 'a reranker with its depth, NAME@K; NAME@K:METHOD for duoBERT; repeatable'
Systems = Annotated[list[str], Field(max_length=8, description=_SYSTEMS)]
Weights = Annotated[list[Annotated[FiniteFloat, Field(ge=0, le=1e6)]], _field('weights')]
Stages = Annotated[list[str], Field(max_length=4, description=_STAGES)]
Fusion = Annotated[FusionName, Field(description='how several rankings become one')]
Hits = Annotated[int | None, Field(ge=1, description=f'hits of an answer; default: {_HITS}')]
Provenance = Annotated[bool, Field(description="each hit's rank and score in every ranking")]
Parsed = Annotated[bool, Field(description='true: documents are parsed; false: as they are stored')]
Mended = Annotated[
    bool,
    Field(description='also the passage, cleaned up for reading, with words of the query marked'),
]


def _split(values: list[str]) -> list[str]:
    return [part.strip() for value in values for part in value.split(',') if part.strip()]


def _split_stages(values: list[str]) -> list[str]:
    # the settings of a stage have commas, too: only one before another stage's NAME@ parts stages
    parts = [part for value in values for part in re.split(r',(?=[^,]*@)', value)]
    return [part.strip() for part in parts if part.strip()]


# of a list in an address, given in several parameters or with commas
WITH_COMMAS = BeforeValidator(_split)
_STAGES_WITH_COMMAS = BeforeValidator(_split_stages)


class Sent(BaseModel):
    """A part of a body; unknown fields are refused."""

    model_config = ConfigDict(extra='forbid')


class Question(Sent):
    """A question, and how many hits its answer has."""

    query: str = Field(description='the question')
    hits: Hits = None


class PipelineRequest(Sent):
    """Systems, their fusion, and rerankers."""

    system: Systems = []
    fusion: Fusion = 'interleave'
    alpha: Annotated[FiniteFloat | None, _field('alpha', 0, 1)] = None
    weights: Weights = []
    normalize: Annotated[NormalizationName, _field('normalize')] = 'none'
    rrf_k: Annotated[FiniteFloat | None, _field('rrf_k', 0, 1e6)] = None
    rerank: Stages = []
    k1: Annotated[FiniteFloat | None, _field('k1', 0, 1e6)] = None
    b: Annotated[FiniteFloat | None, _field('b', 0, 1)] = None

    def ask(self, query: str, hits: int | None, deep: bool, limits: Limits) -> Ask:
        """A question that is answered so. Raises InputError for a stage that is none."""
        names = PipelineRequest.model_fields.keys() & PipelineSpec.model_fields.keys()
        spec = PipelineSpec.of(
            {name: getattr(self, name) for name in names} | {'stages': self.rerank}
        )
        return Ask(query, hits or min(_HITS, limits.hits), self.system, spec, deep)


class BatchQuery(Sent):
    """A query of a batch."""

    text: str = Field(description='the question')
    qid: str | None = Field(None, description='names the answer; by default its place, from 0')


class BatchRequest(PipelineRequest):
    """Queries that are answered together."""

    queries: list[BatchQuery] = Field(min_length=1, description='the questions')
    hits: Hits = None
    parse: Parsed = True
    provenance: Provenance = False
    display: Mended = False


class SearchRequest(PipelineRequest, Question):
    """The parameters of a search; lists are given in several parameters or with commas."""

    system: Annotated[Systems, WITH_COMMAS] = []
    weights: Annotated[Weights, WITH_COMMAS] = []
    rerank: Annotated[Stages, _STAGES_WITH_COMMAS] = []
    parse: Parsed = True
    max_doc_length: int | None = Field(None, ge=1, description='characters of each document')
    provenance: Provenance = False
    display: Mended = False
    explain: Annotated[list[str], WITH_COMMAS, Field(max_length=4)] = Field(
        [], description='rerankers that explain'
    )
    explain_hits: int = Field(1, ge=1, le=10, description='how many of the best hits are explained')


class CompareRequest(Question):
    """Two ways to answer one question."""

    a: PipelineRequest = Field(PipelineRequest(), description='the left side')
    b: PipelineRequest = Field(PipelineRequest(), description='the right side')
    display: Mended = False


@dataclass(frozen=True)
class Ask:
    """What a client asks of an index; `checked` refuses what it may not ask for."""

    query: str
    hits: int
    systems: Sequence[str]  # fused in this order; empty: the index's default
    spec: PipelineSpec  # the fusion with its settings, the stages, and BM25's k1 and b
    deep: bool  # whether at least `PROVENANCE_DEPTH` hits are ranked, however few are shown


def checked(ask: Ask, index: ServedIndex, rerankers: Rerankers, limits: Limits) -> Ask:
    """The ask with the names of its systems in place of a default or 'hybrid'."""
    check_query(ask.query, limits)
    if ask.hits > limits.hits:
        raise InputError(f'{ask.hits} hits were asked for, expected at most {limits.hits}')
    systems = index.chosen(ask.systems)
    spec = ask.spec
    if (spec.k1 is not None or spec.b is not None) and systems != ('bm25',):
        raise InputError("'k1' and 'b' are for system 'bm25' alone")
    combiner(len(systems), **spec.formula)  # refuses settings of another method
    rerankers.check(spec.stages)
    return replace(ask, systems=systems)


def check_query(query: str, limits: Limits) -> None:
    """Raises InputError for a query that is empty, too long, or no text."""
    check_question(query)
    if has_surrogates(query):
        raise InputError('the query has half of a surrogate pair, which is no character')
    if len(query) > limits.query_characters:
        raise InputError(
            f'the query has {len(query):,} characters, at most {limits.query_characters:,} are read'
        )
