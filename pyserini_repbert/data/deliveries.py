"""Collections as delivered: NIST's TREC disks 4 and 5, and CMU's ClueWeb09 and ClueWeb12."""

from __future__ import annotations

import bz2
import gzip
import io
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

from pyserini_repbert.archives import MAX_PART, limited
from pyserini_repbert.data.corpus_formats import FilesCorpus, TrecCorpus
from pyserini_repbert.data.markup import visible_text
from pyserini_repbert.data.page_encodings import decode_page
from pyserini_repbert.data.passages import BadPassage, Passage
from pyserini_repbert.errors import InputError, needs
from pyserini_repbert.files import ARCHIVE_ERRORS, files_below

# Bytes that packed files begin with. NIST's are packed by Unix's compress: .Z, .0Z, .1Z, .2Z.
_COMPRESS = b'\x1f\x9d'
_GZIP = b'\x1f\x8b'
_BZIP2 = b'BZh'
_LOOKED_AT = 512  # bytes of a file
# Names of documentation.
_BESIDES = re.compile(r'read|\.dtd|dtds?$|\.(doc|txt|html?|lis|exe|c|h)$', re.IGNORECASE)
# The Congressional Record, 'cr', is not part of Robust04's documents.
_UNUSED_FOLDERS = {'cr', 'dtds', 'aux', 'frcheck'}
_WARC = re.compile(r'\.warc(\.gz)?$', re.IGNORECASE)


def is_documentation(path: Path) -> bool:
    """Whether a file of a disk is documentation rather than documents, by its name."""
    return bool(_BESIDES.search(path.name))


def disk_files(folder: Path) -> list[Path]:
    """The document files of TREC disks: those that are packed, and those that begin with <DOC>.

    Documentation, the Congressional Record and folders of DTDs and the like are left out.
    """
    files = []
    for path in files_below(folder):
        folders = {name.lower() for name in path.relative_to(folder).parts[:-1]}
        if folders & _UNUSED_FOLDERS or is_documentation(path):
            continue
        if _has_documents(path):
            files.append(path)
    return files


def _has_documents(path: Path) -> bool:
    with open(path, 'rb') as stream:
        start = stream.read(_LOOKED_AT)
    is_packed = start.startswith((_COMPRESS, _GZIP, _BZIP2))
    return is_packed or start.lstrip()[:5].upper() == b'<DOC>'


def begins_with_document(path: Path) -> bool:
    """Whether a document file of a disk begins with one; true for a file packed by `compress`."""
    try:
        with open(path, 'rb') as stream:
            start = stream.read(_LOOKED_AT)
        if start.startswith(_COMPRESS):
            return True
        if start.startswith(_GZIP):
            with gzip.open(path) as unpacked:
                start = unpacked.read(_LOOKED_AT)
        elif start.startswith(_BZIP2):
            with bz2.open(path) as unpacked:
                start = unpacked.read(_LOOKED_AT)
    except (*ARCHIVE_ERRORS, OSError):
        return False
    return start.lstrip()[:5].upper() == b'<DOC>'


def warc_files(folder: Path) -> list[Path]:
    """The WARC files below a folder, in the order of their names."""
    return [path for path in files_below(folder) if _WARC.search(path.name)]


class TrecDisksCorpus(TrecCorpus):
    """TREC disks as NIST delivers them: folders of SGML files.

    Files are packed by `compress` or gzip, or unpacked. Text that is not UTF-8 is read as Latin-1.
    The Congressional Record (a folder `cr`) is left out, as in Robust04.
    """

    def opened(self, path: Path) -> AbstractContextManager[IO[bytes]]:
        return io.BytesIO(_unpacked(path))


def _unpacked(path: Path) -> bytes:
    """The unpacked content of a file, as UTF-8. Raises InputError for a damaged file."""
    raw = path.read_bytes()
    if raw.startswith(_BZIP2):
        raise InputError(f'{path} is packed with bzip2: unpack it')
    try:
        if raw.startswith(_COMPRESS):
            raw = _decompressed(raw, path)
        elif raw.startswith(_GZIP):
            unpacked = gzip.GzipFile(fileobj=io.BytesIO(raw))
            raw = limited(unpacked, path, InputError).read()
    except (*ARCHIVE_ERRORS, ValueError, OSError) as error:
        raise InputError(
            f'{path} cannot be unpacked ({error}): copy it from the disk again'
        ) from error
    try:
        raw.decode('utf-8')
    except UnicodeDecodeError:
        return raw.decode('latin-1').encode()
    return raw


def _decompressed(raw: bytes, path: Path) -> bytes:
    """What Unix's `compress` packed."""
    with needs('ncompress', f'{path}, packed by compress,', 'trec'):
        import ncompress
    # In a thread: ncompress needs more stack than Java leaves the main thread, and would end the
    # process.
    with ThreadPoolExecutor(1) as thread:
        return bytes(thread.submit(ncompress.decompress, raw).result())


class ClueWebCorpus(FilesCorpus):
    """ClueWeb09 and ClueWeb12 as CMU delivers them: WARC files of web pages.

    WARC-TREC-ID is the docid. The text is what the page shows, its title first.
    """

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        with needs('warcio', f"corpus '{self.name}'", 'trec'):
            from warcio.archiveiterator import ArchiveIterator
            from warcio.exceptions import ArchiveLoadFailed
        for path in self.paths:
            with open(path, 'rb') as stream:
                try:
                    for number, record in enumerate(_records(ArchiveIterator(stream), path), 1):
                        docid = record.rec_headers.get_header('WARC-TREC-ID')
                        # The first record, which describes the file, has none.
                        if docid is not None:
                            yield f'{path}:{number}', Passage(docid, _record_text(record))
                except (*ARCHIVE_ERRORS, ArchiveLoadFailed) as error:
                    raise InputError(
                        f'{path} is not a complete WARC file ({error}): copy it again'
                    ) from error


def _records(records: Iterable[Any], path: Path) -> Iterator[Any]:
    """The records of a WARC file. Raises InputError for one that lacks a header."""
    n_read = 0
    try:
        for record in records:
            yield record
            n_read += 1
    except AttributeError as error:
        # warcio takes its headers for granted.
        raise InputError(
            f'{path}: record {n_read + 1} lacks a header that every WARC file has, such as '
            'WARC-Target-URI: copy the file again'
        ) from error


def _record_text(record: Any) -> str:
    headers = record.http_headers
    content_type = None if headers is None else headers.get_header('Content-Type')
    # A page that is longer is cut.
    page = record.content_stream().read(MAX_PART)
    return visible_text(decode_page(page, content_type or ''))
