"""The fields that documents have because they come from files: `type`, `folder` and `modified`;
and `source`, where a collection has several.

No document stores them. They follow from the file's name in `origins`, from the time that the last
sync noted in `source_files`, and from the source's name. A document's own field of the same name
comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence, Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyserini_repbert.collection.file_values import (
    FOLDER,
    MODIFIED,
    SOURCE,
    TYPE,
    FileOfSource,
    file_fields,
    shown_sources,
)
from pyserini_repbert.collection.store import ALIVE
from pyserini_repbert.data.file_types import is_table, is_workbook
from pyserini_repbert.data.suffixes import WORKBOOKS

if TYPE_CHECKING:
    from pyserini_repbert.collection.compared_files import ComparedFiles

# Of rows that a generation sees, of both tables.
BOTH_ALIVE = (
    'origins.since <= :generation AND origins.until > :generation '
    'AND fields.since <= :generation AND fields.until > :generation'
)
# Of each file; the condition is about the rows of `origins`.
COUNT_DOCUMENTS = (
    'SELECT source, file, COUNT(*) FROM origins JOIN fields USING (docno) '
    f"WHERE {BOTH_ALIVE} AND file > '' {{condition}} GROUP BY source, file"
)
# Of rows of tables in files without lines. Outlines of other files may be long: none is parsed.
_ARE_WORKBOOKS = ' OR '.join(f"file LIKE '%{suffix}'" for suffix in WORKBOOKS)
_ARE_NUMBERED = f"AND ({_ARE_WORKBOOKS}) AND json_extract(outline, '$.row') > 0"
_Select = Callable[[str, Sequence[Any]], list[Any]]


@dataclass(frozen=True)
class FileCounts:
    """How many files a source has, and how many of its documents are rows of tables."""

    files: int = 0
    rows: int = 0


class FileFields:
    """The fields of the files of a generation.

    Parameters
    ----------
    select : asks SQLite, as `Generation.select`
    """

    def __init__(self, select: _Select) -> None:
        self._select = select

    @cached_property
    def types(self) -> dict[str, set[str]]:
        """The types of the fields that files and sources have here."""
        types = self._types_of_files()
        if len(self.source_names) > 1:
            types[SOURCE] = {'text'}
        return types

    @cached_property
    def source_names(self) -> dict[int, str]:
        """The names of all sources, by number."""
        return dict(self._select('SELECT source, name FROM sources', []))

    def _types_of_files(self) -> dict[str, set[str]]:
        ((has_files,),) = self._select(
            "SELECT EXISTS (SELECT 1 FROM origins WHERE file > '' "
            'AND since <= :generation AND until > :generation)',
            [],
        )
        if not has_files:
            return {}
        types = {TYPE: {'text'}, FOLDER: {'text'}}
        if self._knows_times:
            types[MODIFIED] = {'date'}
        return types

    @cached_property
    def _knows_times(self) -> bool:
        """Whether the last sync of a source noted when its files were changed."""
        ((has_times,),) = self._select('SELECT EXISTS (SELECT 1 FROM source_files)', [])
        return bool(has_times)

    @property
    def times(self) -> dict[FileOfSource, int]:
        """When files were changed, in nanoseconds, if known."""
        if not self._knows_times:
            return {}
        rows = self._select('SELECT source, file, modified FROM source_files', [])
        return {FileOfSource(source, file): modified for source, file, modified in rows}

    @cached_property
    def counts(self) -> dict[int, FileCounts]:
        """How many files each source has, by its number, and how many rows of tables."""
        n_files: Counter[int] = Counter()
        n_rows: Counter[int] = Counter()
        for source, file, n_documents in self._select(COUNT_DOCUMENTS.format(condition=''), []):
            n_files[source] += 1
            if is_table(file):
                n_rows[source] += n_documents
        for source, file, n_documents in self._select(
            COUNT_DOCUMENTS.format(condition=_ARE_NUMBERED), []
        ):
            if is_workbook(file):
                n_rows[source] += n_documents
        return {source: FileCounts(n_files[source], n_rows[source]) for source in n_files}

    def docnos_where(self, condition: str, values: Sequence[Any]) -> list[Any]:
        """The numbers of documents whose file has a value that meets a condition.

        Parameters
        ----------
        condition : in SQL, about `field`, `type` and `value`, with the values in `:rows`
        values : the field, and what its values are compared with
        """
        files = self._compared.files_where(condition, values)
        if values[0] == SOURCE:
            rows = self._select(
                f'SELECT docno FROM fields WHERE {ALIVE} '
                'AND source IN (SELECT value FROM json_each(:rows))',
                [source for source, _ in files],
            )
            return [docno for (docno,) in rows]
        rows = self._select(
            'SELECT origins.docno FROM json_each(:rows) AS wanted CROSS JOIN origins '
            "ON file = json_extract(wanted.value, '$[1]') CROSS JOIN fields "
            f'ON fields.docno = origins.docno WHERE {BOTH_ALIVE} '
            "AND source = COALESCE(json_extract(wanted.value, '$[0]'), source)",
            files,
        )
        return [docno for (docno,) in rows]

    @cached_property
    def _compared(self) -> ComparedFiles:
        """The values of all files, which are read when a filter first names one."""
        from pyserini_repbert.collection.compared_files import ComparedFiles

        # Seeks the next file, as DISTINCT would read the rows of all documents.
        rows = self._select(
            "WITH RECURSIVE names (name) AS (SELECT MIN(file) FROM origins WHERE file > '' "
            'UNION ALL SELECT (SELECT MIN(file) FROM origins WHERE file > name) FROM names '
            'WHERE name IS NOT NULL) SELECT name FROM names WHERE name IS NOT NULL',
            [],
        )
        files = [file for (file,) in rows]
        return ComparedFiles(files, self.times, self.source_names)

    def of_documents(self, docnos: Sequence[int]) -> dict[int, dict[str, str]]:
        """The fields of the files and sources from which documents come, by the document's number.

        Fields of files come first.
        """
        fields = self._of_files(docnos)
        for docno, source in self._source_names_of(docnos).items():
            fields.setdefault(docno, {})[SOURCE] = source
        return fields

    def _source_names_of(self, docnos: Sequence[int]) -> dict[int, str]:
        """What the sources of documents are called, by the document's number."""
        if SOURCE not in self.types:
            return {}
        shown = shown_sources(self.source_names)
        rows = self._select(
            f'SELECT docno, source FROM fields WHERE {ALIVE} '
            'AND docno IN (SELECT value FROM json_each(:rows))',
            docnos,
        )
        return {docno: shown[source] for docno, source in rows if source in shown}

    def _of_files(self, docnos: Sequence[int]) -> dict[int, dict[str, str]]:
        if TYPE not in self.types:
            return {}
        rows = self._select(
            f'SELECT origins.docno, source, file FROM origins JOIN fields USING (docno) '
            f"WHERE {BOTH_ALIVE} AND file > '' "
            'AND origins.docno IN (SELECT value FROM json_each(:rows))',
            docnos,
        )
        times = self._times_of({FileOfSource(source, file) for _, source, file in rows})
        return {
            docno: file_fields(file, times.get(FileOfSource(source, file)))
            for docno, source, file in rows
        }

    def _times_of(self, files: AbstractSet[FileOfSource]) -> dict[FileOfSource, int]:
        """As `times`, of some files."""
        if not self._knows_times:
            return {}
        rows = self._select(
            'SELECT source, file, modified FROM json_each(:rows) AS wanted CROSS JOIN source_files '
            "ON source = json_extract(wanted.value, '$[0]') "
            "AND file = json_extract(wanted.value, '$[1]')",
            sorted(files),
        )
        return {FileOfSource(source, file): modified for source, file, modified in rows}
