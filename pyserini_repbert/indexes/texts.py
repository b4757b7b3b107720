"""Passage text by docid, from what the user names: a corpus, a bundle, or a Lucene index."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.data.passages import CorpusTexts, PassageTexts
from pyserini_repbert.errors import InputError
from pyserini_repbert.indexes.kind import SearchOptions, kind_of
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher


def open_texts(
    corpus: str | None,
    index: str | None,
    wanted: Iterable[str],
    corpus_format: str = 'auto',
    fields: Iterable[str] = (),
) -> PassageTexts:
    """Passage text of the `wanted` docids.

    The parameters corpus, index, corpus_format and fields, and the errors, are as in
    `texts_opener`.
    """
    return texts_opener(corpus, index, corpus_format, fields)(wanted)


def texts_opener(
    corpus: str | None,
    index: str | None,
    corpus_format: str = 'auto',
    fields: Iterable[str] = (),
    download: bool = False,
) -> Callable[[Iterable[str]], PassageTexts]:
    """A function from docids to an object that gives their texts.

    The corpus or index is opened at once, so that a missing one is noticed before a model is
    loaded; a corpus is read when the function is called.

    Parameters
    ----------
    corpus, corpus_format, fields : as in `open_corpus`
    index : a dense or EPIC bundle with text, a Lucene index, or the name of one
    download : fetch a prebuilt Lucene index that is missing

    Raises InputError unless exactly one of `corpus` and `index` is given, and for an index without
    text.
    """
    if (corpus is None) == (index is None):
        raise InputError(
            'passages come from a corpus or from an index: give one of the two',
            parameters=('corpus', 'index'),
        )
    if corpus is None:
        opened = _index_texts(str(index), download)
        return lambda wanted: opened
    # Most searches read no corpus, and what reads all kinds of files takes long to import.
    from pyserini_repbert.names.corpora import open_corpus

    passages = open_corpus(corpus, corpus_format, fields, keep_empty=True)
    return lambda wanted: CorpusTexts(passages, wanted)


def _index_texts(index: str, download: bool) -> PassageTexts:
    if not Path(index).exists() and not catalog.find('indexes', index):
        # A prebuilt index of Pyserini.
        return LuceneSparseSearcher(index, download=download)
    store = kind_of(index).open(index, SearchOptions()).store(Machine())
    if store is None:
        raise InputError(
            f'index {index} stores no passages: build it with texts, or give the corpus',
            parameters=('store_text', 'corpus'),
        )
    return store
