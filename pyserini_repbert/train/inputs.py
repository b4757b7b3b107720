"""What a recipe names, opened: topics, judgments, corpora; from files, the catalog, Pyserini or ir_datasets."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from pyserini_repbert.errors import InputError, MissingDependencyError, UnknownNameError
from pyserini_repbert.files import numbered_lines
from pyserini_repbert.identifiers import columns
from pyserini_repbert.passages import Corpus, PassageTexts
from pyserini_repbert.ranking import Query
from pyserini_repbert.topics import Qrels
from pyserini_repbert.train.recipe import Source, Validation
from pyserini_repbert.train.texts import DiskTexts

IR_DATASETS = 'ir_datasets:'


def open_passages(source: Source) -> PassageTexts:
    """Passage texts by docid: from an index that stores them, or from a corpus, read once to a temporary file."""
    if source.corpus is None:
        from pyserini_repbert.pipeline.texts import open_texts

        return open_texts(None, source.index, ())
    return DiskTexts(read_corpus(source.corpus, source.corpus_format, source.fields))


def read_corpus(corpus: str, corpus_format: str = 'auto', fields: Sequence[str] = ()) -> Corpus:
    """A corpus by file, folder, catalog name or `ir_datasets:ID`."""
    from pyserini_repbert.pyserini_bridge.corpora import open_any_corpus

    return open_any_corpus(corpus, corpus_format, fields, keep_empty=True)


def load_any_topics(spec: str) -> list[Query]:
    """Topics of a file, by a name of the catalog or of Pyserini, or of `ir_datasets:ID`."""
    if spec.startswith(IR_DATASETS):
        return [Query(query.query_id, query.default_text()) for query in dataset(spec).queries_iter()]
    from pyserini_repbert.pyserini_bridge.topics import load_topics

    return load_topics(spec)


def load_any_qrels(spec: str) -> Qrels:
    """Judgments of a file, by a name of the catalog or of Pyserini, or of `ir_datasets:ID`."""
    if spec.startswith(IR_DATASETS):
        qrels: Qrels = {}
        for judgment in dataset(spec).qrels_iter():
            qrels.setdefault(judgment.query_id, {})[judgment.doc_id] = judgment.relevance
        return qrels
    from pyserini_repbert.pyserini_bridge.topics import load_qrels

    return load_qrels(spec)


def dataset(spec: str) -> Any:
    """The data set of `ir_datasets:ID`. Raises UnknownNameError for an id that ir_datasets does not have."""
    try:
        import ir_datasets
    except ImportError as error:
        raise MissingDependencyError.of('ir_datasets', spec, "'pyserini-repbert[datasets]'") from error
    load: Callable[[str], Any] = ir_datasets.load
    try:
        return load(spec.removeprefix(IR_DATASETS))
    except KeyError as error:
        raise UnknownNameError(
            f"ir_datasets has no '{spec.removeprefix(IR_DATASETS)}': see https://ir-datasets.com"
        ) from error


def first_columns(path: str) -> list[str]:
    """The first columns of a file's lines: qids."""
    found = []
    for number, line in numbered_lines(path, 'list of qids'):
        try:
            found += columns(line)[:1]
        except ValueError as error:
            raise InputError.at(path, number, f'{error}, which no qid can have: {line[:60]!r}') from error
    return found


def source_topics(source: Source | Validation, sample: int = 0, seed: int = 0) -> list[Query]:
    """The topics of a source, those of its `qids` only; with `sample`, that many of them, drawn by the seed."""
    if source.topics is None:
        return []
    topics = load_any_topics(source.topics)
    if source.qids is not None:
        chosen = set(first_columns(source.qids))
        topics = [query for query in topics if query.qid in chosen]
    if sample and sample < len(topics):
        kept = set(random.Random(f'{seed} sample').sample(range(len(topics)), sample))
        topics = [query for number, query in enumerate(topics) if number in kept]
    return topics
