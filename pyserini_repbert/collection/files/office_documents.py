"""PDF, Word, PowerPoint, Excel, EPUB and Outlook's messages as documents (the extra `files`).

Separate processes read them (`office_process.py`), one PDF and one the others: they have a
limit of memory, and of time for each file.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pyserini_repbert.archives import FREE_BYTES, MAX_RATIO
from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.read_page import ReadPage, titled_text
from pyserini_repbert.collection.files.reader_process import SECONDS, ReaderProcess
from pyserini_repbert.collection.files.stated_dates import DATE, day_of_name
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.suffixes import WORKBOOKS
from pyserini_repbert.data.unread_files import UnreadableFile, without_text
from pyserini_repbert.files import human_size

_PROCESS = 'pyserini_repbert.collection.files.office_process'
_MOST_BYTES = 500_000_000  # of a file
# The process answers the source of a mail.
_OUTLOOK = '.msg'


def can_read_office() -> bool:
    """Whether MarkItDown is installed."""
    return find_spec('markitdown') is not None


class OfficeReader:
    """Reads files in separate processes.

    Use it as a context: the processes end with it.

    Parameters
    ----------
    seconds : that a file may take
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        command = [sys.executable, '-m', _PROCESS]
        self._office = ReaderProcess(command, seconds)
        # PDF needs no MarkItDown, which takes two seconds to import.
        self._pdf = ReaderProcess([*command, 'pdf'], seconds)

    def __enter__(self) -> OfficeReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes."""
        self._office.close()
        self._pdf.close()

    def documents(self, file: FileToRead) -> Iterator[Document]:
        """The document of a file, or a workbook's documents.

        Raises UnreadableFile if it cannot be read.
        """
        check_sizes(file.path)
        suffix = file.path.suffix.lower()
        process = self._pdf if suffix == '.pdf' else self._office
        answer = process.ask({'path': str(file.path.absolute())})
        if 'text' not in answer:
            raise UnreadableFile(str(answer.get('problem', 'no answer')))
        if suffix == _OUTLOOK:
            from pyserini_repbert.collection.files.mail_documents import document_of_mail

            yield document_of_mail(file.docid, str(answer['text']).encode())
            return
        if not str(answer['text']).strip():
            raise without_text('it has no text: if it is a scan, recognise its text first')
        if suffix in WORKBOOKS:
            from pyserini_repbert.collection.files import sheet_tables

            workbook = sheet_tables.read_workbook(str(answer['text']), file.fields)
            if workbook.others:
                page = sheet_tables.page_of_sheets(workbook.others)
                yield _document_of_page(file, page, answer)
            yield from sheet_tables.row_documents(file, workbook)
            return
        from pyserini_repbert.collection.files.office_text import read_office

        yield _document_of_page(file, read_office(suffix, str(answer['text'])), answer)


def _document_of_page(file: FileToRead, page: ReadPage, answer: Mapping[str, Any]) -> Document:
    """The document of a whole file.

    Parameters
    ----------
    file : that was read
    page : what a person reads of it
    answer : of the process: what the file states of itself
    """
    title = ' '.join(str(answer.get('title') or '').split()) or file.path.stem
    titled = titled_text(page, title)
    placed = titled.placed
    day = day_of_name(file.path.name) or str(answer.get('day') or '')
    fields = {DATE: day} if day else {}
    document = Document(file.docid, placed.text, titled.title, fields, placed.origin)
    return document.without_lines()


def check_sizes(path: Path) -> None:
    """Raises UnreadableFile for a file that is too large, or unpacks to too much."""
    size = path.stat().st_size
    if size > _MOST_BYTES:
        raise UnreadableFile(f'larger than {human_size(_MOST_BYTES)}')
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
        # NotImplementedError is for a version of zip that no program writes.
        raise UnreadableFile(f'not a complete file ({error})') from error
    most = FREE_BYTES + MAX_RATIO * size
    if unpacked > min(most, _MOST_BYTES):
        raise UnreadableFile(f'it unpacks to {human_size(unpacked)}, too much for a document')
