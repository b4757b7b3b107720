"""What a recipe names, opened: passages, on disk with 28 bytes of memory each, and topics to train
on.
"""

from __future__ import annotations

import random
import tempfile
from array import array
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from pyserini_repbert.data.passages import Passage, PassageTexts
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import numbered_lines
from pyserini_repbert.index.docids import DocidColumn, Docids, mapped_bytes
from pyserini_repbert.indexes.texts import open_texts
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.names.topics import load_topics
from pyserini_repbert.ranking import Query, normal_form
from pyserini_repbert.tasks.recipe import Source, Validation


def open_passages(source: Source) -> PassageTexts:
    """Passage texts by docid: from an index that stores them, or from a corpus, read once to a
    temporary file.
    """
    if source.corpus is None:
        return open_texts(None, source.index, ())
    return DiskTexts(
        open_corpus(source.corpus, source.corpus_format, source.fields, keep_empty=True)
    )


def source_topics(source: Source | Validation, sample: int = 0, seed: int = 0) -> list[Query]:
    """The topics of a source in their order, only those in its `qids` file if it has one; empty for
    a source without topics.

    With `sample`, that many of them, drawn by the seed. Raises InputError for a `qids` file that
    has none of them.
    """
    if source.topics is None:
        return []
    topics = load_topics(source.topics)
    if source.qids is not None:
        chosen = _read_qids(source.qids)
        topics = [query for query in topics if query.qid in chosen]
        if not topics:
            raise InputError(f'{source.qids} has no qid of {source.topics}: check both')
    if sample and sample < len(topics):
        draw = random.Random(f'{seed} sample')
        positions = sorted(draw.sample(range(len(topics)), sample))
        topics = [topics[position] for position in positions]
    return topics


def _read_qids(path: str) -> set[str]:
    """The first word of each line that has one."""
    qids = set()
    for _, line in numbered_lines(path, 'list of qids'):
        qids.update(line.split()[:1])
    return qids


class DiskTexts:
    """Passages written to temporary files while they are read.

    If several have the same docid, the first one counts.

    The files vanish with the object; processes that are forked from this one can read them too.
    """

    def __init__(self, corpus: Iterable[Passage]) -> None:
        ends = array('q', [0])
        with tempfile.TemporaryDirectory(prefix='passages.') as folder:
            docids = Path(folder, 'docids')
            texts = Path(folder, 'texts')
            with (
                open(docids, 'w', encoding='utf-8', newline='\n') as docid_stream,
                open(texts, 'wb') as text_stream,
            ):
                for passage in corpus:
                    docid_stream.write(f'{passage.docid}\n')
                    length = text_stream.write(passage.text.encode())
                    ends.append(ends[-1] + length)
            self._rows = Docids([DocidColumn(docids, len(ends) - 1)]).rows
            # Sorts the docids now, before processes are forked.
            self._rows([])
            self._texts = mapped_bytes(texts)
        self._ends = ends

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """The texts in the order asked for; None for a docid that the corpus lacks."""
        texts: list[str | None] = []
        for row in self._rows(docids).tolist():
            if row < 0:
                texts.append(None)
            else:
                text = self._texts[self._ends[row] : self._ends[row + 1]]
                texts.append(text.decode())
        return texts


class Guard:
    """Says which queries may be trained on, by their text, since one qid may name different queries
    in two collections.

    To train on a test topic is an error; validation topics are left out of training. Two topics of
    one collection may have the same text, as Robust04's 341 and 412: to train on the one is then
    allowed where the other is tested.
    """

    def __init__(self, test: Iterable[Query] = (), validation: Iterable[Query] = ()) -> None:
        self._test = _qids_by_text(test)
        self._validation = _qids_by_text(validation)

    def admits(self, text: str, where: str, same_text: Collection[str] = ()) -> bool:
        """Whether a query may be trained on.

        `same_text` has the qids of the other topics of its file that have its text.

        Raises InputError, which begins with `where`, for a test topic.
        """
        normalised = normal_form(text)
        if self._test.get(normalised, set()).difference(same_text):
            raise InputError(
                f'{where}: {text[:60]!r} is a test topic: take it out of the training data, '
                'or set allow_test_topics: true'
            )
        return not self._validation.get(normalised, set()).difference(same_text)


def _qids_by_text(topics: Iterable[Query]) -> dict[str, set[str]]:
    """The qids of the topics of each text."""
    qids: dict[str, set[str]] = {}
    for topic in topics:
        qids.setdefault(normal_form(topic.text), set()).add(topic.qid)
    return qids


def same_texts(topics: Sequence[Query]) -> dict[str, set[str]]:
    """For each qid whose text other topics have too, the qids of these."""
    others = {}
    for qids in _qids_by_text(topics).values():
        if len(qids) > 1:
            for qid in qids:
                others[qid] = qids - {qid}
    return others
