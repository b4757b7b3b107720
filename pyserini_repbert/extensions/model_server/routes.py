"""Addresses in the forms of other services: reranking as Cohere and Jina have it, vectors and the
list of models as OpenAI has them.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Depends, Path
from pydantic import BaseModel, ConfigDict, Field, StrictInt
from starlette.responses import Response

from pyserini_repbert import __version__
from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.errors import InputError, UnknownNameError
from pyserini_repbert.extensions.model_server.models import (
    DOCUMENT,
    QUERY,
    TextEncoders,
    encoders_of,
    in_base64,
    rerank_texts,
)
from pyserini_repbert.extensions.model_server.serving import ClientErrorResponse
from pyserini_repbert.serve.http_errors import check_parameters, json_response, responses_of
from pyserini_repbert.serve.requests import NOT_BLANK, NotBlank, StrictModel
from pyserini_repbert.serve.routes import Call
from pyserini_repbert.serve.searching import RequestTrace
from pyserini_repbert.serve.service import Service

router = APIRouter(
    tags=['for other programs'],
    responses=responses_of(ClientErrorResponse),
    dependencies=[Depends(check_parameters)],
    redirect_slashes=False,
)

# The names that Cohere's, Voyage's and Jina's clients have for kinds of text.
_KINDS = {
    'query': QUERY,
    'search_query': QUERY,
    'document': DOCUMENT,
    'passage': DOCUMENT,
    'search_document': DOCUMENT,
}


# What the document says of token ids and lists; their refusal has its own words.
_TokenId = Annotated[StrictInt, Field(json_schema_extra={'minimum': 0})]
_Value = TypeVar('_Value')
_Some = Annotated[list[_Value], Field(json_schema_extra={'minItems': 1})]


class TextDocument(BaseModel):
    """A document as an object, reranked by its `text` or the fields of `rank_fields`."""

    model_config = ConfigDict(extra='allow')

    text: str | None = Field(None, description='the text to rerank, without rank_fields')


class RerankTextsRequest(StrictModel):
    """A question, and texts to rerank."""

    model: str = Field(description='name of a reranker, as in /v1/models, or of its system')
    query: str = Field(description='the question', json_schema_extra=NOT_BLANK)
    documents: list[NotBlank | TextDocument] = Field(
        description='texts, or objects with a text', json_schema_extra={'minItems': 1}
    )
    top_n: Annotated[int, Field(ge=1)] | None = Field(None, description='how many; default: all')
    return_documents: bool = Field(False, description='also the documents')
    rank_fields: Annotated[list[str], Field(min_length=1, max_length=100)] | None = Field(
        None,
        description="Cohere's: fields of objects that are reranked, joined by a space in this "
        'order; default: text',
    )
    max_chunks_per_doc: int | None = Field(None, description="Cohere's; not used")
    max_tokens_per_doc: int | None = Field(None, description="Cohere's; not used")
    priority: int | None = Field(None, description="Cohere's; not used")
    truncation: bool | None = Field(None, description="Jina's; long texts are always cut")


class RerankedText(BaseModel):
    """A text at its new rank."""

    index: int = Field(description='its position in the request')
    relevance_score: float = Field(
        ge=0,
        le=1,
        description="from the reranker's score, in its order: monoBERT's probability, the sigmoid "
        'of other scores',
    )
    document: TextDocument | None = Field(None, description='with return_documents=true')


class RerankTextsResponse(BaseModel):
    """Texts in a reranker's order, best first."""

    id: str
    model: str
    results: list[RerankedText]
    meta: dict[str, Any] = Field(description="Cohere's: the version of the API")
    usage: dict[str, int] = Field(description="Jina's: tokens, which are not counted here")


class EmbeddingsRequest(StrictModel):
    """Texts to encode."""

    model: str = Field(description='name of an encoder, as in /v1/models, or of an index')
    input: NotBlank | _Some[NotBlank] | _Some[_TokenId] | _Some[_Some[_TokenId]] = Field(
        description='a text, or several; or, with `tokenizer`, token ids of a text, or of several'
    )
    tokenizer: str | None = Field(
        None,
        description='for token ids: the encoder whose tokenizer made them, as in `model`; ids of '
        'another tokenizer, such as tiktoken, are refused',
    )
    input_type: str | None = Field(
        None,
        description=f'what the texts are: {", ".join(_KINDS)}; default: document',
        json_schema_extra={'enum': [*_KINDS, None]},
    )
    encoding_format: Literal['float', 'base64'] = Field('float', description='of the vectors')
    dimensions: int | None = Field(
        None, description="the dimension of the model's vectors, which are not shortened"
    )
    user: str | None = Field(None, description='not used')


class Embedding(BaseModel):
    """The vector of a text."""

    object: Literal['embedding']
    index: int = Field(description='position of the text in the request')
    embedding: list[float] | str = Field(description='numbers, or float32 in base64')


class EmbeddingsResponse(BaseModel):
    """Vectors of texts."""

    object: Literal['list']
    model: str
    data: list[Embedding]
    usage: dict[str, int] = Field(description='prompt_tokens and total_tokens')


class ModelResponse(BaseModel):
    """An encoder or a reranker."""

    id: str
    object: Literal['model']
    created: int = Field(description='always 0')
    owned_by: str


class ModelsResponse(BaseModel):
    """The models of a service."""

    object: Literal['list']
    data: list[ModelResponse] = Field(description='the encoders and rerankers')


