"""The addresses below /v1 that write into a collection.

They are for keys of `write_keys`, and for indexes whose settings say `writable: true`. As in
`routes`, a handler's `summary` is what the OpenAPI document has.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from pyserini_repbert.errors import InputError
from pyserini_repbert.serve import answer_models as models
from pyserini_repbert.serve.answers import API
from pyserini_repbert.serve.refusals import (
    RESPONSES,
    NotAllowedError,
    check_parameters,
    json_response,
)
from pyserini_repbert.serve.routes import Call, ClientCall, IndexName
from pyserini_repbert.serve.searching import RequestTrace
from pyserini_repbert.serve.writes import (
    CollectionWriter,
    Edit,
    WriteJob,
    read_deletion,
    read_document,
    read_documents,
)

# Seconds between two looks at whether a client still waits for a write.
_CHECK_EVERY = 0.25
# The bodies that are read as they are.
_DOCUMENT_BODY = {
    'requestBody': {
        'required': True,
        'content': {
            'application/json': {
                'schema': {'type': 'object'},
                'example': {'text': 'Copper tape keeps slugs off.', 'title': 'Slugs', 'year': 2024},
            }
        },
    }
}
_LINES_BODY = {
    'requestBody': {
        'required': True,
        'content': {
            'application/x-ndjson': {
                'schema': {'type': 'string'},
                'example': '{"id": "a", "text": "…"}\n{"id": "b", "text": "…"}',
            }
        },
    }
}

router = APIRouter(
    prefix='/v1',
    tags=['writing'],
    dependencies=[Depends(check_parameters)],
    responses=RESPONSES,
    redirect_slashes=False,
)
Docid = Annotated[str, Path(description='it may have slashes')]
Wait = Annotated[bool, Query(description='answer when searches find what was written, not at once')]


def _writer_of(call: ClientCall, request: Request, index: str) -> CollectionWriter:
    """The writer of an index.

    Raises UnknownNameError for an unknown index, and NotAllowedError where the client, or anybody,
    may not write.
    """
    call.service.check_alias(index)
    writer = call.service.writers.get(index)
    if writer is None:
        raise NotAllowedError(f"index '{index}' is not writable here")
    if not request.state.may_write:
        raise NotAllowedError('writing takes a key that may write: send it as X-API-Key')
    return writer


async def _write(
    call: ClientCall, writer: CollectionWriter, index: str, edit: Edit, wait: bool
) -> Response:
    """The answer to an edit: its job, which may have ended."""
    job = writer.submit(edit)
    if not wait:
        return json_response(_job_answer(index, job), 202)

    def wait_for_job(trace: RequestTrace) -> dict[str, Any]:
        while not job.ended.wait(_CHECK_EVERY):
            trace.advance(0)
        if job.error is not None:
            raise job.error
        return _job_answer(index, job)

    return await call.answer(wait_for_job, reranks=True)


def _job_answer(index: str, job: WriteJob) -> dict[str, Any]:
    return {'api': API, 'index': index, **job.describe()}


@router.put(
    '/{index}/documents/{docid:path}',
    summary='Add a document, or replace it',
    response_model=models.WriteResponse,
    openapi_extra=_DOCUMENT_BODY,
)
async def put_document(
    call: Call, request: Request, index: IndexName, docid: Docid, wait: Wait = False
) -> Response:
    writer = _writer_of(call, request, index)
    edit = read_document(docid, await request.body())
    return await _write(call, writer, index, edit, wait)


@router.delete(
    '/{index}/documents/{docid:path}',
    summary='Delete a document',
    response_model=models.WriteResponse,
)
async def delete_document(
    call: Call, request: Request, index: IndexName, docid: Docid, wait: Wait = False
) -> Response:
    writer = _writer_of(call, request, index)
    return await _write(call, writer, index, read_deletion(docid), wait)


@router.post(
    '/{index}/documents',
    summary='Add documents, or replace them: one a line, as JSON',
    response_model=models.WriteResponse,
    openapi_extra=_LINES_BODY,
)
async def post_documents(
    call: Call, request: Request, index: IndexName, wait: Wait = False
) -> Response:
    writer = _writer_of(call, request, index)
    return await _write(call, writer, index, read_documents(await request.body()), wait)


@router.post(
    '/{index}/sync',
    summary='Bring the collection up to date with its source',
    response_model=models.WriteResponse,
)
async def sync(call: Call, request: Request, index: IndexName, wait: Wait = False) -> Response:
    writer = _writer_of(call, request, index)
    source = call.service.settings.indexes[index].source
    if source is None:
        raise InputError(f"index '{index}' has no source in the settings of the service")
    return await _write(call, writer, index, Edit(source=source), wait)


@router.get(
    '/{index}/writes/{job}', summary='How far a write is', response_model=models.WriteResponse
)
async def write_job(
    call: Call,
    request: Request,
    index: IndexName,
    job: Annotated[str, Path(description='as an answer to a write has it')],
) -> Response:
    writer = _writer_of(call, request, index)
    return json_response(_job_answer(index, writer.job(job)))
