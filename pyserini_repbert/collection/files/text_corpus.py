"""Text files and Markdown as a corpus: a file is a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from pyserini_repbert.collection.files.markdown_documents import (
    document_of_markdown,
    document_of_text,
)
from pyserini_repbert.data.corpus_formats import FilesCorpus
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.origins import docid_of_path, name_in_corpus
from pyserini_repbert.data.passages import BadPassage, Passage
from pyserini_repbert.data.suffixes import MARKDOWN, has_suffix_or_packed, without_suffix
from pyserini_repbert.data.text_encodings import decode_text
from pyserini_repbert.data.unread_files import UnreadableFile, UnreadFile, UnreadFiles
from pyserini_repbert.files import open_binary

_Item = TypeVar('_Item', Passage, Document)


class TextCorpus(FilesCorpus):
    """Text files, Markdown among them: each is a document, whose docid is its path in the folder.

    White space and % in a path are written as in addresses: 'my notes.md' is 'my%20notes.md'.
    """

    def count_hint(self) -> int | None:
        """The number of files."""
        return self._part.share(len(self.paths))

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        return self._read_files(self.paths, self._passage)

    def _read_documents(self) -> Iterator[tuple[str, Document | BadPassage]]:
        paths = [path for row, path in enumerate(self.paths) if self._part.takes(row)]
        return self._read_files(paths, self._document)

    def _read_files(
        self, paths: Sequence[Path], read: Callable[[Path], _Item]
    ) -> Iterator[tuple[str, _Item | BadPassage]]:
        """What files become. A file of a folder that cannot be read is one of `unread`."""
        is_folder = Path(self.name).is_dir()
        for path in paths:
            try:
                yield str(path), read(path)
            except (ValueError, OSError) as error:
                reason = error.strerror if isinstance(error, OSError) else str(error)
                if is_folder:
                    self._add_unread(path, str(reason))
                elif isinstance(error, OSError):
                    raise
                else:
                    yield str(path), BadPassage(reason)

    def _add_unread(self, path: Path, reason: str) -> None:
        known = [file for file in self.unread if file.path != path]
        failed = UnreadFile.of_error(path, self._docid(path), UnreadableFile(reason))
        self.unread = UnreadFiles([*known, failed])

    def _passage(self, path: Path) -> Passage:
        """The passage of a file. Raises ValueError for one that cannot be read."""
        return Passage(self._docid(path), self._text(path).strip())

    def _document(self, path: Path) -> Document:
        """The document of a file. Raises ValueError for one that cannot be read."""
        if has_suffix_or_packed(path.name, MARKDOWN):
            name = without_suffix(path.name, MARKDOWN)
            document = document_of_markdown(self._docid(path), self._text(path), name)
        else:
            document = document_of_text(self._docid(path), self._text(path))
        return document.in_file(name_in_corpus(self.name, path))

    def _docid(self, path: Path) -> str:
        folder = Path(self.name)
        name = path.relative_to(folder).as_posix() if folder.is_dir() else path.name
        return docid_of_path(name)

    def _text(self, path: Path) -> str:
        """A file's text. Raises ValueError for bytes that are not text."""
        with open_binary(path) as stream:
            decoded = decode_text(stream.read())
        if decoded.encoding:
            self.encodings[path] = decoded.encoding
        return decoded.text
