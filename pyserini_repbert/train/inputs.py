"""The passages and topics that a recipe's sources name."""

from __future__ import annotations

import random

from pyserini_repbert.data.identifiers import columns
from pyserini_repbert.data.passages import PassageTexts
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import numbered_lines
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.names.texts import open_texts
from pyserini_repbert.names.topics import load_topics
from pyserini_repbert.ranking import Query
from pyserini_repbert.train.recipe import Source, Validation
from pyserini_repbert.train.texts import DiskTexts


def open_passages(source: Source) -> PassageTexts:
    """Passage texts by docid: from an index that stores them, or from a corpus, read once to a temporary file."""
    if source.corpus is None:
        return open_texts(None, source.index, ())
    return DiskTexts(open_corpus(source.corpus, source.corpus_format, source.fields, keep_empty=True))


def first_columns(path: str) -> list[str]:
    """The qids that a file's lines begin with. Raises InputError for one with a character that no qid can have."""
    found = []
    for number, line in numbered_lines(path, 'list of qids'):
        try:
            found += columns(line)[:1]
        except ValueError as error:
            raise InputError.at(path, number, f'{error}, which no qid can have: {line[:60]!r}') from error
    return found


def source_topics(source: Source | Validation, sample: int = 0, seed: int = 0) -> list[Query]:
    """The topics of a source in their order, only those in its `qids` file if it has one; none for a source without.

    Parameters
    ----------
    sample : how many of them, drawn by the seed; 0 for all
    """
    if source.topics is None:
        return []
    topics = load_topics(source.topics)
    if source.qids is not None:
        chosen = set(first_columns(source.qids))
        topics = [query for query in topics if query.qid in chosen]
    if sample and sample < len(topics):
        drawn = set(random.Random(f'{seed} sample').sample(range(len(topics)), sample))
        topics = [query for number, query in enumerate(topics) if number in drawn]
    return topics
