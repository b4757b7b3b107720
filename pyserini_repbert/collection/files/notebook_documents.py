"""Jupyter notebooks as documents: the cells of Markdown and code, without outputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pyserini_repbert.collection.files.file_to_read import FileToRead, read_text
from pyserini_repbert.collection.files.markdown_documents import document_of_markdown
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.unread_files import UnreadableFile
from pyserini_repbert.data.values import parse_json

_BACKTICKS = re.compile('`+')
_FENCE = re.compile(r' {0,3}(`{3,}|~{3,})')
_COMMENT = re.compile(r' {0,3}<!--')


def notebook_documents(file: FileToRead) -> Iterator[Document]:
    """The document of a notebook, with the title of its Markdown."""
    try:
        notebook = parse_json(read_text(file))
    except UnreadableFile:
        raise
    except ValueError as error:
        raise UnreadableFile(f'not JSON ({error})') from error
    cells = notebook.get('cells') if isinstance(notebook, Mapping) else None
    if not isinstance(cells, list):
        raise UnreadableFile("not a notebook of version 4: it has no list of 'cells'")
    texts = [_text_of_cell(cell) for cell in cells]
    markdown = '\n\n'.join(text for text in texts if text)
    document = document_of_markdown(file.docid, markdown, file.path.stem)
    yield document.without_lines()


def _text_of_cell(cell: Any) -> str:
    """The text of a cell, code between fences; '' for anything that is not a cell."""
    if not isinstance(cell, Mapping):
        return ''
    source = cell.get('source', '')
    if isinstance(source, list):
        source = ''.join(part for part in source if isinstance(part, str))
    if not isinstance(source, str) or not source.strip():
        return ''
    if cell.get('cell_type') != 'code':
        return _closed(source)
    longest = max(map(len, _BACKTICKS.findall(source)), default=0)
    fence = '`' * max(3, longest + 1)
    return f'{fence}\n{source}\n{fence}'


def _closed(source: str) -> str:
    """A cell of Markdown.

    Blocks that it leaves open are closed, because cells are read separately.
    """
    fence = ''
    is_comment = False
    for line in source.split('\n'):
        if is_comment or (not fence and _COMMENT.match(line)):
            is_comment = '-->' not in line[line.rfind('<!--') :]
            continue
        mark = _FENCE.match(line)
        if mark is None:
            continue
        if not fence:
            fence = mark[1]
        elif mark[1].startswith(fence) and not line[mark.end() :].strip():
            fence = ''
    if is_comment:
        return f'{source}\n-->'
    return f'{source}\n{fence}' if fence else source
