"""The formats of corpora: JSON lines, MS MARCO's collection.tsv, TREC text, HTML, ir_datasets."""

from __future__ import annotations

import gzip
import html
import json
import re
import tarfile
import zlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyserini_repbert.corpus import BadPassage, Corpus, Passage
from pyserini_repbert.errors import InputError, MissingDependencyError
from pyserini_repbert.files import open_binary

# A comment, or '<' with a letter, '/', '!' or '?' after it, as HTML has it: the 'm < n' of an abstract is text.
_TAG = re.compile(r'<!--.*?-->|<[a-zA-Z/!?][^>]*>', re.DOTALL)

_QUICK_GZIP = 50_000_000  # bytes that are unpacked just to count their lines


class _LinesCorpus(Corpus):
    """A corpus of files in which a line is a passage."""

    def __init__(self, name: str, paths: Sequence[Path], **options: bool | str) -> None:
        super().__init__(name, **options)  # type: ignore[arg-type]
        self.paths = list(paths)

    def count_hint(self) -> int | None:
        """The number of lines, where they can be counted in a few seconds."""
        if any(path.suffix == '.gz' and path.stat().st_size > _QUICK_GZIP for path in self.paths):
            return None
        lines = 0
        for path in self.paths:
            with open_binary(path) as stream:
                lines += sum(block.count(b'\n') for block in iter(lambda: stream.read(1 << 20), b''))
        return lines

    @abstractmethod
    def parse(self, line: str) -> Passage:
        """One line's passage; raises `BadPassage` or ValueError, KeyError where there is none."""

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        for path in self.paths:
            with open_binary(path) as stream:
                for number, raw in enumerate(stream, 1):
                    if raw.isspace():
                        continue
                    place = f'{path}:{number}'
                    try:
                        yield place, self.parse(raw.decode('utf-8').rstrip('\r\n'))
                    except UnicodeDecodeError as error:
                        yield place, BadPassage(f'not valid UTF-8 ({error.reason})')
                    except BadPassage as error:
                        yield place, error


class JsonlCorpus(_LinesCorpus):
    """JSON lines as Pyserini reads them: `id` (or `_id`, `docid`) and `contents`, or text fields joined by a space."""

    def __init__(self, name: str, paths: Sequence[Path], fields: Sequence[str] = (), **options: bool | str) -> None:
        super().__init__(name, paths, **options)
        self.fields = tuple(fields)

    def parse(self, line: str) -> Passage:
        try:
            record = json.loads(line)
        except ValueError as error:
            raise BadPassage(f'not JSON ({error}): {line[:60]!r}') from error
        if not isinstance(record, dict):
            raise BadPassage(f'expected a JSON object, found {line[:60]!r}')
        docid = next((record[key] for key in ('id', '_id', 'docid') if key in record), None)
        if docid is None or isinstance(docid, (dict, list)):
            raise BadPassage(f"no 'id' in {line[:60]!r}")
        fields = self.fields or (('contents',) if 'contents' in record else ('title', 'text'))
        parts = [record.get(field) for field in fields]
        if self.fields and None in parts:
            raise BadPassage(f"no field '{self.fields[parts.index(None)]}' in passage '{docid}'")
        texts = [part for part in parts if isinstance(part, str)]
        if not texts:
            raise BadPassage(f"no 'contents' in passage '{docid}': name the text fields with --fields")
        return Passage(str(docid), ' '.join(text for text in texts if text))


class TsvCorpus(_LinesCorpus):
    """MS MARCO's collection.tsv: `docid<TAB>text`."""

    def parse(self, line: str) -> Passage:
        docid, tab, text = line.partition('\t')
        if not tab:
            raise BadPassage(f"expected 'docid<TAB>text', found {line[:60]!r}")
        return Passage(docid, text)


class TrecCorpus(Corpus):
    """TREC text: `<DOC> <DOCNO>…</DOCNO> … </DOC>`; other tags are dropped, their content is kept."""

    def __init__(self, name: str, paths: Sequence[Path], **options: bool | str) -> None:
        super().__init__(name, **options)  # type: ignore[arg-type]
        self.paths = list(paths)

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        for path in self.paths:
            lines: list[bytes] = []
            start = 0
            with open_binary(path) as stream:
                for number, raw in enumerate(stream, 1):
                    opening = raw.lstrip()[:5].upper() == b'<DOC>'
                    if raw.upper().count(b'<DOC>') > opening:
                        yield f'{path}:{number}', BadPassage('<DOC> inside a line: start a line with it')
                    if opening and lines:
                        yield f'{path}:{start}', BadPassage('<DOC> without </DOC>')
                        lines = []
                    if opening or lines:
                        start = start if lines else number
                        lines.append(raw)
                        if b'</DOC>' in raw.upper():
                            yield f'{path}:{start}', self._parse(b''.join(lines))
                            lines = []
            if lines:
                yield f'{path}:{start}', BadPassage('<DOC> without </DOC>')

    @staticmethod
    def _parse(raw: bytes) -> Passage | BadPassage:
        try:
            document = raw.decode('utf-8')
        except UnicodeDecodeError as error:
            return BadPassage(f'not valid UTF-8 ({error.reason})')
        number = re.search(r'<DOCNO>\s*(.*?)\s*</DOCNO>', document, re.DOTALL | re.IGNORECASE)
        if number is None:
            return BadPassage('no <DOCNO>')
        rest = document[: number.start()] + ' ' + document[number.end() :]
        return Passage(number.group(1), ' '.join(_TAG.sub(' ', rest).split()))


class HtmlCorpus(Corpus):
    """A folder or .tar.gz of HTML files, one a passage, named by its file (as CACM for Anserini's HtmlCollection)."""

    def __init__(self, name: str, path: Path, **options: bool | str) -> None:
        super().__init__(name, **options)  # type: ignore[arg-type]
        self.path = path

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        for file_name, raw in self._files():
            place = f'{self.path}:{file_name}'
            text = ' '.join(html.unescape(_TAG.sub(' ', raw.decode('utf-8', 'replace'))).split())
            yield place, Passage(Path(file_name).name.removesuffix('.html'), text)

    def _files(self) -> Iterator[tuple[str, bytes]]:
        if self.path.is_dir():
            for file in sorted(self.path.rglob('*.html')):
                yield str(file.relative_to(self.path)), file.read_bytes()
            return
        try:
            with tarfile.open(self.path) as archive:
                for member in archive:
                    stream = archive.extractfile(member) if member.isfile() else None
                    if stream is not None and member.name.endswith('.html'):
                        yield member.name, stream.read()
        except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f'{self.path} is not a whole tar archive ({error}): fetch it again') from error


class IrDatasetsCorpus(Corpus):
    """The documents of an ir_datasets id ('beir/scifact'); their default text."""

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        try:
            import ir_datasets
        except ImportError as error:
            raise MissingDependencyError.of(
                'ir_datasets', f"corpus '{self.name}'", "'pyserini-repbert[datasets]'"
            ) from error
        try:
            documents = ir_datasets.load(self.name).docs_iter()
        except KeyError as error:
            raise InputError(f"ir_datasets has no data set '{self.name}': see https://ir-datasets.com") from error
        for number, document in enumerate(documents, 1):
            yield f'{self.name}:{number}', Passage(document.doc_id, document.default_text())
