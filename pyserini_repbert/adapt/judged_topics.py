"""The topics that `adapt` learns from, and the folds in which they are held out."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.adapt.weights import CUT, AlignedRankings, align, align_reranked, ndcg
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.errors import InputError
from pyserini_repbert.ranking import ALL, Query, Ranker, Run, normal_form
from pyserini_repbert.search.dense import VectorSearcher
from pyserini_repbert.search.document_rows import DocumentRows

LEAST_TOPICS = 20  # with different texts
FOLDS = 5
N_MAPS = FOLDS * (FOLDS + 1) // 2 + 1  # that are learned: one or two folds held out, or none
DEPTH = 1000  # hits of each ranking that are fused
# Other texts whose judgments are tried on a ranking.
_OTHERS = 20

Values = NDArray[np.float64]  # nDCG@10 of each text, (n texts,)


@dataclass(frozen=True)
class JudgedTopic:
    """A topic with relevant passages.

    Attributes
    ----------
    query : the topic
    vector : its vector, float32 (d,)
    grades : the grades of its relevant passages by docid
    """

    query: Query
    vector: NDArray[np.float32]
    grades: Mapping[str, int]


class JudgedTopics:
    """Topics with relevant passages, and the folds into which their texts are dealt.

    Attributes
    ----------
    topics : n of them
    text_numbers : of each topic, equal for topics with the same text; int (n,)
    folds : the topics' positions in each fold, rising
    fold_of_text : of each text, in the order of their numbers, int (n texts,)
    """

    def __init__(self, topics: Sequence[JudgedTopic], seed: int) -> None:
        self.topics = topics
        self.text_numbers = number_texts([topic.query for topic in topics])
        self.fold_of_text = deal_folds(self.text_numbers, seed)
        self.folds: list[list[int]] = [[] for _ in range(FOLDS)]
        for position, number in enumerate(self.text_numbers):
            self.folds[self.fold_of_text[number]].append(position)

    @property
    def queries(self) -> list[Query]:
        """The topics without their judgments."""
        return [topic.query for topic in self.topics]

    @property
    def qids(self) -> list[str]:
        """The topics' identifiers."""
        return [topic.query.qid for topic in self.topics]

    @property
    def texts(self) -> tuple[str, ...]:
        """The different texts, each as its first topic has it, in the order of their numbers."""
        texts: dict[int, str] = {}
        for number, topic in zip(self.text_numbers, self.topics, strict=True):
            texts.setdefault(number, topic.query.text)
        return tuple(texts.values())

    def in_fold(self, fold: int) -> list[JudgedTopic]:
        """The topics of a fold."""
        return [self.topics[position] for position in self.folds[fold]]

    def average_by_text(self, values: Sequence[float]) -> Values:
        """The mean over the topics of each text, (n texts,), of a value of each topic."""
        sums = np.bincount(self.text_numbers, values)
        means: Values = sums / np.bincount(self.text_numbers)
        return means

    def values(self, run: Run) -> Values:
        """nDCG@10 of a run."""
        of_topics = [ndcg(run[topic.query.qid], topic.grades) for topic in self.topics]
        return self.average_by_text(of_topics)

    def values_by_others(self, run: Run) -> Values:
        """nDCG@10 of a run by the judgments of other texts: the mean over some of them."""
        numbers = np.array(self.text_numbers)
        draw = np.random.default_rng(0)
        of_topics = []
        for number, topic in zip(self.text_numbers, self.topics, strict=True):
            others = np.flatnonzero(numbers != number)
            drawn = draw.choice(others, min(_OTHERS, len(others)), replace=False)
            ranking = run[topic.query.qid][:CUT]
            values = [ndcg(ranking, self.topics[position].grades) for position in drawn]
            of_topics.append(float(np.mean(values)))
        return self.average_by_text(of_topics)

    def rerank(self, run: Run, reranker: Ranker) -> list[AlignedRankings]:
        """The topics' rankings before and after a reranker side by side."""
        n_read = reranker.reads or ALL
        heads = {qid: ranking[:n_read] for qid, ranking in run.items()}
        reranked = reranker.rank(self.queries, heads, None)
        aligned = []
        for topic in self.topics:
            qid = topic.query.qid
            rankings = align_reranked(run[qid], reranked[qid], n_read=n_read, grades=topic.grades)
            aligned.append(rankings)
        return aligned


