"""The kinds of files that a folder may mix, and how each kind is read.

A file is read by its own kind: by its suffix, and by its first bytes where a suffix says little.
A kind's code is imported when a file is read: a folder has few kinds.
"""

from __future__ import annotations

import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pyserini_repbert.collection.files.converting import FileConverter
from pyserini_repbert.collection.files.file_to_read import FileToRead
from pyserini_repbert.collection.files.text_corpus import TextCorpus
from pyserini_repbert.data.corpus_formats import (
    CedrCorpus,
    FilesCorpus,
    JsonlCorpus,
    TrecCorpus,
    TsvCorpus,
)
from pyserini_repbert.data.documents import MAX_TITLE_CHARACTERS, Document, size_problem
from pyserini_repbert.data.file_records import FileContent, look_at
from pyserini_repbert.data.markup import visible_text
from pyserini_repbert.data.own_readers import OwnReader
from pyserini_repbert.data.page_encodings import decode_page, read_page
from pyserini_repbert.data.passages import BadPassage, OnError, Passage, given_document
from pyserini_repbert.data.unread_files import UnreadableFile, without_text

LocatedPassage = tuple[str, Passage | BadPassage]
LocatedDocument = tuple[str, Document | BadPassage]
ReadDocuments = Callable[[FileToRead], Iterator[Document]]
_FOLDER = __name__.rpartition('.')[0]


class FileKind(ABC):
    """How files of a kind are read. Both methods raise UnreadableFile for one that cannot be."""

    @abstractmethod
    def passages(self, file: FileToRead) -> Iterator[LocatedPassage]:
        """The passages of a file, each with its location."""

    @abstractmethod
    def documents(self, file: FileToRead) -> Iterator[LocatedDocument]:
        """The documents of a file, each with its location."""

    def content_of(self, file: FileToRead) -> FileContent | None:
        """The content of a file before `documents` reads it; None for one that changes meanwhile.

        Raises OSError for one that cannot be read.
        """
        return look_at(file.path)

    def count_hint(self, path: Path) -> int | None:
        """About how many documents a file has; None if counting would take long."""
        return 1


@dataclass(frozen=True)
class CorpusKind(FileKind):
    """Files that are read as a corpus of one format, `reader`."""

    reader: type[FilesCorpus]

    def passages(self, file: FileToRead) -> Iterator[LocatedPassage]:
        return self._corpus(file)._read()

    def documents(self, file: FileToRead) -> Iterator[LocatedDocument]:
        return self._corpus(file)._read_documents()

    def count_hint(self, path: Path) -> int | None:
        return self._corpus(FileToRead(path, '')).count_hint()

    def _corpus(self, file: FileToRead) -> FilesCorpus:
        corpus = self.reader(str(file.path), [file.path], OnError.REFUSE, keep_empty=True)
        corpus.encodings = file.encodings
        if isinstance(corpus, JsonlCorpus):
            corpus.fields = file.fields
        return corpus


class TextKind(CorpusKind):
    """Markdown and text: a file is a document."""

    def __init__(self) -> None:
        super().__init__(TextCorpus)

    def passages(self, file: FileToRead) -> Iterator[LocatedPassage]:
        for location, item in super().passages(file):
            if isinstance(item, Passage):
                item = item._replace(docid=file.docid)
            yield location, item

    def documents(self, file: FileToRead) -> Iterator[LocatedDocument]:
        for location, item in super().documents(file):
            if isinstance(item, Document):
                item = replace(item, docid=file.docid)
                if _is_empty(item):
                    raise without_text()
            yield location, item


def _is_empty(document: Document) -> bool:
    """Whether neither a question nor a filter can find a document."""
    return not (document.text.strip() or document.title or document.fields)


@dataclass(frozen=True)
class PageKind(FileKind):
    """HTML: a file is a document.

    Parameters
    ----------
    main_content : leave out navigation, headers and footers; only of documents
    """

    main_content: bool = False

    def passages(self, file: FileToRead) -> Iterator[LocatedPassage]:
        text = visible_text(decode_page(read_page(file.path)))
        yield str(file.path), Passage(file.docid, text)

    def documents(self, file: FileToRead) -> Iterator[LocatedDocument]:
        from pyserini_repbert.collection.files.html_documents import document_of_html

        markup = decode_page(read_page(file.path))
        document = document_of_html(file.docid, markup, self.main_content)
        if _is_empty(document):
            raise without_text()
        yield str(file.path), document


