"""Corpora by name: files, ir_datasets, Lucene indexes, the collections of the catalog."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pyserini_repbert import catalog
from pyserini_repbert.archives import archive_members
from pyserini_repbert.data.corpus_files import corpus_of_files
from pyserini_repbert.data.file_selection import FileSelection
from pyserini_repbert.data.passages import BadPassage, Corpus, OnError, Passage
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.extension import open_by_extension
from pyserini_repbert.files import StrPath, atomic_file, cache_folder
from pyserini_repbert.lucene.lucene_form import is_lucene_index
from pyserini_repbert.names.datasets import IR_DATASETS, dataset

LUCENE = 'lucene'


def open_corpus(
    source: StrPath,
    fmt: str = 'auto',
    fields: Iterable[str] = (),
    on_error: str = OnError.REFUSE,
    keep_empty: bool = False,
    selection: FileSelection | None = None,
) -> Corpus:
    """Open the corpus of a path or a name.

    Parameters
    ----------
    source : a file or a folder of files, `ir_datasets:ID`, a Lucene index folder, or a collection
        of the catalog, which is downloaded if it is missing and downloads are allowed
    fmt : 'jsonl', 'tsv', 'trec', 'cedr', 'text', 'html', 'trec-disks', 'clueweb', 'ir_datasets',
        'lucene', or 'auto': each file by its own kind, which its name and its first bytes say
    fields : of JSON lines and tables: the text fields (default: `contents`, otherwise `title` and
        `text`)
    on_error : 'refuse': an InputError at the first unusable line, when the corpus is read; 'skip':
        warnings, counted
    keep_empty : accept passages without text
    selection : which files of a folder are read, and a user's own readers; default: all files,
        apart from hidden ones, caches and backups

    Of a folder, its files say that Lucene wrote it: a corpus is not an index that is searched.

    Raises InputError for a source that is none of these, an unknown format, a folder without corpus
    files.
    """
    policy = OnError(on_error)
    name = str(source)
    if fmt == 'ir_datasets' or name.startswith(IR_DATASETS):
        return IrDatasetsCorpus(name.removeprefix(IR_DATASETS), policy, keep_empty)
    if not name:
        raise InputError('the name of the corpus is empty: give a file or a folder')
    if not Path(source).exists():
        entry = catalog.find('collections', name)
        if entry is None:
            known = catalog.entries('collections')
            near = catalog.did_you_mean(name, known)
            raise InputError(
                f'corpus {name} does not exist{near}: give a file, a folder, ir_datasets:ID, or a '
                f'collection of the catalog ({", ".join(known)})'
            )
        source = collection_file(entry)
    if fmt == LUCENE or (fmt == 'auto' and is_lucene_index(source)):
        from pyserini_repbert.lucene.indexer import LuceneCorpus

        return LuceneCorpus(name, policy, keep_empty)
    settings: dict[str, Any] = {
        'fmt': fmt,
        'fields': fields,
        'on_error': policy,
        'keep_empty': keep_empty,
        'selection': selection,
    }
    corpus: Corpus | None = open_by_extension('corpus', source, **settings)
    return corpus or corpus_of_files(source, **settings)


class IrDatasetsCorpus(Corpus):
    """The documents of an ir_datasets id ('beir/scifact'), with their default text."""

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        for number, document in enumerate(dataset(self.name).docs_iter(), 1):
            yield f'{self.name}:{number}', Passage(document.doc_id, document.default_text())


def collection_file(entry: catalog.Entry) -> Path:
    """The file of a catalog collection: shipped, in the cache, or downloaded now."""
    if 'resource' in entry.values:
        return catalog.resource(entry)
    unpacked = cache_folder() / 'collections' / entry.name / str(entry.values['member'])
    if not unpacked.is_file():
        from pyserini_repbert.download import fetch_entry

        _unpack(fetch_entry(entry), entry.values['member'], unpacked)
    return unpacked


def _unpack(archive: Path, member: str, target: Path) -> None:
    """Write the first file in an archive with a given name, in any of its folders."""
    for packed in archive_members(archive):
        if Path(packed.name).name == member:
            with atomic_file(target, 'wb') as unpacked:
                shutil.copyfileobj(packed.stream, unpacked, 1 << 20)
            return
    raise DamagedFileError(f'{archive} holds no file {member}: delete it and fetch it again')
