"""The addresses below /v1 that write into a collection.

They are for keys of `write_keys`, and for indexes whose settings say `writable: true`. As in
`routes`, a handler's `summary` is what the OpenAPI document has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from pyserini_repbert.errors import InputError
from pyserini_repbert.serve import answer_models as models
from pyserini_repbert.serve.answer_models import API
from pyserini_repbert.serve.http_errors import RESPONSES, check_parameters, json_response
from pyserini_repbert.serve.refusals import NotAllowedError, TooLateError
from pyserini_repbert.serve.routes import Call, ClientCall, IndexName, IndexRoute
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
# The bodies that are read as raw bytes.
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
    route_class=IndexRoute,
    tags=['writing'],
    dependencies=[Depends(check_parameters)],
    responses=RESPONSES,
    redirect_slashes=False,
)
Docid = Annotated[str, Path(description='it may have slashes')]
Wait = Annotated[
    bool, Query(description='answer when searches find the written documents, not at once')
]


@dataclass(frozen=True)
class WriteCall:
    """A request that writes into a collection, from a client that may do so.

    Attributes
    ----------
    client : the request, and the service that answers it
    index : the name of the collection
    writer : writes into it
    """

    client: ClientCall
    index: str
    writer: CollectionWriter

    async def submit(self, edit: Edit, wait: bool) -> Response:
        """The answer to an edit: its job, which has ended if the client waits for that."""
        job = self.writer.submit(edit)
        if not wait:
            return json_response(self.describe(job), 202)

        def wait_for_job(trace: RequestTrace) -> models.WriteResponse:
            while not job.ended.wait(_CHECK_EVERY):
                trace.advance(0)
            if job.error is not None:
                raise job.error
            return self.describe(job)

        try:
            return await self.client.answer(wait_for_job, reranks=True)
        except TooLateError as error:
            raise TooLateError(
                f"write '{job.id}' has not ended yet, and may still happen: ask "
                f'/v1/{self.index}/writes/{job.id} whether it has'
            ) from error

    def describe(self, job: WriteJob) -> models.WriteResponse:
        """A job, as the answers to writes have it."""
        error = None
        if job.error is not None:
            error = ' '.join(str(job.error).split())
        return models.WriteResponse(
            api=API,
            index=self.index,
            job=job.id,
            state=job.state,
            documents=job.n_documents,
            generation=job.generation,
            changes=job.changes,
            error=error,
        )


async def get_write_call(client: Call, request: Request, index: IndexName) -> WriteCall:
    """The dependency of each route.

    Raises UnknownNameError for an unknown index, and NotAllowedError if the client, or anybody,
    may not write.
    """
    client.service.check_alias(index)
    writer = client.service.writers.get(index)
    if writer is None:
        raise NotAllowedError(f"index '{index}' is not writable here")
    if not request.state.may_write:
        raise NotAllowedError('writing takes a key that may write: send it as X-API-Key')
    return WriteCall(client, index, writer)


Write = Annotated[WriteCall, Depends(get_write_call)]


@router.put(
    '/{index}/documents/{docid:path}',
    summary='Add a document, or replace it',
    response_model=models.WriteResponse,
    openapi_extra=_DOCUMENT_BODY,
)
async def put_document(
    write: Write, request: Request, docid: Docid, wait: Wait = False
) -> Response:
    return await write.submit(read_document(docid, await request.body()), wait)


@router.delete(
    '/{index}/documents/{docid:path}',
    summary='Delete a document',
    response_model=models.WriteResponse,
)
async def delete_document(write: Write, docid: Docid, wait: Wait = False) -> Response:
    return await write.submit(read_deletion(docid), wait)


@router.post(
    '/{index}/documents',
    summary='Add documents, or replace them: one on each line, as JSON',
    response_model=models.WriteResponse,
    openapi_extra=_LINES_BODY,
)
async def post_documents(write: Write, request: Request, wait: Wait = False) -> Response:
    return await write.submit(read_documents(await request.body()), wait)


@router.post(
    '/{index}/sync',
    summary='Bring the collection up to date with its source',
    response_model=models.WriteResponse,
)
async def sync(write: Write, wait: Wait = False) -> Response:
    source = write.client.service.settings.indexes[write.index].source
    if source is None:
        raise InputError(f"index '{write.index}' has no source in the settings of the service")
    return await write.submit(Edit(source=source), wait)


@router.get(
    '/{index}/writes/{job}', summary='How far a write is', response_model=models.WriteResponse
)
async def write_job(
    write: Write,
    job: Annotated[str, Path(description='as in the answer to a write')],
) -> Response:
    return json_response(write.describe(write.writer.job(job)))
