"""The service as MCP tools: names and parameters as Pyserini's, with additions; `rerank` and
`explain` are ours.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import wraps
from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat, ValidationError

from pyserini_repbert import __version__
from pyserini_repbert.errors import PyseriniRepbertError, needs
from pyserini_repbert.evaluate.measures import evaluate, parse_measures
from pyserini_repbert.fusion.fusing import fuse
from pyserini_repbert.fusion.methods import NormalizationName
from pyserini_repbert.pipeline.spec import parse_stage
from pyserini_repbert.ranking import by_score
from pyserini_repbert.serve import requests
from pyserini_repbert.serve.answers import Shown, searched, stored
from pyserini_repbert.serve.refusals import describe_problem
from pyserini_repbert.serve.routes import described
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

METRICS = {
    'ndcg': 'nDCG@{}',
    'recall': 'R@{}',
    'map': 'AP@{}',
    'recip_rank': 'RR@{}',
}  # Pyserini's name -> ours
_Index = Annotated[str, Field(description='name of an index, see list_indexes')]
_Query = Annotated[str, Field(description='a question')]
_Hits = Annotated[int, Field(description='how many hits', ge=1)]
_Scores = Annotated[dict[str, FiniteFloat], Field(description='{docid: score}')]
_BARE = requests.PipelineRequest()  # the default systems, not reranked


class OneLineErrors(Middleware):
    """Refuse wrong arguments of a tool in one line, as HTTP does."""

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        """Call a tool. Raises ToolError for arguments that it does not take."""
        try:
            return await call_next(context)
        except ArgumentError as error:
            if isinstance(error.__cause__, ValidationError):
                raise _refusal_of(error.__cause__) from error
            raise


def _refusal_of(error: ValidationError) -> ToolError:
    problem = error.errors(include_url=False, include_context=False)[0]
    name = '.'.join(map(str, problem['loc']))
    message = describe_problem(f"parameter '{name}'", problem)
    return ToolError(' '.join(message.split()), log_level=logging.WARNING)


def _log_plainly() -> None:
    """Have FastMCP log a line for each event, without frames and colours."""
    fastmcp.settings.enable_rich_logging = False
    configure_logging(level=fastmcp.settings.log_level)


def make_tools(service: Service, lifespan: Any = None) -> FastMCP:
    """An MCP server with the tools of a service; `lifespan` is that of FastMCP."""
    _log_plainly()
    mcp = FastMCP(
        'pyserini_repbert', version=__version__, lifespan=lifespan, middleware=[OneLineErrors()]
    )

    def tool(answer: Callable[..., Awaitable[Any]]) -> None:
        """Register a tool; what is the client's fault reaches it with its message, in one line."""

        @mcp.tool
        @wraps(answer)
        async def answered(*args: Any, **kwargs: Any) -> Any:
            try:
                return await answer(*args, **kwargs)
            except PyseriniRepbertError as error:
                message = ' '.join(str(error).split())
                raise ToolError(message, log_level=logging.WARNING) from error
            except ValidationError as error:
                raise _refusal_of(error) from error
            except Exception as error:
                logger.exception('tool %s failed', answer.__name__)
                raise ToolError('the service failed: its log says why') from error

    @tool
    async def search(
        query: Annotated[
            str | dict[str, Any], Field(description="a question, or Pyserini's {'query_txt': …}")
        ],
        index: Annotated[
            str, Field(description='name of an index, see list_indexes; default: the first')
        ] = '',
        hits: requests.Hits = None,
        parse: requests.Parsed = True,
        pipeline: requests.PipelineRequest = _BARE,
        provenance: requests.Provenance = False,
        system: requests.Systems | None = None,
        fusion: requests.Fusion | None = None,
        alpha: float | None = None,
        weights: list[float] | None = None,
        normalize: NormalizationName | None = None,
        rrf_k: float | None = None,
        rerank: list[str] | None = None,
        k1: float | None = None,
        b: float | None = None,
    ) -> dict[str, Any]:
        """Search an index: the best passages for a question, with their texts; settings replace
        `pipeline`'s.
        """
        single = {
            'system': system,
            'fusion': fusion,
            'alpha': alpha,
            'weights': weights,
            'normalize': normalize,
        }
        single |= {'rrf_k': rrf_k, 'rerank': rerank, 'k1': k1, 'b': b}
        given = {name: value for name, value in single.items() if value is not None}
        pipeline = requests.PipelineRequest.model_validate(
            pipeline.model_dump(exclude_unset=True) | given
        )
        text = query if isinstance(query, str) else str(query.get('query_txt') or '')
        ask = pipeline.ask(text, hits, provenance, service.settings.limits)

        def work(trace: RequestTrace) -> dict[str, Any]:
            alias = index or next(iter(service.served))
            (answer,) = service.search(alias, [ask], trace)
            return searched(service.index(alias), answer, Shown(parse, provenance=provenance))

        return await service.run(work, bool(pipeline.rerank))

    @tool
    async def get_document(
        docid: str, index: _Index, parse: bool = True
    ) -> str | dict[str, Any] | list[Any]:
        """The full text of a document."""
        document: str | dict[str, Any] | list[Any]
        document = await service.run(
            lambda _: stored(service.index(index), docid, Shown(parse))['doc']
        )
        return document

    @tool
    async def list_indexes(
        index_type: Literal['', 'tf', 'dense', 'faiss', 'impact'] = '',
    ) -> list[str]:
        """The names of the indexes, of one type or of all."""
        return [
            name for name, index in service.served.items() if index_type in ('', index.index_type)
        ]

    @tool
    async def get_index(index_name: _Index) -> dict[str, Any]:
        """What an index holds and what may be asked of it: systems, rerankers, limits."""
        return described(service, service.index(index_name))

    @tool
    async def fuse_search_results(
        results1: _Scores,
        results2: _Scores,
        hits: _Hits = 10,
        method: requests.Fusion = 'interleave',
    ) -> dict[str, float]:
        """Fuse two result lists of one question into one, best first."""
        runs = [
            {'q': by_score(list(scores), list(scores.values()))} for scores in (results1, results2)
        ]
        ranking = fuse(runs, method, hits)['q']
        return dict(zip(ranking.docids, ranking.scores, strict=True))

    @tool
    async def get_qrels(index_name: _Index, query_id: str) -> dict[str, str]:
        """The judgments of a topic: {docid: grade}."""
        return {
            docid: str(grade) for docid, grade in service.index(index_name).grades(query_id).items()
        }

    @tool
    async def eval_hits(
        index_name: _Index,
        metric: Literal['ndcg', 'recall', 'map', 'recip_rank'],
        query_id: str,
        hits: _Scores,
        cutoff: Annotated[int, Field(ge=1, le=1000)] = 10,
    ) -> float:
        """The value of a metric for the hits of a judged topic."""
        grades = service.index(index_name).grades(query_id)
        measures = parse_measures([METRICS[metric].format(cutoff)])
        run = {query_id: by_score(list(hits), list(hits.values()))}
        (value,) = evaluate(run, {query_id: grades}, measures).means.values()
        return value

    @tool
    async def rerank(
        query: _Query,
        docids: Annotated[list[str], Field(description='of the index, best first', min_length=1)],
        index: _Index,
        reranker: Annotated[
            str, Field(description='NAME, or NAME:METHOD for duoBERT, see get_index')
        ],
    ) -> list[dict[str, Any]]:
        """Documents of an index in a new order, by monoBERT, duoBERT, EPIC or CEDR."""
        name, _, method = reranker.partition(':')
        spec = parse_stage(f'{name}@{len(docids)}' + (f':{method}' if method else ''))
        ranking = await service.run(
            lambda trace: service.rerank(index, query, docids, spec, trace), True
        )
        return [
            {'docid': hit.docid, 'score': hit.score, 'rank': rank}
            for rank, hit in enumerate(ranking, 1)
        ]

    @tool
    async def explain(
        query: _Query,
        docids: Annotated[list[str], Field(description='of the index', min_length=1)],
        index: _Index,
        model: Annotated[
            str, Field(description="a reranker's name, or a system: epic, cedr, duobert, monobert")
        ],
    ) -> dict[str, Any]:
        """Why documents are where they are: term contributions, similarity maps, pair matrices,
        scores.
        """
        return await service.run(
            lambda trace: service.explain(index, model, query, docids, {}, trace), True
        )

    return mcp


def make_mcp(settings: ServeSettings) -> FastMCP:
    """An MCP server with a service of its own, which is open while the server runs."""
    service = Service(settings)

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        await service.open()
        try:
            yield
        finally:
            await service.close()

    return make_tools(service, lifespan)
