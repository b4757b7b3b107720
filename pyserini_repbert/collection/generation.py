"""What a reader sees of a collection: one generation, which stays while it is open."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set as AbstractSet
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.generation_manifest import (
    GENERATIONS,
    LUCENE,
    GenerationManifest,
    Published,
    last_published,
    manifest_path,
    read_manifest,
)
from pyserini_repbert.collection.identity import KnownCollection, no_collection, read_identity
from pyserini_repbert.collection.locks import GenerationLock
from pyserini_repbert.collection.settings import CollectionSettings
from pyserini_repbert.collection.shards import SHARDS, PassageShard, open_shard
from pyserini_repbert.collection.source_links import LinkTemplate, web_address
from pyserini_repbert.collection.store import (
    ALIVE,
    STORE,
    damage,
    open_for_reading,
    sqlite_errors,
)
from pyserini_repbert.collection.stored_values import (
    LANGUAGE,
    LAST_SIGN,
    VALUE_TYPES,
    WORD,
    begins_date,
    fields_fit,
    number_of,
    origin_fits,
    stored_date,
    text_fits,
)
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.origins import Origin
from pyserini_repbert.data.word_forms import docid_form, unite, unite_value
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.index.manifest import is_collection

if TYPE_CHECKING:
    from pyserini_repbert.collection.file_fields import FileFields

_TRIES = 50
# Filters whose documents are kept.
_MOST_MASKS = 32
_IS_LANGUAGE = f"field = '{LANGUAGE}' AND field_values.type = 'text'"
# Few documents name an address: the fields of others are not read.
FIELDS_WITH_URL = """CASE WHEN instr(fields, '"url"') THEN fields END"""


@dataclass(frozen=True)
class LiveShard:
    """A shard as a generation sees it.

    Attributes
    ----------
    shard : what several generations share: vectors float32 (n, d), documents and numbers int32 (n,)
    live : whether each row counts, bool (n,); None if all do
    """

    shard: PassageShard
    live: NDArray[np.bool_] | None

    @property
    def n_live(self) -> int:
        """How many rows count."""
        return len(self.shard) if self.live is None else int(np.count_nonzero(self.live))


@dataclass(frozen=True)
class StoredPassage:
    """A passage of a document: `text[start:end]`, and where its vector is.

    `shard` is the position in `Generation.shards`, `row` that in the shard.
    """

    docno: int
    number: int
    start: int
    end: int
    shard: int
    row: int


class SourceRow(NamedTuple):
    """SQLite's record of a source; texts are '' for missing values."""

    source: int
    name: str
    prefix: str
    synced: str
    unread: str


