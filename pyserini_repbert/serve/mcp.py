"""The service as MCP tools: names and parameters as Pyserini's, with additions; `rerank` and
`explain` are ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import Field, FiniteFloat, ValidationError

from pyserini_repbert import __version__
from pyserini_repbert.errors import OtherServerError, PyseriniRepbertError, needs
from pyserini_repbert.evaluate.measures import evaluate, parse_measures
from pyserini_repbert.explain.explaining import RANKINGS
from pyserini_repbert.fusion.fusing import fuse
from pyserini_repbert.indexes.stores import ALL_FIELDS
from pyserini_repbert.pipeline.spec import parse_stage
from pyserini_repbert.ranking import Ranking, by_score
from pyserini_repbert.serve import requests
from pyserini_repbert.serve.added_fields import added_parameters
from pyserini_repbert.serve.answer_models import DocumentResponse
from pyserini_repbert.serve.answers import (
    AnswerOptions,
    AnswerSize,
    document_answer,
    index_answer,
    search_answer,
)
from pyserini_repbert.serve.indexes import index_type_of
from pyserini_repbert.serve.reading import lines_of
from pyserini_repbert.serve.refusals import describe_problem
from pyserini_repbert.serve.searching import RequestTrace
from pyserini_repbert.serve.service import Service
from pyserini_repbert.serve.settings import ServeSettings

with needs('fastmcp', __name__, 'serve'):
    import fastmcp
    from fastmcp import FastMCP
    from fastmcp.exceptions import ToolError, ValidationError as ArgumentError
    from fastmcp.server.middleware import Middleware
    from fastmcp.utilities.logging import configure_logging

logger = logging.getLogger(__name__)

# Pyserini's name of a measure -> ours, with a cutoff.
METRICS = {'ndcg': 'nDCG@{}', 'recall': 'R@{}', 'map': 'AP@{}', 'recip_rank': 'RR@{}'}

_Index = Annotated[str, Field(description='name of an index, see list_indexes')]
_Query = Annotated[str, Field(description='a question')]
_Hits = Annotated[int, Field(description='how many hits', ge=1)]
_Line = Annotated[
    int | None, Field(description='of the file, as in passage.line of a hit; None: all', ge=1)
]
_Scores = Annotated[dict[str, FiniteFloat], Field(description='{docid: score}')]
_LESS = 'ask for fewer hits, documents or fields'
_BARE = requests.PipelineRequest()  # the default systems, not reranked
_Tool = Callable[..., Awaitable[Any]]


class ServiceTools:
    """The tools: each method is one, its docstring and its signature are what clients read.

    They raise errors of the package for what is the client's fault.
    """

    def __init__(self, service: Service) -> None:
        self.service = service

    def all(self) -> list[_Tool]:
        """The tools, in the order in which they are listed."""
        return [
            self.search,
            self.get_document,
            self.list_indexes,
            self.get_index,
            self.fuse_search_results,
            self.get_qrels,
            self.eval_hits,
            self.rerank,
            self.explain,
        ]

    async def search(
        self,
        query: Annotated[
            str | dict[str, Any], Field(description="a question, or Pyserini's {'query_txt': …}")
        ] = '',
        index: Annotated[
            str, Field(description='name of an index, see list_indexes; default: the first')
        ] = '',
        hits: requests.Hits = None,
        parse: requests.Parse = True,
        pipeline: requests.PipelineRequest = _BARE,
        provenance: requests.Provenance = False,
        fields: requests.Fields | None = None,
        like: requests.Like = None,
        **settings: Any,
    ) -> dict[str, Any]:
        """Search an index: the best passages or documents for a question, with their texts;
        settings replace `pipeline`'s. Files with the same text are one hit, whose `also_in` names
        the others.
        """
        text = query
        if isinstance(text, dict):
            text = str(text.get('query_txt') or '')
        asked = {**pipeline.model_dump(exclude_unset=True), 'query': text, 'like': like}
        asked['hits'] = hits
        asked |= {name: value for name, value in settings.items() if value is not None}
        whole = requests.SearchedRequest.model_validate(asked)
        search = whole.asked_search(provenance, self.service.settings.limits)
        search = replace(search, group_copies=True)

        def answer(trace: RequestTrace) -> dict[str, Any]:
            alias = index or next(iter(self.service.served))
            options = AnswerOptions(
                parse=parse,
                provenance=provenance,
                fields=[ALL_FIELDS] if fields is None else fields,
                size=AnswerSize(self.service.settings.limits.answer_bytes),
            )
            with self.service.hold(alias) as served:
                answer = self.service.search(served, search, trace)
                return {**search_answer(served, answer, options)}

        return await self.service.run(answer, reranks=bool(whole.rerank))

    async def get_document(
        self,
        docid: str,
        index: _Index,
        parse: bool = True,
        first_line: _Line = None,
        last_line: _Line = None,
    ) -> str | dict[str, Any] | list[Any]:
        """The full text of a document, or some of its lines."""

        def find_document(_: RequestTrace) -> DocumentResponse:
            with self.service.hold(index) as served:
                return document_answer(served, docid, AnswerOptions(parse))

        def find_lines(_: RequestTrace) -> str:
            with self.service.hold(index) as served:
                return lines_of(served, docid, first_line or 1, last_line or sys.maxsize)

        if first_line is not None or last_line is not None:
            return await self.service.run(find_lines)
        answer = await self.service.run(find_document)
        document: str | dict[str, Any] | list[Any] = answer['doc']
        return document

    async def list_indexes(
        self,
        index_type: Literal['', 'tf', 'dense', 'faiss', 'impact', 'collection'] = '',
    ) -> list[str]:
        """The names of the indexes, of one type or of all."""
        served = self.service.served
        return [name for name, index in served.items() if index_type in ('', index.index_type)]

    async def get_index(self, index_name: _Index) -> dict[str, Any]:
        """What an index holds and what may be asked of it: systems, rerankers, limits."""
        with self.service.hold(index_name) as served:
            return {**index_answer(self.service, served)}

    async def fuse_search_results(
        self,
        results1: _Scores,
        results2: _Scores,
        hits: _Hits = 10,
        method: requests.Fusion = 'interleave',
    ) -> dict[str, float]:
        """Fuse two result lists of one question into one, best first."""
        runs = [{'q': _ranking(results1)}, {'q': _ranking(results2)}]
        ranking = fuse(runs, method, hits)['q']
        return dict(zip(ranking.docids, ranking.scores, strict=True))

    async def get_qrels(self, index_name: _Index, query_id: str) -> dict[str, str]:
        """The judgments of a topic: {docid: grade}."""
        with self.service.hold(index_name) as served:
            grades = served.topics.grades(query_id)
        return {docid: str(grade) for docid, grade in grades.items()}

    async def eval_hits(
        self,
        index_name: _Index,
        metric: Literal['ndcg', 'recall', 'map', 'recip_rank'],
        query_id: str,
        hits: _Scores,
        cutoff: Annotated[int, Field(ge=1, le=1000)] = 10,
    ) -> float:
        """The value of a metric for the hits of a judged topic."""
        with self.service.hold(index_name) as served:
            grades = served.topics.grades(query_id)
        measures = parse_measures([METRICS[metric].format(cutoff)])
        evaluation = evaluate({query_id: _ranking(hits)}, {query_id: grades}, measures)
        (value,) = evaluation.means.values()
        return value

    async def rerank(
        self,
        query: _Query,
        docids: Annotated[list[str], Field(description='of the index, best first', min_length=1)],
        index: _Index,
        reranker: Annotated[
            str, Field(description='NAME, or NAME:METHOD for duoBERT, see get_index')
        ],
    ) -> list[dict[str, Any]]:
        """Documents of an index in a new order, by monoBERT, duoBERT, EPIC or CEDR."""
        name, colon, method = reranker.partition(':')
        stage = f'{name}@{len(docids)}'
        if method:
            stage += colon + method
        spec = parse_stage(stage)

        def rerank(trace: RequestTrace) -> Ranking:
            with self.service.hold(index) as served:
                return self.service.rerank(served, query, docids, spec, trace)

        ranking = await self.service.run(rerank, reranks=True)
        hits: list[dict[str, Any]] = [
            {'docid': hit.docid, 'score': hit.score, 'rank': rank}
            for rank, hit in enumerate(ranking, 1)
        ]
        return hits

    async def explain(
        self,
        query: _Query,
        docids: Annotated[list[str], Field(description='of the index', min_length=1)],
        index: _Index,
        model: Annotated[
            str,
            Field(
                description="a reranker's name, or a system: epic, cedr, duobert, monobert; or a "
                "ranking of a collection: dense, bm25, sparse; default: a collection's rankings"
            ),
        ] = RANKINGS,
    ) -> dict[str, Any]:
        """Why documents are where they are: words with their weights, the nearest sentence, term
        contributions, similarity maps, pair matrices, scores.
        """

        def explain(trace: RequestTrace) -> dict[str, Any]:
            explanation: dict[str, Any]
            with self.service.hold(index) as served:
                explanation = self.service.explain(served, model, query, docids, {}, trace)
            return explanation

        return await self.service.run(explain, reranks=True)


def _ranking(scores: dict[str, float]) -> Ranking:
    return by_score(list(scores), list(scores.values()))


class OneLineErrors(Middleware):
    """Refuse wrong arguments of a tool in one line, as HTTP does."""

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        """Call a tool. Raises ToolError for arguments that it does not take."""
        try:
            return await call_next(context)
        except ArgumentError as error:
            if isinstance(error.__cause__, ValidationError):
                raise _tool_error(error.__cause__) from error
            raise


def _refuse_in_one_line(tool: _Tool, most_bytes: int) -> _Tool:
    """The tool, whose errors are ToolErrors: what is the client's fault reaches it with its
    message, in one line.

    An answer of more than `most_bytes` is refused.
    """

    @wraps(tool)
    async def answer(*args: Any, **kwargs: Any) -> Any:
        try:
            result = await tool(*args, **kwargs)
            AnswerSize(most_bytes, _LESS).add(result)
            return result
        except OtherServerError as error:
            logger.error('tool %s: %s', tool.__name__, ' '.join(str(error).split()))
            message = f'{error.server} gave no answer: the log of the service says why'
            raise ToolError(message, log_level=logging.WARNING) from error
        except PyseriniRepbertError as error:
            message = ' '.join(str(error).split())
            raise ToolError(message, log_level=logging.WARNING) from error
        except ValidationError as error:
            raise _tool_error(error) from error
        except Exception as error:
            logger.exception('tool %s failed', tool.__name__)
            raise ToolError('the service failed: its log says why') from error

    _name_settings(answer, tool)
    return answer


def _settings_of_searches() -> dict[str, tuple[Any, Any]]:
    """The settings of a pipeline, and the parameters that extensions add: type and default, by
    name. None stands for a setting that is not given.
    """
    settings: dict[str, tuple[Any, Any]] = {}
    types = get_type_hints(requests.PipelineRequest, include_extras=True)
    for name, field in requests.PipelineRequest.model_fields.items():
        takes_none = field.default is None
        settings[name] = (types[name] if takes_none else types[name] | None, None)
    return settings | added_parameters()


def _name_settings(answer: Any, tool: _Tool) -> None:
    """Give a tool a parameter for each setting of a search, instead of `**settings`."""
    signature = inspect.signature(tool)
    parameters = dict(signature.parameters)
    if parameters.pop('settings', None) is None:
        return
    annotations = dict(tool.__annotations__)
    del annotations['settings']
    for name, (annotation, default) in _settings_of_searches().items():
        parameters[name] = inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )
        annotations[name] = annotation
    answer.__signature__ = signature.replace(parameters=list(parameters.values()))
    answer.__annotations__ = annotations


def _tool_error(error: ValidationError) -> ToolError:
    """The first problem that pydantic found, in one line."""
    problem = error.errors(include_url=False, include_context=False)[0]
    name = '.'.join(map(str, problem['loc']))
    message = describe_problem(f"parameter '{name}'", problem)
    return ToolError(' '.join(message.split()), log_level=logging.WARNING)


class OpenAtFirstCall(Middleware):
    """Open the indexes of a service when a tool is first called.

    An assistant starts the servers of all its tools, and lists them, before a person asks. So no
    model is loaded for a session that does not search.

    Parameters
    ----------
    service : which is not open yet
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._opening: asyncio.Task[None] | None = None

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        """Call a tool once the indexes are open, or cannot be opened."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._service.try_open())
        # A client that gives a call up does not stop what other calls wait for.
        await asyncio.shield(self._opening)
        return await call_next(context)

    async def close(self) -> None:
        """Close the service, also while it is being opened."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        await self._service.close()