def number_texts(topics: Sequence[Query]) -> list[int]:
    """A number for each topic, from 0 on; topics with the same text have the same."""
    number_of: dict[str, int] = {}
    numbers = []
    for topic in topics:
        text = normal_form(topic.text)
        numbers.append(number_of.setdefault(text, len(number_of)))
    return numbers


def deal_folds(text_numbers: Sequence[int], seed: int) -> NDArray[np.int64]:
    """The fold of each text, (n texts,)."""
    n_texts = 1 + max(text_numbers, default=-1)
    shuffled = random.Random(seed).sample(range(n_texts), n_texts)
    fold_of = {number: index % FOLDS for index, number in enumerate(shuffled)}
    return np.array([fold_of[number] for number in range(n_texts)], np.int64)


def align_runs(topics: Sequence[JudgedTopic], runs: Sequence[Run]) -> list[AlignedRankings]:
    """The topics' rankings in these runs side by side."""
    aligned = []
    for topic in topics:
        rankings = [run[topic.query.qid] for run in runs]
        aligned.append(align(rankings, topic.grades))
    return aligned


def select_judged(
    dense: VectorSearcher, index: DocumentRows, topics: Sequence[Query], qrels: Qrels
) -> list[JudgedTopic]:
    """The topics with a relevant passage in the index, and their vectors.

    Parameters
    ----------
    dense : encodes the topics
    index : what `dense` searches
    topics, qrels : topics and their judgments

    Raises
    ------
    InputError
        If the judgments are of other topics or passages, or if fewer than `LEAST_TOPICS` texts
        remain.
    """
    chosen: list[Query] = []
    grades_of: dict[str, dict[str, int]] = {}
    for topic in topics:
        grades = {docid: grade for docid, grade in qrels.get(topic.qid, {}).items() if grade > 0}
        if index.holds(list(grades)).any():
            chosen.append(topic)
            grades_of[topic.qid] = index.counted(grades)
    if not chosen:
        _check_judgments_match(dense, index, topics, qrels)
    n_texts = len({normal_form(topic.text) for topic in chosen})
    if n_texts < LEAST_TOPICS:
        raise InputError(
            f'{len(chosen)} of {len(topics)} topics have a relevant passage in '
            f'{dense.index_dir}, with {n_texts} different texts: at least '
            f'{LEAST_TOPICS} are needed, because fewer teach only noise'
        )
    vectors = dense.encode([topic.text for topic in chosen])
    return [
        JudgedTopic(topic, vector, grades_of[topic.qid])
        for topic, vector in zip(chosen, vectors, strict=True)
    ]


def _check_judgments_match(
    dense: VectorSearcher, index: DocumentRows, topics: Sequence[Query], qrels: Qrels
) -> None:
    """Raise InputError if no judged qid is a topic's, or no judged docid is in the index."""
    judged = [topic.qid for topic in topics if qrels.get(topic.qid)]
    if topics and qrels and not judged:
        raise InputError(
            f"none of the topics is judged: the topics have qids like '{topics[0].qid}', the "
            f"judgments like '{next(iter(qrels))}': give the judgments of these topics"
        )
    docids: list[str] = []
    for qid in judged:
        docids += qrels[qid]
    stored = index.a_docid()
    if docids and stored is not None and not index.holds(docids).any():
        raise InputError(
            f"no judged docid is in index {dense.index_dir}: it has docids like '{stored}', the "
            f"judgments like '{docids[0]}': give the judgments of its passages"
        )
