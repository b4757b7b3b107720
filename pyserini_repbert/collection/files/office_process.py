"""The process that reads PDF, Office files, EPUB and Outlook's messages.

`office_documents.py` starts it.

It reads a line of JSON for each file, `{"path": …}`, and answers with one: `{"title", "text",
"day"}`, or `{"problem"}`. It has a limit of memory, opens no connection, starts no other process
and writes no file. It ends with its standard input.

With the argument `pdf`, it reads only PDF, and starts in a tenth of the time.
"""

from __future__ import annotations

import html
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import IO, Any

from pyserini_repbert.collection.files.excel_values import shown_value
from pyserini_repbert.collection.files.open_sheets import ReadSheet, read_open_sheets
from pyserini_repbert.collection.files.outlook_message import mail_of_outlook
from pyserini_repbert.collection.files.pdf_text import NeedsPasswordError, read_pdf
from pyserini_repbert.collection.files.read_file import ReadFile
from pyserini_repbert.collection.files.reader_process import INSTALL
from pyserini_repbert.collection.files.stated_dates import day_of_office
from pyserini_repbert.collection.files.word_wrappers import without_wrappers
from pyserini_repbert.data.markup import parse_page
from pyserini_repbert.data.page_encodings import decode_page

_MOST_MEMORY = 4 << 30  # bytes of addresses, most of which libraries reserve and never use
_MOST_TEXT = 30_000_000  # characters
_FORBIDDEN = (
    'socket.connect',
    'socket.getaddrinfo',
    'socket.gethostbyname',
    'socket.sendto',
    'subprocess.Popen',
    'os.exec',
    'os.fork',
    'os.posix_spawn',
    'os.system',
)
_READING = ('r', 'rb', 'rt')
# What MarkItDown writes of a book in front of its chapters: '**Authors:** Ada'.
_OF_BOOK = re.compile(r'\*\*(\w+:)\*\* ')
# Word has a style for a document's title beside the ones for headings; mammoth takes it for text.
_TITLE = "p[style-name='Title'] => h1:fresh"
# The number of a note in the text, as mammoth writes it.
_NOTE_SIGN = re.compile(r'<sup><a href="#(?:foot|end)note-[^"]*" id="[^"]*">\[\d+\]</a></sup>')


def main() -> None:
    """Answer for each file until standard input ends."""
    answers = os.fdopen(os.dup(1), 'wb')
    # What a library prints is not an answer.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    _limit_memory()
    convert = read_pdf if sys.argv[1:] == ['pdf'] else _converter()
    sys.addaudithook(_refuse)
    _write(answers, {'ready': True})
    for line in sys.stdin.buffer:
        _write(answers, _answer(convert, json.loads(line)['path']))


def _converter() -> Callable[[str], ReadFile]:
    """The function that reads a file, chosen by its suffix: MarkItDown would take others for text.

    Of Excel, MarkItDown takes what pandas prints: numbers of seven digits, and 'NaN' for 'None'. Of
    Word, it takes Markdown, whose tables have no row longer than the first, and no tables in cells.
    """
    from markitdown import StreamInfo, converters

    openpyxl = import_module('openpyxl')

    slides = converters.PptxConverter()
    books = converters.EpubConverter()

    def convert(path: str) -> ReadFile:
        suffix = os.path.splitext(path)[1].lower()
        if suffix == '.msg':
            return ReadFile(mail_of_outlook(path))
        with open(path, 'rb') as stream:
            day = day_of_office(stream)
            if suffix == '.xlsx':
                workbook = openpyxl.load_workbook(stream, read_only=True, data_only=True)
                return ReadFile(_text_of_sheets(_sheets_of_excel(workbook)), day=day)
            if suffix == '.ods':
                return ReadFile(_text_of_sheets(read_open_sheets(stream)))
            if suffix == '.docx':
                return ReadFile(_html_of_word(stream), day=day)
            info = StreamInfo(extension=suffix)
            if suffix == '.epub':
                return _html_of_book(books, stream, info)
            # What a file's text has in common with Markdown is not a mark.
            result = slides.convert(stream, info, escape_misc=True)
            return ReadFile(result.markdown, result.title or '', day)

    return convert


def _html_of_word(stream: IO[bytes]) -> str:
    """A Word document as HTML, by mammoth, with MarkItDown's formulas.

    Notes come at the end. The headers and footers of pages, and comments, are left out.
    """
    mammoth = import_module('mammoth')
    formulas = import_module('markitdown.converter_utils.docx.pre_process')
    # Of a picture, its alternative text is read.
    without_bytes = mammoth.images.img_element(lambda _: {'src': ''})
    result = mammoth.convert_to_html(
        without_wrappers(formulas.pre_process_docx(stream)),
        convert_image=without_bytes,
        style_map=_TITLE,
        include_embedded_style_map=False,
    )
    return _NOTE_SIGN.sub('', result.value)