class Generation:
    """A collection at one moment: its shards, and what SQLite has of documents.

    Threads may share it. Open it with `open_generation`, and close it: until then, neither its
    files nor its rows are removed.

    Attributes
    ----------
    folder : the collection's
    manifest : what the generation's file says
    sha256 : of the manifest: the generation's digest, which a copy of the collection shares
    identity : of the collection, which a copy shares
    shards : its shards, in order; rows that are not live belong to other generations
    """

    def __init__(
        self,
        folder: Path,
        published: Published,
        manifest: GenerationManifest,
        connection: sqlite3.Connection,
        lock: GenerationLock,
        opened: Mapping[str, PassageShard],
    ) -> None:
        self.folder = folder
        self.manifest = manifest
        self.sha256 = published.manifest_sha256
        self.identity = manifest.identity
        with sqlite_errors(folder / STORE):
            stored_identity = read_identity(connection)
        if stored_identity != self.identity:
            raise DamagedFileError(
                f'the manifests in {folder / GENERATIONS} are not of the collection in {STORE}: '
                'restore the folder from a copy, or build the collection again'
            )
        self._connection = connection
        self._lock = lock
        self._calling = threading.Lock()
        self._masks: dict[Hashable, NDArray[np.bool_]] = {}
        self._masking = threading.Lock()
        shards = []
        for entry in manifest.shards:
            shard = opened.get(entry.name) or open_shard(folder / SHARDS, entry.name)
            # Its file has to have so many rows before memory is taken for them.
            if len(shard.documents) != entry.rows:
                raise DamagedFileError(
                    f'{shard.folder} has {len(shard)} rows, {entry.rows} were expected: build the '
                    'collection again'
                )
            shards.append(LiveShard(shard, entry.live_mask()))
        self.shards = tuple(shards)

    @property
    def number(self) -> int:
        """The generation's number."""
        return self.manifest.number

    @property
    def opened_shards(self) -> dict[str, PassageShard]:
        """Its shards by name, for `open_generation` of another generation."""
        return {live.shard.name: live.shard for live in self.shards}

    @property
    def known(self) -> KnownCollection:
        """Which collection it is of, and which generation it is."""
        return KnownCollection(self.identity, self.number, self.sha256)

    @property
    def settings(self) -> CollectionSettings:
        """The collection's settings."""
        return self.manifest.settings

    @property
    def lucene_folder(self) -> Path | None:
        """Lucene's index of the documents; None for a collection without one."""
        name = self.manifest.lucene
        return None if name is None else self.folder / LUCENE / name

    def __len__(self) -> int:
        """How many documents there are, those without text included."""
        return self.manifest.documents

    def close(self) -> None:
        """Release the generation."""
        with self._calling:
            self._connection.close()
        self._lock.close()

    def damage(self, what: str) -> DamagedFileError:
        """The error for something that differs from what was written."""
        return damage(self.folder, what)

    def docids(self, docnos: Iterable[int]) -> list[str]:
        """The docids of documents by number, in their order.

        Raises DamagedFileError for a number without a docid.
        """
        if isinstance(docnos, np.ndarray):
            docnos = docnos.tolist()
        numbers = self._checked_docnos(docnos)
        if '_all_docids' in vars(self) or len(numbers) > len(self) // 4:
            if numbers and not 0 <= min(numbers) <= max(numbers) < len(self._all_docids):
                raise self.damage(f'there is no document number {max(numbers)}')
            docids = [self._all_docids[number] for number in numbers]
        else:
            rows = self.select(
                'SELECT docno, docid FROM documents '
                'WHERE docno IN (SELECT value FROM json_each(:rows))',
                numbers,
            )
            by_number = dict(rows)
            docids = [by_number.get(number) for number in numbers]
        for number, docid in zip(numbers, docids, strict=True):
            if not isinstance(docid, str):
                raise self.damage(f'document number {number} has no docid')
        return docids

    @cached_property
    def n_numbers(self) -> int:
        """How many numbers documents have had; dead rows of shards may be of any of them.

        Raises DamagedFileError for numbers that would take more memory than SQLite's file.
        """
        ((greatest,),) = self.select('SELECT max(docno) FROM documents')
        ((n_pages,),) = self.select('PRAGMA page_count')
        ((page_size,),) = self.select('PRAGMA page_size')
        if greatest is None:
            return 0
        if not isinstance(greatest, int) or not 0 <= greatest < n_pages * page_size:
            raise self.damage(f'a document has the number {greatest!r:.40}')
        return greatest + 1

    @cached_property
    def _all_docids(self) -> NDArray[Any]:
        """The docid of every number, object (n,)."""
        docids = np.empty(self.n_numbers, dtype=object)
        # A writer may have added others meanwhile, which later generations have.
        rows = self.select(
            'SELECT docno, docid FROM documents '
            "WHERE docno >= 0 AND docno < json_extract(:rows, '$[0]')",
            [self.n_numbers],
        )
        for docno, docid in rows:
            docids[docno] = docid
        return docids

    def docnos(self, docids: Sequence[str]) -> NDArray[np.int64]:
        """The numbers of documents in the order of `docids`, int64 (n,); -1 for one not here."""
        rows = self.select(
            f'SELECT docid, docno FROM documents JOIN fields USING (docno) WHERE {ALIVE} '
            'AND docid IN (SELECT value FROM json_each(:rows))',
            docids,
        )
        by_docid = dict(rows)
        for docid, docno in by_docid.items():
            if not isinstance(docno, int):
                raise self.damage(f"document '{docid}' has the number {docno!r:.40}")
        return np.array([by_docid.get(docid, -1) for docid in docids], np.int64)

    def are_among(self, documents: NDArray[np.bool_], docids: Sequence[str]) -> NDArray[np.bool_]:
        """Whether documents are in a mask, in the order of `docids`, bool (n,).

        Where the mask is at hand, nobody asks again which documents are alive, as `docnos` does.

        Parameters
        ----------
        documents : of the generation, by their numbers, bool (numbers,)
        docids : of the documents
        """
        rows = self.select(
            'SELECT docid, docno FROM documents '
            'WHERE docid IN (SELECT value FROM json_each(:rows))',
            docids,
        )
        among = set()
        for docid, docno in rows:
            # Later generations may have others.
            if isinstance(docno, int) and 0 <= docno < len(documents) and documents[docno]:
                among.add(docid)
        return np.array([docid in among for docid in docids], np.bool_)

    def documents(self, docids: Sequence[str]) -> list[Document | None]:
        """Documents with texts, titles and fields; None for an unknown docid.

        Raises DamagedFileError for one that is not as its digests say.
        """
        rows = self.select(
            'SELECT docid, text, title, fields, digest, text_digest '
            'FROM documents JOIN fields USING (docno) JOIN texts USING (docno) '
            'WHERE fields.since <= :generation AND fields.until > :generation '
            'AND texts.since <= :generation AND texts.until > :generation '
            'AND docid IN (SELECT value FROM json_each(:rows))',
            docids,
        )
        by_docid = {}
        for docid, text, title, fields, digest, text_digest in rows:
            self.check_text(docid, title, text, text_digest)
            by_docid[docid] = Document(docid, text, title, self._fields(docid, fields, digest))
        return [by_docid.get(docid) for docid in docids]

    def check_text(self, docid: str, title: object, text: object, digest: object) -> None:
        """Raises DamagedFileError for a title or a text that does not match the document's
        digest.
        """
        if not text_fits(title, text, digest):
            raise self.damage(
                f"the title or the text of document '{docid}' is not the one that was stored"
            )

    def _fields(self, docid: str, fields: str, digest: object) -> dict[str, Any]:
        """The fields of a document from their JSON; raises as `check_text`."""
        if not fields_fit(fields, digest):
            raise self.damage(f"the fields of document '{docid}' are not those that were stored")
        parsed: dict[str, Any] = json.loads(fields)
        return parsed

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """Titles and texts, joined by a space as Lucene has them; None for a docid not here."""
        texts: list[str | None] = []
        for document in self.documents(docids):
            if document is None:
                texts.append(None)
            else:
                texts.append(f'{document.title} {document.text}'.strip())
        return texts

    def fields(self, docids: Sequence[str]) -> list[dict[str, Any] | None]:
        """The fields of documents, without reading their texts; None for a docid not here.

        Raises DamagedFileError for fields that are not as their digest says.
        """
        rows = self.select(
            f'SELECT docid, fields, digest FROM documents JOIN fields USING (docno) WHERE {ALIVE} '
            'AND docid IN (SELECT value FROM json_each(:rows))',
            docids,
        )
        by_docid = {docid: self._fields(docid, fields, digest) for docid, fields, digest in rows}
        return [by_docid.get(docid) for docid in docids]

    @cached_property
    def languages(self) -> frozenset[str]:
        """The languages of documents, as `languages_of` has them, or of earlier ones."""
        # Seeks the next language, as DISTINCT would read the rows of all documents.
        rows = self.select(
            'WITH RECURSIVE names (name) AS ('
            f'SELECT MIN(value) FROM field_values WHERE {_IS_LANGUAGE} UNION ALL '
            f'SELECT (SELECT MIN(value) FROM field_values WHERE {_IS_LANGUAGE} AND value > name) '
            'FROM names WHERE name IS NOT NULL) SELECT name FROM names WHERE name IS NOT NULL'
        )
        return frozenset(name for (name,) in rows)

    def languages_of(self, docids: Sequence[str]) -> dict[str, str]:
        """The language of each document, by docid, if it is known: codes such as 'de'."""
        rows = self.select(
            'SELECT docid, field_values.value FROM json_each(:rows) AS wanted '
            'CROSS JOIN documents ON docid = wanted.value CROSS JOIN field_values USING (docno) '
            f'WHERE {_IS_LANGUAGE} AND {ALIVE}',
            docids,
        )
        return dict(rows)

    def in_languages(self, languages: AbstractSet[str], docids: Sequence[str]) -> frozenset[str]:
        """The documents among some that are in one of these languages."""
        known = self.languages_of(docids)
        return frozenset(docid for docid, language in known.items() if language in languages)

    def versions(self, docids: Sequence[str]) -> list[str]:
        """A digest of each document's title and text, in hexadecimal; '' for a docid not here."""
        rows = self.select(
            f'SELECT docid, text_digest FROM documents JOIN fields USING (docno) WHERE {ALIVE} '
            'AND docid IN (SELECT value FROM json_each(:rows))',
            docids,
        )
        by_docid = {}
        for docid, digest in rows:
            if not isinstance(digest, bytes):
                raise self.damage(f"document '{docid}' has the digest {digest!r:.40}")
            by_docid[docid] = digest.hex()
        return [by_docid.get(docid, '') for docid in docids]

    def docno_array(self, docnos: Iterable[Any]) -> NDArray[np.int64]:
        """Numbers of documents from rows of SQLite, int64 (n,).

        Raises DamagedFileError for anything but a number.
        """
        try:
            return np.fromiter(docnos, np.int64)
        except (ValueError, TypeError, OverflowError) as error:
            raise self.damage(f'the number of a document is not a number ({error})') from error

    @cached_property
    def live_documents(self) -> NDArray[np.bool_]:
        """Whether the document of each number is live, bool (numbers,); do not change it."""
        live = self.mask_of([])
        for part in self.shards:
            docnos = part.shard.documents
            if part.live is not None:
                docnos = docnos[part.live]
            live |= self.mask_of(docnos)
        if np.count_nonzero(live) != len(self):
            # Documents without text have no passages.
            others = np.flatnonzero(~live).tolist()
            rows = self.select(
                f'SELECT docno FROM fields WHERE {ALIVE} '
                'AND docno IN (SELECT value FROM json_each(:rows))',
                others,
            )
            live |= self.mask_of(docno for (docno,) in rows)
        return live

    def mask_of(self, docnos: Iterable[int]) -> NDArray[np.bool_]:
        """A mask of some documents by their numbers, bool (numbers,).

        A number below 0 is passed over. Raises DamagedFileError for one that no document has.
        """
        numbers = docnos if isinstance(docnos, np.ndarray) else self.docno_array(docnos)
        mask = np.zeros(max(1, self.n_numbers), np.bool_)
        if len(numbers) and numbers.max() >= len(mask):
            raise self.damage(f'a document has the number {numbers.max()}, which has no docid')
        mask[numbers[numbers >= 0]] = True
        return mask

    def source_rows(self) -> list[SourceRow]:
        """The current sources of the collection, in the order of their numbers."""
        rows = self.select(
            "SELECT source, name, COALESCE(prefix, ''), COALESCE(synced, ''), "
            "COALESCE(unread, '') FROM sources LEFT JOIN source_prefixes USING (source) "
            'LEFT JOIN source_syncs USING (source) ORDER BY source'
        )
        return [SourceRow._make(row) for row in rows]

    @cached_property
    def source_links(self) -> dict[int, str]:
        """The prefix or the template of the addresses of each source that has one, by number."""
        return dict(self.select('SELECT source, link FROM source_links'))

    @cached_property
    def source_formats(self) -> dict[int, str]:
        """How the files of each source are read, by number, as stored (`reading_of`)."""
        return dict(self.select('SELECT source, format FROM source_formats'))

    @cached_property
    def _link_templates(self) -> dict[int, LinkTemplate]:
        """The known addresses of files, by the number of their source."""
        templates = {}
        for row in self.source_rows():
            link = self.source_links.get(row.source, '')
            try:
                template = LinkTemplate.of_source(row.name, link)
            except InputError as error:
                raise self.damage(f"the addresses of source '{row.name}' ({error})") from error
            if template is not None:
                templates[row.source] = template
        return templates

    def address(self, own: str, source: int, file: str, anchor: str = '') -> str:
        """Where a document comes from; '' if that has no address.

        Parameters
        ----------
        own : its own address; '' for none
        source : the number of its source file, anchor : as in `LinkTemplate.address`
        """
        template = self._link_templates.get(source)
        if own or template is None:
            return own
        return template.address(file, anchor)

    def own_address(self, docid: str, fields: str | None, digest: object) -> str:
        """The address that a document names; '' for none. `fields` is None if it has no url."""
        if fields is None:
            return ''
        return web_address(self._fields(docid, fields, digest).get('url'))

    def addresses(self, docids: Sequence[str]) -> list[str]:
        """Where documents come from, as addresses; '' for one without an address.

        They are the document's own `url`, addresses below the source's prefix, or files of this
        machine.
        """
        rows = self.select(
            f'SELECT docid, docno, source, {FIELDS_WITH_URL}, digest '
            f'FROM documents JOIN fields USING (docno) WHERE {ALIVE} '
            'AND docid IN (SELECT value FROM json_each(:rows))',
            docids,
        )
        origins = self.origins([row[1] for row in rows])
        by_docid = {}
        for docid, docno, source, fields, digest in rows:
            own = self.own_address(docid, fields, digest)
            file = origins.get(docno, Origin()).file
            by_docid[docid] = self.address(own, source, file)
        return [by_docid.get(docid, '') for docid in docids]

    @cached_property
    def documents_by_source(self) -> dict[int, int]:
        """How many documents there are of each source, by its number."""
        rows = self.select(f'SELECT source, COUNT(*) FROM fields WHERE {ALIVE} GROUP BY source')
        return dict(rows)

    def kept_mask(
        self, wanted: Hashable, evaluate: Callable[[], NDArray[np.bool_]]
    ) -> NDArray[np.bool_]:
        """The documents that a filter lets through, bool (numbers,); do not change it.

        It is evaluated once for all callers: the last `_MOST_MASKS` filters are kept.
        """
        with self._masking:
            mask = self._masks.pop(wanted, None)
        if mask is None:
            mask = evaluate()
        with self._masking:
            self._masks[wanted] = mask
            if len(self._masks) > _MOST_MASKS:
                self._masks.pop(next(iter(self._masks)))
        return mask

    @cached_property
    def file_fields(self) -> FileFields:
        """The fields that documents have of their files."""
        # A search without a filter, whose hits show no fields, loads no reader of them.
        from pyserini_repbert.collection.file_fields import FileFields

        return FileFields(self.select)

    @cached_property
    def field_types(self) -> dict[str, set[str]]:
        """The types of the values of each field: 'text', 'number' or 'date'.

        Files have such fields, too.
        """
        types = {field: set(kinds) for field, kinds in self.own_field_types.items()}
        for field, kinds in self.file_fields.types.items():
            types[field] = types.get(field, set()) | kinds
        return types

    @cached_property
    def own_field_types(self) -> dict[str, set[str]]:
        """The types of the values of each field, without the fields that files give."""
        types: dict[str, set[str]] = {}
        # Seeks the next field, as DISTINCT would read all values.
        rows = self.select(
            'WITH RECURSIVE names (name) AS (SELECT MIN(field) FROM field_values UNION ALL '
            'SELECT (SELECT MIN(field) FROM field_values WHERE field > name) FROM names '
            'WHERE name IS NOT NULL) '
            'SELECT name, value FROM names CROSS JOIN json_each(:rows) AS types WHERE EXISTS '
            f'(SELECT 1 FROM field_values WHERE field = name AND type = types.value AND {ALIVE})',
            VALUE_TYPES,
        )
        for field, kind in rows:
            types.setdefault(field, set()).add(kind)
        return types

    def docnos_of_docid(self, docid: str, is_prefix: bool = False) -> list[Any]:
        """The numbers of the documents whose docid a person means, in any spelling.

        Parameters
        ----------
        docid : as a person writes it
        is_prefix : whether docids that begin so are meant
        """
        form = docid_form(docid)
        last = form + LAST_SIGN if is_prefix else form
        rows = self.select(
            'SELECT docno, docid, form FROM docid_forms JOIN documents USING (docno) '
            "WHERE form >= json_extract(:rows, '$[0]') AND form <= json_extract(:rows, '$[1]') "
            "AND docno < json_extract(:rows, '$[2]') UNION ALL "
            'SELECT docno, docid, docid FROM documents '
            "WHERE docid >= json_extract(:rows, '$[0]') AND docid <= json_extract(:rows, '$[1]') "
            "AND docno < json_extract(:rows, '$[2]')",
            # Later generations may have others.
            [form, last, self.n_numbers],
        )
        return [docno for docno, stored, stored_form in rows if docid_form(stored) == stored_form]

    def docnos_where(
        self, field: str, condition: str = '', values: Sequence[Any] = ()
    ) -> list[Any]:
        """The numbers of documents with a value of a field, their own or their file's.

        Parameters
        ----------
        field : its name
        condition : in SQL, about `type` and `value`; in `:rows`, `values` begin at `$[1]`. '' for
            any value
        values : what the field's values are compared with

        One with several such values comes several times.
        """
        compared = [field, *values]
        whole = "field = json_extract(:rows, '$[0]')"
        if condition:
            whole = f'{whole} AND {condition}'
        rows = self.select(f'SELECT docno FROM field_values WHERE {whole} AND {ALIVE}', compared)
        docnos = [docno for (docno,) in rows]
        if field not in self.file_fields.types:
            return docnos
        of_files = self.file_fields.docnos_where(whole, compared)
        if field in self.own_field_types:
            # A document's own value comes first.
            rows = self.select(
                "SELECT docno FROM field_values WHERE field = json_extract(:rows, '$[0]') "
                f'AND {ALIVE}',
                [field],
            )
            with_own = {docno for (docno,) in rows}
            of_files = [docno for docno in of_files if docno not in with_own]
        return docnos + of_files

    def docnos_of_value(self, field: str, text: str, is_phrase: bool = False) -> list[Any]:
        """The numbers of the documents that a filter FIELD:TEXT finds.

        One with several such values comes several times. A phrase finds no number. A year, a month
        or a day finds all dates in it.
        """
        form = unite_value(text)
        united = unite(text)
        date = stored_date(united)
        readings: dict[str, tuple[str | float, str | float]] = {
            'text': (form, form),
            WORD: (form, form),
            'date': (date, date + LAST_SIGN if begins_date(date) else date),
        }
        number = number_of(united)
        if number is not None and not is_phrase:
            readings['number'] = (number, number)
        condition = (
            "type = json_extract(:rows, '$[1]') AND value >= json_extract(:rows, '$[2]') "
            "AND value <= json_extract(:rows, '$[3]')"
        )
        docnos = []
        for kind, (low, high) in readings.items():
            docnos += self.docnos_where(field, condition, [kind, low, high])
        return docnos

    def _checked_docnos(self, docnos: Iterable[object]) -> list[int]:
        """Numbers of documents. Raises DamagedFileError for other values."""
        numbers = []
        for docno in docnos:
            if not isinstance(docno, (int, np.integer)):
                raise self.damage(f'a document has the number {docno!r:.40}')
            numbers.append(int(docno))
        return numbers

    def passages(self, docnos: Iterable[int]) -> dict[int, list[StoredPassage]]:
        """The passages of documents, in order, by the document's number."""
        numbers = self._checked_docnos(docnos)
        rows = self.select(
            'SELECT docno, number, start, end, name, row FROM passages JOIN shards USING (shard) '
            'WHERE passages.since <= :generation AND passages.until > :generation '
            'AND docno IN (SELECT value FROM json_each(:rows)) ORDER BY docno, number',
            numbers,
        )
        spans: dict[int, list[StoredPassage]] = {number: [] for number in numbers}
        for docno, number, start, end, name, row in rows:
            position = self._positions.get(name)
            if position is None or not 0 <= row < len(self.shards[position].shard):
                raise self.damage(f'shard {name} has no row {row} for document number {docno}')
            spans[docno].append(StoredPassage(docno, number, start, end, position, row))
        return spans

    def origins(self, docnos: Sequence[int]) -> dict[int, Origin]:
        """The known locations of documents in their sources, by number.

        Raises DamagedFileError for one that is not as its digest says.
        """
        rows = self.select(
            f'SELECT docno, file, outline, digest FROM origins WHERE {ALIVE} '
            'AND docno IN (SELECT value FROM json_each(:rows))',
            docnos,
        )
        origins = {}
        for docno, file, outline, digest in rows:
            if not origin_fits(file, outline, digest):
                raise self.damage(f'the place of document number {docno} in its source')
            try:
                origins[docno] = Origin.parsed(file, outline)
            except ValueError as error:
                raise self.damage(f'the place of document number {docno} in its source') from error
        return origins

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {live.shard.name: position for position, live in enumerate(self.shards)}

    def select(self, statement: str, rows: Sequence[Any] = (), **values: Any) -> list[Any]:
        """The rows of a query; `:rows` in it is a list as JSON, `:generation` this generation, and
        each of `values` has its name.
        """
        parameters = {'generation': self.number, 'rows': json.dumps(list(rows)), **values}
        with self._calling, sqlite_errors(self.folder / STORE):
            return self._connection.execute(statement, parameters).fetchall()