def _reranked_text(
    position: int, document: str | TextDocument, rank_fields: Sequence[str] | None
) -> str:
    """The text of a document that is reranked. Raises InputError for an object without text."""
    if isinstance(document, str):
        return document
    fields = document.model_dump()
    names = rank_fields or ['text']
    parts = []
    for name in names:
        value = fields.get(name)
        if isinstance(value, str | int | float):
            parts.append(str(value))
        elif value is not None:
            raise InputError(
                f"'{name}' of document {position} is neither text nor number: leave it out of "
                "'rank_fields'"
            )
    if not parts:
        advice = 'name fields that it has' if rank_fields else "name its fields in 'rank_fields'"
        raise InputError(f'document {position} has no {", ".join(names)}: {advice}')
    return ' '.join(parts)


def _shown_document(document: str | TextDocument, text: str) -> dict[str, Any]:
    """A document to return: all its fields, and the reranked text if it has no `text`."""
    if isinstance(document, str):
        return {'text': document}
    fields = document.model_dump(exclude_none=True)
    return {'text': text, **fields}


def _encoders(service: Service) -> TextEncoders:
    """The encoders of a service, which keeps those that are open."""
    # Not where queries are encoded: texts of other programs may be many.
    encoders = TextEncoders(service.settings, service.queues['rerank'])
    kept: TextEncoders = service.known_to_parts.setdefault('text encoders', encoders)
    return kept


def _texts_of(body: EmbeddingsRequest) -> list[str] | list[list[int]]:
    """The texts of a request, or the token ids of each."""
    if isinstance(body.input, str):
        return [body.input]
    values: list[Any] = body.input
    if values and isinstance(values[0], int):
        return [values]
    return values


@router.post(
    '/v1/rerank',
    summary='Rerank texts, as with Cohere and Jina',
    response_model=RerankTextsResponse,
)
@router.post('/v2/rerank', include_in_schema=False)
async def rerank(call: Call, body: RerankTextsRequest) -> Response:
    texts = [
        _reranked_text(position, document, body.rank_fields)
        for position, document in enumerate(body.documents)
    ]
    service = call.service

    def rerank_all(trace: RequestTrace) -> dict[str, Any]:
        ranking = rerank_texts(
            service.rerankers, body.model, body.query, texts, service.settings.limits, trace
        )
        best = ranking[: body.top_n]
        name = service.rerankers.resolve_name(body.model)
        relevances = service.rerankers.relevances(name, best.scores)
        results: list[dict[str, Any]] = []
        for hit, relevance in zip(best, relevances, strict=True):
            position = int(hit.docid)
            result: dict[str, Any] = {'index': position, 'relevance_score': relevance}
            if body.return_documents:
                result['document'] = _shown_document(body.documents[position], texts[position])
            results.append(result)
        return {
            'id': str(uuid.uuid4()),
            'model': body.model,
            'results': results,
            'meta': {'api_version': {'version': __version__}},
            'usage': {'total_tokens': 0},
        }

    return await call.answer(rerank_all, reranks=True)


@router.post(
    '/v1/embeddings', summary='Encode texts, as with OpenAI', response_model=EmbeddingsResponse
)
async def embeddings(call: Call, body: EmbeddingsRequest) -> Response:
    texts = _texts_of(body)
    kind = _KINDS.get(DOCUMENT if body.input_type is None else body.input_type)
    if kind is None:
        raise InputError(f"input_type '{body.input_type}': expected {', '.join(_KINDS)}")
    service = call.service

    def encode_all(trace: RequestTrace) -> dict[str, Any]:
        indexes = service.served.values()
        found = _encoders(service).embed(
            indexes, body.model, texts, kind, trace, tokenizer=body.tokenizer
        )
        dimension = found.vectors.shape[1]
        if body.dimensions not in (None, dimension):
            raise InputError(
                f"'dimensions' is {body.dimensions}: {found.model} has vectors of {dimension}"
            )
        data: list[dict[str, Any]] = []
        for position, vector in enumerate(found.vectors):
            shown: Any = vector.tolist()
            if body.encoding_format == 'base64':
                shown = in_base64(vector)
            data.append({'object': 'embedding', 'index': position, 'embedding': shown})
        usage = {'prompt_tokens': found.tokens, 'total_tokens': found.tokens}
        return {'object': 'list', 'model': found.model, 'data': data, 'usage': usage}

    return await call.answer(encode_all, reranks=True)


@router.get(
    '/v1/models',
    summary='The encoders and rerankers, as with OpenAI',
    response_model=ModelsResponse,
)
async def models(call: Call) -> Response:
    data = [_model(name) for name in _model_names(call)]
    return json_response({'object': 'list', 'data': data})


@router.get(
    '/v1/models/{model:path}',
    summary='An encoder or reranker, as with OpenAI',
    response_model=ModelResponse,
)
async def model(
    call: Call, model: Annotated[str, Path(description='its id, as in /v1/models')]
) -> Response:
    names = _model_names(call)
    if model not in names:
        raise UnknownNameError(
            f"'{model[:100]}' is not a model here{did_you_mean(model, names)}: see /v1/models"
        )
    return json_response(_model(model))


def _model_names(call: Call) -> list[str]:
    """The ids of the encoders and rerankers."""
    return [*encoders_of(call.service.served.values()), *call.service.rerankers.systems]


def _model(name: str) -> dict[str, Any]:
    return {'id': name, 'object': 'model', 'created': 0, 'owned_by': 'pyserini_repbert'}