@dataclass(frozen=True)
class DocumentsKind(FileKind):
    """Files whose documents a function reads, `read`; a file without any text is not read.

    `of` makes one of a function of this package's folder `files`.
    """

    read: ReadDocuments

    @classmethod
    def of(cls, name: str) -> DocumentsKind:
        """The kind whose function 'MODULE:FUNCTION' names, imported when a file is read."""

        def read(file: FileToRead) -> Iterator[Document]:
            documents: ReadDocuments = pkgutil.resolve_name(f'{_FOLDER}.{name}')
            return documents(file)

        return DocumentsKind(read)

    def passages(self, file: FileToRead) -> Iterator[LocatedPassage]:
        for location, item in self.documents(file):
            if isinstance(item, Document):
                parts = [part for part in (item.title, item.text) if part]
                yield location, Passage(item.docid, '\n\n'.join(parts))
            else:
                yield location, item

    def documents(self, file: FileToRead) -> Iterator[LocatedDocument]:
        count = 0
        try:
            for document in self.read(file):
                if document.text.strip() or document.title:
                    count += 1
                    yield f'{file.path}#{count}', _fitting(document)
        except UnreadableFile:
            raise
        except ValueError as error:
            raise UnreadableFile(str(error)) from error
        if not count:
            raise without_text()


def _fitting(document: Document) -> Document:
    """A document whose title and fields are within the limits.

    What is cut from them goes to the text.
    """
    text = _without_surrogates(document.text)
    title = _without_surrogates(document.title)
    if len(title) > MAX_TITLE_CHARACTERS:
        text = f'{title}\n\n{text}'
        title = ''
    fitting = replace(document, title=title, text=text)
    if size_problem(fitting) is None:
        return fitting
    lines = [f'{name}: {value}' for name, value in document.fields.items()]
    return replace(fitting, text='\n'.join([text, *lines]), fields={})


def _without_surrogates(text: str) -> str:
    """Text in which halves of surrogate pairs, which are not characters, become question marks."""
    return text.encode('utf-8', 'replace').decode()


class ConvertedKind(DocumentsKind):
    """Files that other processes convert, possibly before they are asked for."""

    def __init__(self, converter: FileConverter) -> None:
        super().__init__(converter.documents)
        self._converter = converter

    def content_of(self, file: FileToRead) -> FileContent | None:
        return self._converter.content_of(file)


class OwnKind(DocumentsKind):
    """Files that a user's own reader reads.

    Parameters
    ----------
    reader : takes a path, and gives a text or documents
    """

    def __init__(self, reader: OwnReader) -> None:
        def read(file: FileToRead) -> Iterator[Document]:
            try:
                yield from _own_documents(reader, file)
            except UnreadableFile:
                raise
            except Exception as error:
                # An error in a user's code concerns only this file.
                reason = f'its reader raised {type(error).__name__}: {error}'
                raise UnreadableFile(reason) from error

        super().__init__(read)


def _own_documents(reader: OwnReader, file: FileToRead) -> Iterator[Document]:
    given = reader(file.path)
    if isinstance(given, str):
        yield Document(file.docid, given, file.path.stem)
        return
    for item in given:
        document = given_document(item)
        if isinstance(document, BadPassage):
            raise UnreadableFile(str(document))
        yield document


KINDS: dict[str, FileKind] = {
    'jsonl': CorpusKind(JsonlCorpus),
    'tsv': CorpusKind(TsvCorpus),
    'cedr': CorpusKind(CedrCorpus),
    'trec': CorpusKind(TrecCorpus),
    'text': TextKind(),
    'html': PageKind(),
    'main-content': PageKind(main_content=True),
    'rst': DocumentsKind.of('plain_documents:restructured_documents'),
    'adoc': DocumentsKind.of('plain_documents:asciidoc_documents'),
    'org': DocumentsKind.of('plain_documents:org_documents'),
    'source': DocumentsKind.of('plain_documents:source_documents'),
    'log': DocumentsKind.of('plain_documents:log_documents'),
    'mail': DocumentsKind.of('mail_documents:mail_documents'),
    'mailbox': DocumentsKind.of('mail_documents:mailbox_documents'),
    'notebook': DocumentsKind.of('notebook_documents:notebook_documents'),
    'table': DocumentsKind.of('table_documents:table_documents'),
    'parquet': DocumentsKind.of('table_documents:parquet_documents'),
    'json': DocumentsKind.of('table_documents:json_documents'),
}
