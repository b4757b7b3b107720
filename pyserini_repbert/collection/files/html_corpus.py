"""Folders and archives of HTML files as a corpus: a page is a document."""

from __future__ import annotations

import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pyserini_repbert.archives import open_tar, refuse_sparse
from pyserini_repbert.data.corpus_formats import FilesCorpus
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.markup import visible_text
from pyserini_repbert.data.origins import docid_of_path, name_in_corpus
from pyserini_repbert.data.page_encodings import decode_page, read_page
from pyserini_repbert.data.passages import BadPassage, Passage
from pyserini_repbert.data.suffixes import (
    PAGES,
    has_suffix,
    has_suffix_or_packed,
    without_suffix,
)
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.files import files_below


class _Page(NamedTuple):
    """A page of HTML.

    Attributes
    ----------
    docid : of the page
    place : its location, for messages
    file : its path in the corpus
    raw : the file
    """

    docid: str
    place: str
    file: str
    raw: bytes


class HtmlCorpus(FilesCorpus):
    """Folders and tar archives of HTML files, each a passage, or a document with fields.

    A docid is a file's path in the folder, or its name in an archive, without .html or .htm. CACM
    comes in this form, for Anserini's HtmlCollection. White space and % are written as in
    addresses. With `main_content`, navigation, headers and footers of pages are not text.
    """

    main_content = False

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        for path in self.paths:
            for page in self._pages(path):
                yield page.place, Passage(page.docid, visible_text(decode_page(page.raw)))

    def _read_documents(self) -> Iterator[tuple[str, Document | BadPassage]]:
        from pyserini_repbert.collection.files.html_documents import document_of_html

        row = 0
        for path in self.paths:
            for page in self._pages(path):
                if self._part.takes(row):
                    markup = decode_page(page.raw)
                    document = document_of_html(page.docid, markup, self.main_content)
                    yield page.place, document.in_file(page.file)
                row += 1

    def _pages(self, path: Path) -> Iterator[_Page]:
        """The pages; a link in an archive leads to another of its files."""
        if path.is_dir():
            yield from self._pages_below(path)
            return
        if has_suffix_or_packed(path.name, PAGES):
            docid = docid_of_path(without_suffix(path.name, PAGES))
            yield _Page(docid, str(path), name_in_corpus(self.name, path), read_page(path))
            return
        try:
            with open_tar(path) as archive:
                yield from _pages_in(archive, path)
        except DamagedFileError as error:
            raise InputError(str(error)) from error

    def _pages_below(self, folder: Path) -> Iterator[_Page]:
        """The pages of a folder; one of two with the same docid keeps its suffix."""
        names = [file.relative_to(folder).as_posix() for file in files_below(folder)]
        pages = [name for name in names if has_suffix_or_packed(name, PAGES)]
        pages_by_docid = Counter(without_suffix(name, PAGES) for name in pages)
        for name in pages:
            docid = without_suffix(name, PAGES)
            if pages_by_docid[docid] > 1 and not name.endswith(PAGES[0]):
                docid = name
            raw = read_page(folder / name)
            yield _Page(docid_of_path(docid), f'{folder}:{name}', name, raw)


def _pages_in(archive: tarfile.TarFile, path: Path) -> Iterator[_Page]:
    for member in archive:
        if not has_suffix(member.name, PAGES):
            continue
        refuse_sparse(member, path)
        stream = archive.extractfile(member)
        if stream is not None:
            docid = docid_of_path(without_suffix(Path(member.name).name, PAGES))
            yield _Page(docid, f'{path}:{member.name}', member.name, stream.read())