class _Chapters:
    """Replaces MarkItDown's reader of HTML, so that the chapters of a book do not change."""

    def __init__(self) -> None:
        self.bodies: list[str] = []

    def convert(self, stream: IO[bytes], *_: Any, **__: Any) -> Any:
        """Keep a chapter, whose elements all end with it; MarkItDown gets only an empty text."""
        body = parse_page(decode_page(stream.read())).body
        if body is not None and body.html:
            self.bodies.append(body.html)
        return SimpleNamespace(markdown='')


def _html_of_book(converter: Any, stream: IO[bytes], info: Any) -> ReadFile:
    """A book as HTML: what it says of itself, and its chapters, which MarkItDown finds.

    Parameters
    ----------
    converter : MarkItDown's
    stream : of the file
    info : of the stream, as MarkItDown asks for it
    """
    chapters = _Chapters()
    converter._html_converter = chapters
    result = converter.convert(stream, info)
    of_book = html.escape(_OF_BOOK.sub(r'\1 ', result.markdown.strip()))
    lines = of_book.replace('\n', '<br>')
    return ReadFile('\n'.join([f'<p>{lines}</p>', *chapters.bodies]), result.title or '')


def _sheets_of_excel(workbook: Any) -> Iterator[ReadSheet]:
    """The sheets of a workbook that openpyxl has opened."""
    for sheet in workbook.worksheets:
        # What the file says of a sheet's size may be wrong.
        sheet.reset_dimensions()
        yield ReadSheet(sheet.title, _rows_of_excel(sheet))


def _rows_of_excel(sheet: Any) -> Iterator[tuple[int, list[str]]]:
    for number, row in enumerate(sheet.iter_rows(), 1):
        yield (
            number,
            [shown_value(cell.value, getattr(cell, 'number_format', '')) for cell in row],
        )


def _text_of_sheets(sheets: Iterable[ReadSheet]) -> str:
    """The cells of a workbook: the name of each sheet, then its rows.

    Of a row, its number in the sheet stands first, and a tab before each cell. A sheet without
    cells is left out.
    """
    lines = []
    size = 0
    for sheet in sheets:
        names = [' '.join(sheet.name.split())]
        for number, cells in sheet.rows:
            if any(cells):
                line = f'{number}\t' + '\t'.join(cells).rstrip('\t')
                size += len(line)
                lines += [*names, line]
                names = []
            if size > _MOST_TEXT:
                break
    return '\n'.join(lines)


def _answer(convert: Callable[[str], ReadFile], path: str) -> dict[str, str]:
    """The title, the text and the day of a file, or what the problem is."""
    try:
        result = convert(path)
    except NeedsPasswordError as error:
        return {'problem': str(error)}
    except MemoryError:
        return {'problem': 'its reader used too much memory'}
    except ModuleNotFoundError:
        return {'problem': f'{INSTALL} to read such files'}
    except Exception as error:
        # Parsers of unknown files may raise any error.
        return {'problem': _reason(error)}
    text = result.text
    if len(text) > _MOST_TEXT:
        return {'problem': f'it has more than {_MOST_TEXT:,} characters of text'}
    # Half of a surrogate pair is not a character.
    text = text.encode('utf-8', 'replace').decode()
    return {'title': result.title, 'text': text, 'day': result.day}


def _reason(error: Exception) -> str:
    """An error in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = lines[-1] if lines else ''
    return f'it is damaged, or of another format ({reason or type(error).__name__})'[:300]


def _write(answers: Any, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer).encode() + b'\n')
    answers.flush()


def _limit_memory() -> None:
    """Bound this process's memory, where the system can."""
    try:
        import resource
    except ImportError:
        return
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = _MOST_MEMORY
    if most != resource.RLIM_INFINITY:
        limit = min(limit, most)
    resource.setrlimit(resource.RLIMIT_AS, (limit, most))


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: raises PermissionError for connections, processes and writing of files."""
    if event in _FORBIDDEN:
        raise PermissionError(f'{event} is forbidden here')
    if event == 'open':
        _, mode, flags = arguments
        writes = bool(flags & (os.O_WRONLY | os.O_RDWR)) if isinstance(flags, int) else False
        if writes or (mode is not None and mode not in _READING):
            raise PermissionError('writing a file is forbidden here')


if __name__ == '__main__':
    main()
