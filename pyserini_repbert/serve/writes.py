"""Writing into a served collection: a queue, a process that writes, and jobs.

Writes that wait together become one generation. The writing process has its own model and its own
Java, so that searches continue. It ends with the service. The collection's lock keeps it apart from
other writers.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.collection.identity import KnownCollection
from pyserini_repbert.data.documents import DOCID_KEYS, Document
from pyserini_repbert.data.passages import BadPassage, corpus_of, given_document
from pyserini_repbert.data.values import first_key, identifier_problem, parse_json
from pyserini_repbert.errors import (
    BusyError,
    InputError,
    LostCollectionError,
    MissingResourceError,
    PyseriniRepbertError,
)
from pyserini_repbert.serve.answer_models import WriteState
from pyserini_repbert.serve.child import ChildProcess, LostProcessError, OverdueError
from pyserini_repbert.serve.refusals import NotReadyError, OverloadedError, TooLateError
from pyserini_repbert.serve.settings import Limits

if TYPE_CHECKING:
    # The process that writes imports them.
    from pyserini_repbert.collection.collection import Collection
    from pyserini_repbert.collection.syncing import Changes

logger = logging.getLogger(__name__)

# Jobs that are done and can still be asked for.
_KEPT_JOBS = 1000
# Seconds until a write is tried again while another process holds the collection's lock.
_BUSY_SECONDS = 0.2
# How long a write waits for another writer.
_MOST_BUSY_SECONDS = 60.0
_ID = 'id'  # the docid of a document in a body


@dataclass(frozen=True)
class Edit:
    """A change of a collection.

    Attributes
    ----------
    put : to add, or to replace documents of the same docids
    deleted : docids of documents to delete
    source : a corpus to bring the collection up to date with; None: none
    """

    put: tuple[Document, ...] = ()
    deleted: tuple[str, ...] = ()
    source: str | None = None

    def __len__(self) -> int:
        """How many documents it names."""
        return len(self.put) + len(self.deleted)


@dataclass
class WriteJob:
    """An edit, and how far it is.

    Attributes
    ----------
    edit : what to change; empty once it has ended, since jobs outlive their documents
    n_documents : how many documents it names
    id : by which a client asks for it
    state : 'waiting', 'writing', 'done' or 'failed'
    generation : in which searches find it; None before it is done
    changes : of it and the writes done together with it, by 'added', 'changed', 'deleted' and
        'unchanged'
    error : why it failed
    ended : set when it is done or failed
    """

    edit: Edit
    n_documents: int = field(init=False)
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    state: WriteState = 'waiting'
    generation: int | None = None
    changes: dict[str, int] | None = None
    error: PyseriniRepbertError | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.n_documents = len(self.edit)

    def end(self, state: WriteState) -> None:
        """Mark the job as done or failed, and drop its documents."""
        self.edit = Edit()
        self.state = state
        self.ended.set()


class CollectionWriter:
    """Writes into one collection, edit after edit; those that wait together become one generation.

    Parameters
    ----------
    folder : of the collection
    device : of its encoder
    limits : how many edits may wait, and how long writing may take
    on_published : called after each batch of edits, before their jobs end
    expected : says which collection the folder has to hold
    """

    def __init__(
        self,
        folder: Path,
        device: str,
        limits: Limits,
        on_published: Callable[[], object],
        expected: Callable[[], KnownCollection | None],
    ) -> None:
        self._folder = folder
        self._device = device
        self._max_waiting = limits.waiting
        self._seconds = limits.write_seconds
        self._on_published = on_published
        self._expected = expected
        self._waiting: deque[WriteJob] = deque()
        self._jobs: OrderedDict[str, WriteJob] = OrderedDict()
        self._changed = threading.Condition()
        self._stopping = False
        self._process = ChildProcess()
        self._thread = threading.Thread(target=self._work, name='writer', daemon=True)
        self._thread.start()

    def submit(self, edit: Edit) -> WriteJob:
        """Queue an edit.

        Raises OverloadedError if too many edits wait.
        """
        job = WriteJob(edit)
        with self._changed:
            if len(self._waiting) >= self._max_waiting:
                raise OverloadedError(
                    f'{len(self._waiting)} writes wait already: try again later, or send several '
                    'documents at once'
                )
            self._waiting.append(job)
            self._jobs[job.id] = job
            while len(self._jobs) > _KEPT_JOBS + self._max_waiting:
                self._jobs.popitem(last=False)
            self._changed.notify()
        return job

    def job(self, job_id: str) -> WriteJob:
        """A job by its id. Raises MissingResourceError for one that is no longer known."""
        with self._changed:
            job = self._jobs.get(job_id)
        if job is None:
            raise MissingResourceError(f"there is no write '{job_id[:60]}' here")
        return job

    def give_up(self, job: WriteJob) -> None:
        """End a sync, whether it waits or is in hand; it fails. What it has encoded is kept."""
        with self._changed:
            is_waiting = job in self._waiting
            if is_waiting:
                self._waiting.remove(job)
        if is_waiting:
            _fail(job, BusyError('the sync was given up'))
        elif not job.ended.is_set():
            # A sync is never done together with other writes.
            self._process.end()

    def stop(self) -> None:
        """Finish the edit in hand, fail those that wait, and end the process that writes."""
        with self._changed:
            self._stopping = True
            left = list(self._waiting)
            self._waiting.clear()
            self._changed.notify()
        for job in left:
            _fail(job, BusyError('the service stopped before this write: send it again'))
        self._thread.join()
        self._process.stop()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._stopping)
                if self._stopping:
                    return
                batch = _take_batch(self._waiting)
            self._write(batch)

    def _write(self, batch: Sequence[WriteJob]) -> None:
        """Write a batch of edits; after an error, each is written again separately."""
        for job in batch:
            job.state = 'writing'
        try:
            changes = self._apply(merge_edits([job.edit for job in batch]))
        except (BusyError, LostCollectionError, TooLateError) as error:
            # Each alone would wait as long again, or find the same folder.
            for job in batch:
                _fail(job, error)
            return
        except PyseriniRepbertError as error:
            if len(batch) == 1:
                _fail(batch[0], error)
                return
            for job in batch:
                self._write([job])
            return
        self._end(batch, changes)

    def _end(self, batch: Sequence[WriteJob], changes: Changes) -> None:
        """Let searches find the written documents, then end the jobs."""
        try:
            self._on_published()
        except Exception:
            # The thread has to continue, because later writes wait for it.
            number = changes.generation
            logger.exception('generation %d of %s cannot be opened', number, self._folder)
            unseen = BusyError(
                f'generation {number} is written, but searches cannot open it yet: the log says why'
            )
            for job in batch:
                _fail(job, unseen)
            return
        for job in batch:
            job.generation = changes.generation
            job.changes = changes.documents
            job.end('done')

    def _apply(self, edit: Edit) -> Changes:
        """Apply an edit in the process that writes; waits for other writers."""
        waited = 0.0
        while True:
            try:
                return self._call(edit)
            except BusyError as error:
                if self._stopping or waited >= _MOST_BUSY_SECONDS:
                    # The error names files of this machine, which are not for clients.
                    logger.warning('a write is given up: %s', error)
                    raise BusyError(
                        'another program writes into the collection: send the write again later'
                    ) from error
                time.sleep(_BUSY_SECONDS)
                waited += _BUSY_SECONDS

    def _call(self, edit: Edit) -> Changes:
        arguments = (str(self._folder), self._device, edit, self._expected())
        try:
            changes: Changes = self._process.call(apply_edit, *arguments, seconds=self._seconds)
            return changes
        except LostProcessError as error:
            raise NotReadyError(f'while it wrote, {error}: send the write again') from error
        except OverdueError as error:
            raise TooLateError(
                f'{error} (limits: write_seconds); what was encoded is kept, and the write may '
                'have happened: look before you send it again'
            ) from error
        except PyseriniRepbertError:
            raise
        except Exception as error:
            logger.exception('writing into %s failed', self._folder)
            raise PyseriniRepbertError('writing failed: the log says why') from error


def _fail(job: WriteJob, error: PyseriniRepbertError) -> None:
    job.error = error
    job.end('failed')


def _take_batch(waiting: deque[WriteJob]) -> list[WriteJob]:
    """The edits that are written together: a single sync, or all edits up to the next sync."""
    batch = [waiting.popleft()]
    if batch[0].edit.source is None:
        while waiting and waiting[0].edit.source is None:
            batch.append(waiting.popleft())
    return batch


def merge_edits(edits: Sequence[Edit]) -> Edit:
    """One edit that does what edits do, one after the other."""
    if len(edits) == 1:
        return edits[0]
    # What happens to a document last counts; None is its deletion.
    last: dict[str, Document | None] = {}
    for edit in edits:
        for document in edit.put:
            last[document.docid] = document
        for docid in edit.deleted:
            last[docid] = None
    put = [document for document in last.values() if document is not None]
    deleted = [docid for docid, document in last.items() if document is None]
    return Edit(tuple(put), tuple(deleted))


# Of the process that writes: the collections that it has open, whose encoders stay loaded.
_open_collections: dict[str, Collection] = {}


def apply_edit(
    folder: str, device: str, edit: Edit, expected: KnownCollection | None = None
) -> Changes:
    """Write an edit into a collection; returns the sum of all changes.

    Parameters
    ----------
    folder : of the collection
    device : where its encoder runs
    edit : documents and deletions, or a source to follow
    expected : the collection that the folder has to hold

    Raises LostCollectionError for another collection, an earlier state of it, or none: none is
    made.
    """
    from pyserini_repbert.collection.collection import Collection
    from pyserini_repbert.collection.syncing import Changes

    if folder not in _open_collections:
        _open_collections[folder] = Collection.open(folder, device=device)
    collection = _open_collections[folder]
    collection.expected = expected
    if edit.source is not None:
        return collection.sync(edit.source)
    if not edit.put:
        return collection.delete(edit.deleted)
    changes = collection.add(edit.put)
    if not edit.deleted:
        return changes
    deleted = collection.delete(edit.deleted)
    return Changes(
        added=changes.added,
        changed=changes.changed,
        deleted=deleted.deleted,
        unchanged=deleted.unchanged,
        encoded=changes.encoded,
        generation=deleted.generation,
        is_published=changes.is_published or deleted.is_published,
    )


def read_document(docid: str, body: bytes) -> Edit:
    """The edit of one document: its docid, and a JSON object with the rest.

    Raises InputError for a body that is not an object or has another id, and for a document that no
    collection takes.
    """
    values = _parse(body, 'the body')
    if not isinstance(values, dict):
        raise InputError('the body has to be a JSON object: {"text": …, "title": …, FIELD: …}')
    key = first_key(values, DOCID_KEYS) or _ID
    given = values.get(key, docid)
    if given != docid:
        raise InputError(
            f"the body has the {key} {ascii(given)[:60]}, the address '{docid[:60]}': leave it out"
        )
    return Edit(put=_documents([{**values, key: docid}]))


def read_documents(body: bytes) -> Edit:
    """The edit of several documents, given as JSON lines.

    A document with an `id` has this docid, whatever else it has. Raises InputError, with its line,
    for the first that is not JSON or that no collection takes.
    """
    documents = [
        _identified(_parse(line, f'line {number}'))
        for number, line in enumerate(body.splitlines(), 1)
        if line.strip()
    ]
    if not documents:
        raise InputError('the body has no documents: send one on each line, as JSON')
    return Edit(put=_documents(documents))


def _identified(values: Any) -> Any:
    """What a corpus reads as the document of a JSON value; its `id` comes before other docids."""
    if not isinstance(values, dict) or _ID not in values:
        return values
    item = {name: value for name, value in values.items() if name not in DOCID_KEYS}
    document = given_document({**item, _ID: values[_ID]})
    if isinstance(document, BadPassage):
        return values
    others = {name: values[name] for name in DOCID_KEYS if name in values and name != _ID}
    return replace(document, fields={**document.fields, **others})


def read_deletion(docid: str) -> Edit:
    """The edit that deletes a document. Raises InputError for a docid that none can have."""
    problem = identifier_problem(docid)
    if problem:
        raise InputError(f'docid {docid[:60]!r} {problem}')
    return Edit(deleted=(docid,))


def _parse(text: bytes, what: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise InputError(f'{what} is not JSON: {error}') from error


def _documents(values: Sequence[Any]) -> tuple[Document, ...]:
    """Documents as a corpus reads them: each is checked, with all others."""
    return tuple(corpus_of(values).documents())