def open_generation(folder: Path, opened: Mapping[str, PassageShard] | None = None) -> Generation:
    """The newest generation of a collection.

    `opened` has shards by name that are open already, and are shared.

    Raises InputError for a folder that is not a collection, or whose first generation was not
    published.
    """
    connection = open_for_reading(folder)
    try:
        for _ in range(_TRIES):
            published = _newest(folder, connection)
            try:
                lock = GenerationLock(manifest_path(folder, published.number))
            except FileNotFoundError:
                # a writer has published another generation meanwhile, and removed this one
                time.sleep(0.01)
                continue
            try:
                manifest = read_manifest(folder, published)
                return Generation(folder, published, manifest, connection, lock, opened or {})
            except BaseException:
                lock.close()
                raise
        raise DamagedFileError(
            f'a manifest in {folder / GENERATIONS} is missing: restore it from a copy, or build '
            'the collection again'
        )
    except BaseException:
        connection.close()
        raise


def read_known(folder: Path) -> KnownCollection:
    """Which collection a folder holds now, as `Generation.known`.

    Raises LostCollectionError if there is none, or none with a generation.
    """
    if not is_collection(folder):
        raise no_collection()
    with closing(open_for_reading(folder)) as connection, sqlite_errors(folder / STORE):
        published = last_published(connection)
        identity = read_identity(connection)
    if published is None:
        raise no_collection()
    return KnownCollection(identity, published.number, published.manifest_sha256)


def _newest(folder: Path, connection: sqlite3.Connection) -> Published:
    with sqlite_errors(folder / STORE):
        published = last_published(connection)
    if published is None:
        raise InputError(
            f'collection {folder} is still empty: run `index sync`, which also '
            'continues an interrupted build'
        )
    return published