def make_tools(
    service: Service, lifespan: Any = None, middleware: Sequence[Middleware] = ()
) -> FastMCP:
    """An MCP server with the tools of a service.

    Parameters
    ----------
    service : what answers
    lifespan : of FastMCP
    middleware : around each call, inside of what refuses wrong arguments
    """
    _log_plainly()
    mcp = FastMCP(
        'pyserini_repbert',
        version=__version__,
        lifespan=lifespan,
        middleware=[OneLineErrors(), *middleware],
    )
    for tool in ServiceTools(service).all():
        mcp.tool(_refuse_in_one_line(tool, service.settings.limits.answer_bytes))
    return mcp


def _log_plainly() -> None:
    """Have FastMCP log a line for each event, without frames and colours."""
    fastmcp.settings.enable_rich_logging = False
    configure_logging(level=fastmcp.settings.log_level)


def make_mcp(settings: ServeSettings) -> FastMCP:
    """An MCP server with its own service, whose indexes are opened when a tool is called.

    Raises UnknownNameError for an unknown index, and the other errors of `index_type_of`.
    """
    for alias, index in settings.indexes.items():
        index_type_of(alias, index)
    service = Service(settings)
    opening = OpenAtFirstCall(service)

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await opening.close()

    return make_tools(service, lifespan, [opening])
