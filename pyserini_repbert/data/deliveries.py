"""Collections as delivered: NIST's TREC disks 4 and 5, and CMU's ClueWeb09 and ClueWeb12."""

from __future__ import annotations

import bz2
import gzip
import io
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

from pyserini_repbert.data.corpus import BadPassage, Passage
from pyserini_repbert.data.corpus_formats import FilesCorpus, TrecCorpus
from pyserini_repbert.data.trec_text import plain_text
from pyserini_repbert.errors import InputError, needs
from pyserini_repbert.files import ARCHIVE_ERRORS

# Magic bytes; those of Unix's compress are in NIST's files, which end in .Z, .0Z, .1Z, .2Z
_COMPRESS = b'\x1f\x9d'
_GZIP = b'\x1f\x8b'
_BZIP2 = b'BZh'
_BESIDES = re.compile(
    r'read|\.dtd|dtds?$|\.(doc|txt|html?|lis|exe|c|h)$', re.IGNORECASE
)  # documentation
_UNUSED_FOLDERS = {
    'cr',
    'dtds',
    'aux',
    'frcheck',
}  # the Congressional Record is no part of Robust04's documents
_WARC = re.compile(r'\.warc(\.gz)?$', re.IGNORECASE)
_CHARSET = re.compile(r'charset=["\']?([\w-]+)', re.IGNORECASE)


def is_documentation(path: Path) -> bool:
    """Whether a file of a disk is documentation rather than documents, by its name."""
    return bool(_BESIDES.search(path.name))


def disk_files(folder: Path) -> list[Path]:
    """The document files of TREC disks: those that are packed or begin with <DOC>, without
    documentation.

    The Congressional Record and folders of DTDs and the like are left out.
    """
    return [
        path
        for path in sorted(folder.rglob('*'))
        if path.is_file()
        and not _UNUSED_FOLDERS.intersection(
            part.lower() for part in path.relative_to(folder).parts[:-1]
        )
        and not is_documentation(path)
        and _is_documents(path)
    ]


def _is_documents(path: Path) -> bool:
    with open(path, 'rb') as stream:
        start = stream.read(512)
    return start.startswith((_COMPRESS, _GZIP, _BZIP2)) or start.lstrip()[:5].upper() == b'<DOC>'


def warc_files(folder: Path) -> list[Path]:
    """The WARC files below a folder, in the order of their names."""
    return [
        path for path in sorted(folder.rglob('*')) if _WARC.search(path.name) and path.is_file()
    ]


class TrecDisksCorpus(TrecCorpus):
    """TREC disks as NIST delivers them: folders of SGML files, packed by `compress` or gzip, or
    unpacked.

    Text that is not UTF-8 is read as Latin-1. The Congressional Record (a folder `cr`) is left out,
    as in Robust04.
    """

    def opened(self, path: Path) -> AbstractContextManager[IO[bytes]]:
        return io.BytesIO(_unpacked(path))


def _unpacked(path: Path) -> bytes:
    """The unpacked content of a file, as UTF-8. Raises InputError for a damaged file."""
    raw = path.read_bytes()
    try:
        if raw.startswith(_COMPRESS):
            with needs('ncompress', f'{path}, packed by compress,', 'trec'):
                import ncompress
            # In a thread: ncompress needs more stack than Java leaves the main thread, and would
            # end the process
            with ThreadPoolExecutor(1) as thread:
                raw = bytes(thread.submit(ncompress.decompress, raw).result())
        elif raw.startswith(_GZIP):
            raw = gzip.decompress(raw)
        elif raw.startswith(_BZIP2):
            raw = bz2.decompress(raw)
    except (*ARCHIVE_ERRORS, ValueError, OSError) as error:
        raise InputError(
            f'{path} cannot be unpacked ({error}): copy it from the disk again'
        ) from error
    try:
        raw.decode('utf-8')
    except UnicodeDecodeError:
        return raw.decode('latin-1').encode()
    return raw


class ClueWebCorpus(FilesCorpus):
    """ClueWeb09 and ClueWeb12 as CMU delivers them: WARC files of web pages; WARC-TREC-ID is the
    docid.

    The text is that of the HTML without tags, scripts and styles.
    """

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        with needs('warcio', f"corpus '{self.name}'", 'trec'):
            from warcio.archiveiterator import ArchiveIterator
            from warcio.exceptions import ArchiveLoadFailed
        for path in self.paths:
            with open(path, 'rb') as stream:
                try:
                    for number, record in enumerate(ArchiveIterator(stream), 1):
                        docid = record.rec_headers.get_header('WARC-TREC-ID')
                        if docid is None:  # the first record, which describes the file
                            continue
                        headers = record.http_headers
                        content_type = (
                            headers.get_header('Content-Type') if headers is not None else None
                        )
                        text = page_text(record.content_stream().read(), content_type or '')
                        yield f'{path}:{number}', Passage(docid, text)
                except (*ARCHIVE_ERRORS, ArchiveLoadFailed) as error:
                    raise InputError(
                        f'{path} is not a whole WARC file ({error}): copy it again'
                    ) from error


def page_text(raw: bytes, content_type: str = '') -> str:
    """The text of a web page without tags, scripts and styles, on one line.

    It is read as UTF-8 unless `content_type`, as the server gave it, names a character set that
    Python knows.
    """
    charset = _CHARSET.search(content_type)
    try:
        text = raw.decode(charset[1] if charset else 'utf-8', 'replace')
    except LookupError:
        text = raw.decode('utf-8', 'replace')
    return plain_text(_visible(text))


def _visible(page: str) -> str:
    """A page without its scripts and styles; what is opened and never closed is not one."""
    for name in ('script', 'style', 'noscript'):
        *parts, rest = re.split(rf'</{name}\s*>', page, flags=re.IGNORECASE)
        before = [
            re.split(rf'<{name}\b', part, maxsplit=1, flags=re.IGNORECASE)[0] for part in parts
        ]
        page = ' '.join([*before, rest])
    return page
