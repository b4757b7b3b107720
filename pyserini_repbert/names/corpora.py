"""Corpora by name, and passage text by docid: files, ir_datasets, bundles, Lucene indexes, catalog collections."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.data.passages import Corpus, CorpusFormat, CorpusTexts, OnError, PassageTexts, corpus_of_files
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.files import ARCHIVE_ERRORS, StrPath, atomic_file, cache_folder
from pyserini_repbert.lucene.indexer import LuceneCorpus, is_lucene_index

LUCENE = 'lucene'


def open_corpus(
    source: StrPath,
    fmt: str = 'auto',
    fields: Iterable[str] = (),
    on_error: str = OnError.REFUSE,
    keep_empty: bool = False,
) -> Corpus:
    """Open the corpus of a path or a name.

    Parameters
    ----------
    source : a file or a folder of files, `ir_datasets:ID`, a Lucene index folder, or a collection of the catalog, which
        is downloaded if it is not here and downloads are allowed
    fmt : a CorpusFormat, 'lucene', or 'auto': recognised by the files in a folder, a file's name or its first bytes
    fields : for JSON lines: the text fields, joined by a space (default: `contents`, else `title` and `text`)
    on_error : 'refuse': an InputError at the first unusable line, when the corpus is read; 'skip': warnings, counted
    keep_empty : accept passages without text

    Raises InputError for a source that is none of these, an unknown format, a folder without corpus files.
    """
    name = str(source)
    if fmt != CorpusFormat.IR_DATASETS and not name.startswith('ir_datasets:') and not Path(source).exists():
        entry = catalog.find('collections', name)
        if entry is None:
            known = catalog.entries('collections')
            raise InputError(
                f'corpus {name} does not exist{catalog.did_you_mean(name, known)}: give a file, a folder, '
                f'ir_datasets:ID, or a collection of the catalog ({", ".join(known)})'
            )
        source = collection_file(entry)
    if fmt == LUCENE or (fmt == 'auto' and is_lucene_index(source)):
        return LuceneCorpus(name, on_error, keep_empty)
    return corpus_of_files(source, fmt, fields, on_error=on_error, keep_empty=keep_empty)


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
    try:
        with tarfile.open(archive) as packed:
            archived = next((item for item in packed if Path(item.name).name == member), None)
            stream = packed.extractfile(archived) if archived is not None and archived.isreg() else None
            if stream is None:
                why = 'does not hold' if archived is None else 'holds no content but a link, or a folder, for'
                raise DamagedFileError(f'{archive} {why} {member}: delete it and fetch it again')
            with atomic_file(target, 'wb') as unpacked:
                shutil.copyfileobj(stream, unpacked, 1 << 20)
    except ARCHIVE_ERRORS as error:
        why = '; '.join(str(error).splitlines())
        raise DamagedFileError(f'{archive} is not a whole archive ({why}): delete it and fetch it again') from error


def open_texts(
    corpus: str | None,
    index: str | None,
    wanted: Iterable[str],
    corpus_format: str = 'auto',
    fields: Iterable[str] = (),
) -> PassageTexts:
    """Passage text of the `wanted` docids; the other parameters, and the errors, are those of `texts_opener`."""
    return texts_opener(corpus, index, corpus_format, fields)(wanted)


def texts_opener(
    corpus: str | None,
    index: str | None,
    corpus_format: str = 'auto',
    fields: Iterable[str] = (),
    download: bool = False,
) -> Callable[[Iterable[str]], PassageTexts]:
    """A function from docids to an object that gives their texts; a corpus is read when the function is called.

    The corpus or index is opened at once, so that a missing one is noticed before a model is loaded.

    Parameters
    ----------
    corpus : a file, folder, ir_datasets:ID, Lucene index, or a collection of the catalog
    index : a dense or EPIC bundle with text, a Lucene index, or the name of one
    corpus_format, fields : of the corpus, see `open_corpus`
    download : fetch a prebuilt Lucene index that is not here

    Raises InputError unless exactly one of `corpus` and `index` is given, and for an index without text.
    """
    if (corpus is None) == (index is None):
        raise InputError(
            'passages come from one place: give either a corpus or an index', parameters=('corpus', 'index')
        )
    if corpus is None:
        opened = _index_texts(str(index), download)
        return lambda wanted: opened

    passages = open_corpus(corpus, corpus_format, fields, keep_empty=True)
    return lambda wanted: CorpusTexts(passages, wanted)


def _index_texts(index: str, download: bool) -> PassageTexts:
    from pyserini_repbert.index.dense import DenseBundle
    from pyserini_repbert.index.epic import EpicBundle
    from pyserini_repbert.index.manifest import MANIFEST, manifest_kind
    from pyserini_repbert.index.records import EpicSettings

    folder = Path(index)
    if not folder.exists() and catalog.find('indexes', index):
        from pyserini_repbert.names.indexes import ready_folder

        folder = ready_folder(index, None)
    if (folder / MANIFEST).is_file():
        kind = EpicBundle if manifest_kind(folder) == EpicSettings.kind else DenseBundle
        bundle: DenseBundle | EpicBundle = kind(folder, verify=False)
        if not bundle.has_texts:
            raise InputError(
                f'index {index} stores no passages: build it with texts, or give the corpus',
                parameters=('store_text', 'corpus'),
            )
        return bundle
    from pyserini_repbert.lucene.searcher import LuceneSparseSearcher

    return LuceneSparseSearcher(index, download=download)
