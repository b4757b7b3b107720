"""Jupyter notebooks as documents: the cells of Markdown and code, without outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyserini_repbert.collection.files.file_to_read import FileToRead, read_text
from pyserini_repbert.collection.files.markdown_documents import document_of_markdown
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.unread_files import UnreadableFile
from pyserini_repbert.data.values import parse_json


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
        raise UnreadableFile("no notebook of version 4: it has no list of 'cells'")
    texts = [_text_of_cell(cell) for cell in cells]
    markdown = '\n\n'.join(text for text in texts if text)
    document = document_of_markdown(file.docid, markdown, file.path.stem)
    yield document.without_lines()


def _text_of_cell(cell: Any) -> str:
    """The text of a cell, code between fences; '' for what is no cell."""
    if not isinstance(cell, Mapping):
        return ''
    source = cell.get('source', '')
    if isinstance(source, list):
        source = ''.join(part for part in source if isinstance(part, str))
    if not isinstance(source, str) or not source.strip():
        return ''
    if cell.get('cell_type') != 'code':
        return source
    fence = '```'
    while fence in source:
        fence += '`'
    return f'{fence}\n{source}\n{fence}'
