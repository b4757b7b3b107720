"""OpenDocument, RTF, LaTeX, Typst, MediaWiki, DocBook and manual pages as documents, by pandoc.

pandoc is a separate program (the extra `files`), which reads several files in one process, with a
limit of memory and of time for each. It reads each in its sandbox: no file is included.

reStructuredText, AsciiDoc and Org have readers here: `benchmarks/markups.py` says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from pyserini_repbert.collection.files.file_to_read import FileToRead, read_text
from pyserini_repbert.collection.files.office_documents import check_sizes
from pyserini_repbert.collection.files.read_page import titled_text
from pyserini_repbert.collection.files.reader_process import SECONDS, ReaderProcess
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.suffixes import has_suffix, has_suffix_or_packed
from pyserini_repbert.data.unread_files import UnreadableFile, without_text

# Files that are not plain text.
PACKED_FORMATS = {'.odt': 'odt', '.rtf': 'rtf'}
# Files that are read as plain text if pandoc is missing, or cannot read one.
TEXT_FORMATS = {
    '.tex': 'latex',
    '.latex': 'latex',
    '.typ': 'typst',
    '.mediawiki': 'mediawiki',
    '.wiki': 'mediawiki',
    '.docbook': 'docbook',
    '.dbk': 'docbook',
}
_MOST_MEMORY = '-M1500m'  # of what pandoc computes with
_SCRIPT = Path(__file__).with_name('pandoc_process.lua')
_MOST_PROBLEM = 200  # characters
_BSD_MANUAL = re.compile(r'^\.D[dt]\b', re.MULTILINE)


@cache
def can_read_pandoc() -> bool:
    """Whether pandoc is installed."""
    return find_spec('pypandoc') is not None


class PandocReader:
    """Reads files with pandoc.

    Use it as a context: its process ends with it.

    Parameters
    ----------
    seconds : that a file may take
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._process: ReaderProcess | None = None

    def __enter__(self) -> PandocReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.close()

    def documents(self, file: FileToRead) -> Iterator[Document]:
        """The document of a file. Raises UnreadableFile if it cannot be read."""
        for suffix, form in PACKED_FORMATS.items():
            if has_suffix(file.path.name, (suffix,)):
                check_sizes(file.path)
                yield self._read(file, {'path': str(file.path.absolute()), 'format': form})
                return
        text = read_text(file)
        try:
            document = self._read(file, {'text': text, 'format': _format_of_text(file.path, text)})
        except UnreadableFile:
            from pyserini_repbert.collection.files.plain_documents import source_documents

            yield from source_documents(file)
            return
        yield document

    def _read(self, file: FileToRead, question: Mapping[str, str]) -> Document:
        answer = self._started().ask(question)
        if 'text' not in answer:
            problem = ' '.join(str(answer.get('problem', 'no answer')).split())
            raise UnreadableFile(f'pandoc cannot read it ({problem[:_MOST_PROBLEM]})')
        title = ' '.join(str(answer.get('title') or '').split())
        from pyserini_repbert.collection.files.html_text import read_html

        page = read_html(str(answer['text']))
        if not page.lines and not title:
            raise without_text()
        page.title = title
        titled = titled_text(page, file.path.stem)
        placed = titled.placed
        document = Document(file.docid, placed.text, titled.title, origin=placed.origin)
        return document.without_lines()

    def _started(self) -> ReaderProcess:
        if self._process is None:
            # A package of 34 MB, which most folders do not need.
            from pypandoc import get_pandoc_path

            command = [get_pandoc_path(), '+RTS', _MOST_MEMORY, '-RTS', 'lua', str(_SCRIPT)]
            self._process = ReaderProcess(command, self._seconds)
        return self._process


def _format_of_text(path: Path, text: str) -> str:
    """pandoc's name for the format of a text file; without a known suffix, a manual page."""
    for suffix, form in TEXT_FORMATS.items():
        if has_suffix_or_packed(path.name, (suffix,)):
            return form
    return 'mdoc' if _BSD_MANUAL.search(text) else 'man'
