"""What a client may ask: the forms of requests, which HTTP and MCP share; and `Search`, which each
request to search becomes, with its checks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat

from pyserini_repbert.data.origins import stored_docid
from pyserini_repbert.data.values import HALF_PAIR, has_surrogates
from pyserini_repbert.errors import InputError, MissingResourceError
from pyserini_repbert.explain.explaining import RANKINGS, SAMPLES
from pyserini_repbert.extension import loaded
from pyserini_repbert.fusion.fusing import combiner
from pyserini_repbert.fusion.methods import FusionName, NormalizationName
from pyserini_repbert.indexes.stores import ALL_FIELDS
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import check_question
from pyserini_repbert.serve.added_fields import added_parameters, with_added_parameters
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.rerankers import Rerankers
from pyserini_repbert.serve.settings import Limits

_HITS = 10  # of an answer, unless the request says how many


def _spec_field(name: str, least: float | None = None, most: float | None = None) -> Any:
    """A field of `PipelineSpec`, with its help, between the least and the most that a client may
    give.
    """
    return Field(ge=least, le=most, description=PipelineSpec.model_fields[name].description)


# The description of values that other code refuses, with separate messages
NOT_BLANK: dict[str, Any] = {'minLength': 1, 'pattern': r'\S'}
NotBlank = Annotated[str, Field(json_schema_extra=NOT_BLANK)]
_DIFFERENT: dict[str, Any] = {'uniqueItems': True}
_SYSTEMS = "rankings of the index, fused if several: 'dense', 'bm25', 'sparse', …; 'hybrid' is "
"dense and bm25, or dense and the learned sparse ranking; default: the index's `default`"
_STAGES = (
    'a reranker with its depth, NAME@K; NAME@K:METHOD for duoBERT; NAME@K:passages=N: the N best '
    'passages of each document of a collection; repeatable'
)
Systems = Annotated[
    list[str], Field(max_length=8, description=_SYSTEMS, json_schema_extra=_DIFFERENT)
]
Weights = Annotated[list[Annotated[FiniteFloat, Field(ge=0, le=1e6)]], _spec_field('weights')]
_Stage = Annotated[str, Field(json_schema_extra={'pattern': r'\S@[0-9]'})]
Stages = Annotated[list[_Stage], Field(max_length=4, description=_STAGES)]
Fusion = Annotated[
    FusionName,
    Field(
        description='how several rankings become one; default: interleave; of a collection, '
        'its `fusion`'
    ),
]
Alpha = Annotated[FiniteFloat | None, _spec_field('alpha', 0, 1)]
Normalization = Annotated[NormalizationName | None, _spec_field('normalize')]
RrfK = Annotated[FiniteFloat | None, _spec_field('rrf_k', 0, 1e6)]
K1 = Annotated[FiniteFloat | None, _spec_field('k1', 0, 1e6)]
B = Annotated[FiniteFloat | None, _spec_field('b', 0, 1)]
FilterText = Annotated[str | None, _spec_field('filter')]
Feedback = Annotated[str | None, _spec_field('prf')]
Like = Annotated[
    str | None,
    Field(
        max_length=1000,
        description='find documents like this one: its docid, instead of a question',
    ),
]
Hits = Annotated[int | None, Field(ge=1, description=f'hits of an answer; default: {_HITS}')]
Provenance = Annotated[bool, Field(description="each hit's rank and score in every ranking")]
Parse = Annotated[bool, Field(description='true: documents are parsed; false: as they are stored')]
Fields = Annotated[
    list[str],
    Field(
        max_length=100,
        description=f'of a collection: the fields that come with documents, by name; '
        f'{ALL_FIELDS}: all; empty: none',
    ),
]
Display = Annotated[
    bool,
    Field(description="also the passage, cleaned up for reading, with the query's words marked"),
]


def _split_at_commas(values: list[str]) -> list[str]:
    parts: list[str] = []
    for value in values:
        parts += value.split(',')
    return _without_blanks(parts)


def _split_stages(values: list[str]) -> list[str]:
    # The settings of a stage have commas, too: only a comma before another NAME@ parts stages.
    parts: list[str] = []
    for value in values:
        parts += re.split(r',(?=[^,]*@)', value)
    return _without_blanks(parts)


def _without_blanks(parts: list[str]) -> list[str]:
    return [part.strip() for part in parts if part.strip()]


# Lists in an address are given in several parameters or with commas.
WITH_COMMAS = BeforeValidator(_split_at_commas)
_STAGES_WITH_COMMAS = BeforeValidator(_split_stages)


class StrictModel(BaseModel):
    """A part of a request; unknown fields are refused."""

    model_config = ConfigDict(extra='forbid')


class QueryRequest(StrictModel):
    """A question, and how many hits its answer has."""

    query: str = Field(description='the question', json_schema_extra=NOT_BLANK)
    hits: Hits = None


class PipelineRequest(StrictModel):
    """Systems, their fusion, and rerankers."""

    system: Systems = []
    fusion: Fusion = 'interleave'
    alpha: Alpha = None
    weights: Weights = []
    normalize: Normalization = None
    rrf_k: RrfK = None
    rerank: Stages = []
    k1: K1 = None
    b: B = None
    filter: FilterText = None
    prf: Feedback = None

    def search(self, query: str, hits: int | None, provenance: bool, limits: Limits) -> Search:
        """The search that answers a query with this pipeline.

        Parameters
        ----------
        query : a question
        hits : of the answer; None: the default, or less where the limits are lower
        provenance : as in `Search`
        limits : of the service

        Raises
        ------
        InputError : a stage is not of the form NAME@K
        """
        # A setting that is not given is the index's own.
        names = self.model_fields_set & PipelineSpec.model_fields.keys()
        settings = {name: getattr(self, name) for name in names}
        spec = PipelineSpec.of(settings | {'stages': self.rerank})
        return Search(query, hits or min(_HITS, limits.hits), self.system, spec, provenance)


@with_added_parameters
class SearchedRequest(PipelineRequest):
    """A question, or a document in its place, how many hits its answer has, and its pipeline."""

    query: str = Field('', description='the question', json_schema_extra=NOT_BLANK)
    like: Like = None
    hits: Hits = None

    def asked_search(self, provenance: bool, limits: Limits) -> Search:
        """The search for the question, or for the document.

        Parameters
        ----------
        provenance : as in `Search`
        limits : of the service

        Raises
        ------
        InputError : both were given, or a stage is not of the form NAME@K
        """
        if self.like is not None and self.query:
            raise InputError("'query' and 'like' were given: give one of them")
        search = self.search(self.query, self.hits, provenance, limits)
        added = {name: getattr(self, name) for name in added_parameters()}
        return replace(search, like=self.like, added=added)


class BatchQuery(StrictModel):
    """A query of a batch."""

    text: str = Field(description='the question', json_schema_extra=NOT_BLANK)
    qid: str | None = Field(
        None, description='name of the answer; default: the number of the query, from 0'
    )


class BatchRequest(PipelineRequest):
    """Queries answered together."""

    queries: list[BatchQuery] = Field(min_length=1, description='the questions')
    hits: Hits = None
    fields: Fields = [ALL_FIELDS]
    parse: Parse = True
    provenance: Provenance = False
    display: Display = False


class SearchRequest(SearchedRequest):
    """The parameters of a search; lists are given in several parameters or with commas."""

    system: Annotated[Systems, WITH_COMMAS] = []
    weights: Annotated[Weights, WITH_COMMAS] = []
    rerank: Annotated[Stages, _STAGES_WITH_COMMAS] = []
    fields: Annotated[Fields, WITH_COMMAS] = [ALL_FIELDS]
    parse: Parse = True
    max_doc_length: int | None = Field(
        None, ge=1, description='the most characters of each document'
    )
    provenance: Provenance = False
    display: Display = False
    group_copies: bool = Field(
        False,
        description='of a collection: files with the same text are one hit, whose `also_in` names '
        'the others',
    )
    explain: Annotated[list[str], WITH_COMMAS, Field(max_length=4)] = Field(
        [], description='rerankers that explain the best hits'
    )
    explain_hits: int = Field(1, ge=1, le=10, description='the number of best hits to explain')


class CompareRequest(QueryRequest):
    """Two ways to answer one question."""

    a: PipelineRequest = Field(PipelineRequest(), description='the left side')
    b: PipelineRequest = Field(PipelineRequest(), description='the right side')
    fields: Fields = [ALL_FIELDS]
    display: Display = False


class ExplainRequest(StrictModel):
    """Hits to explain, and how."""

    query: str = Field(description='a question', json_schema_extra=NOT_BLANK)
    model: str = Field(
        RANKINGS,
        description="a reranker's name, or a system: epic, cedr, duobert, monobert; or a "
        "collection's ranking: dense, bm25, sparse; default: a collection's default rankings",
    )
    docid: list[str] = Field(
        min_length=1,
        description='a hit to explain; repeatable',
        json_schema_extra=_DIFFERENT,
    )
    top: int = Field(10, ge=0, le=100, description='EPIC: the number of expansion terms')
    layer: Annotated[tuple[int, ...], WITH_COMMAS] = Field(
        (), description='CEDR: layers, such as 0,6; default: the last'
    )
    samples: int = Field(
        SAMPLES,
        ge=1,
        le=1000,
        description="duoBERT: competitors of each passage in method 'sample'",
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="duoBERT: seed of method 'sample'")


class DocumentRequest(StrictModel):
    """How a document is shown."""

    parse: Parse = True
    max_doc_length: int | None = Field(
        None, ge=1, description='the most characters of the document'
    )
    display: Display = False
    query: str = Field('', description='with display: the query whose words are marked')


class TopicsRequest(StrictModel):
    """Which questions are listed."""

    like: str = Field('', max_length=200, description='only questions that contain this text')
    limit: int = Field(20, ge=1, le=1000, description='the most questions to list')


@dataclass(frozen=True)
class Search:
    """A query and the pipeline that answers it; `resolve_search` refuses what a client may not
    ask for.

    Attributes
    ----------
    query : a question; empty if a document is given
    hits : of the answer
    systems : fused in this order; empty: the index's default
    spec : the fusion with its settings, the stages, BM25's k1 and b, feedback of dense search, and
        a collection's filter
    provenance : whether at least `PROVENANCE_DEPTH` hits are ranked, however few are shown
    like : finds documents like this one: its docid; None: the question is asked
    group_copies : whether files with the same text are one hit
    added : the values of the parameters that extensions add, by name; empty: none is given
    """

    query: str
    hits: int
    systems: Sequence[str]
    spec: PipelineSpec
    provenance: bool
    like: str | None = None
    group_copies: bool = False
    added: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """What the rankers get: the question, or a docid."""
        return self.query if self.like is None else self.like


def resolve_search(
    search: Search, index: ServedIndex, rerankers: Rerankers, limits: Limits
) -> Search:
    """The search with the names of its systems instead of a default or 'hybrid', and with its
    fusion.

    Parameters
    ----------
    search : what a client asks for
    index : the index that it searches
    rerankers : the service's
    limits : the most that a client may ask for

    Raises
    ------
    InputError : the query, a setting or a number is not accepted
    UnknownNameError : for an unknown system or reranker
    """
    if search.like is None:
        check_query(search.query, limits)
    if search.hits > limits.hits:
        raise InputError(f'{search.hits} hits were asked for, expected at most {limits.hits}')
    systems = index.resolve_systems(search.systems)
    spec = search.spec
    if not search.systems and not spec.stages and search.like is None:
        spec = spec.model_copy(update={'stages': index.default_stages})
    spec = index.with_usual_fusion(spec, systems)
    index.check_filter(spec.filter, systems)
    index.check_feedback(spec.prf, systems, limits)
    if spec.bm25_constants and systems != ('bm25',):
        raise InputError("'k1' and 'b' are for system 'bm25' alone")
    # Settings of another method are refused here.
    combiner(len(systems), spec.fusion_settings)
    rerankers.check(spec.stages)
    resolved = replace(search, systems=systems, spec=spec)
    for part in loaded('in_answers'):
        # Refuses unknown fields.
        part.follower(resolved, index, rerankers)
    if search.like is None:
        return resolved
    return replace(resolved, like=_liked_document(search.like, spec, index, systems))


def _liked_document(
    docid: str, spec: PipelineSpec, index: ServedIndex, systems: Sequence[str]
) -> str:
    """The stored docid of a document that a client names by it, or as a person reads it.

    Raises InputError for rerankers and systems that take a question only, and MissingResourceError
    for an unknown document.
    """
    if spec.stages:
        raise InputError("'rerank' reads a question, and 'like' is a document: leave one out")
    for system in systems:
        if system not in index.document_systems:
            able = ', '.join(index.document_systems) or 'no system here'
            raise InputError(f"system '{system}' takes a question, not 'like': {able} takes both")
    stored = stored_docid(docid, lambda known: index.holds(known, systems))
    if not index.holds(stored, systems):
        raise MissingResourceError(f"index '{index.alias}' has no document '{docid[:200]}'")
    return stored


def check_query(query: str, limits: Limits) -> None:
    """Raises InputError for a query that is empty, too long, or no text."""
    check_question(query)
    if has_surrogates(query):
        raise InputError(f'the query has {HALF_PAIR}')
    if len(query) > limits.query_characters:
        raise InputError(
            f'the query has {len(query):,} characters, at most {limits.query_characters:,} are read'
        )
