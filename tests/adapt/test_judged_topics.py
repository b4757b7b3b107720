"""The topics that are learned from, and their folds."""

import numpy as np
import pytest

from pyserini_repbert.adapt.judged_topics import JudgedTopic, JudgedTopics, select_judged
from pyserini_repbert.errors import InputError
from pyserini_repbert.ranking import Query


@pytest.fixture
def judged():
    """Three topics; the first and the last have one text in two spellings."""
    topics = [
        JudgedTopic(Query(qid, text), np.zeros(2, np.float32), {'d': 1})
        for qid, text in (('1', 'a b'), ('2', 'c'), ('3', 'A  B'))
    ]
    return JudgedTopics(topics, seed=0)


def test_the_values_of_one_text_are_averaged(judged):
    """(1 + 0) / 2 of the first text, .5 of the second."""
    assert judged.average_by_text([1.0, 0.5, 0.0]).tolist() == [0.5, 0.5]


def test_topics_with_one_text_are_in_one_fold(judged):
    assert sorted(members for members in judged.folds if members) == [[0, 2], [1]]


def test_too_few_different_texts_are_refused(searcher):
    topics = [Query(str(number), 'the cat') for number in range(20)]
    qrels = {topic.qid: {f'd{topic.qid}': 1} for topic in topics}
    with pytest.raises(InputError, match=r'20 of 20 topics .* with 1 different texts: at least 20'):
        select_judged(searcher, searcher.document_rows(), topics, qrels)


def test_judgments_of_other_passages_are_named(searcher):
    topics = [Query(str(number), f'cat {number}') for number in range(30)]
    qrels = {topic.qid: {f'page-{topic.qid}': 1} for topic in topics}
    with pytest.raises(InputError, match=r"docids like 'd0', the judgments like 'page-0'"):
        select_judged(searcher, searcher.document_rows(), topics, qrels)


def test_judgments_of_other_topics_are_named(searcher):
    topics = [Query(str(number), f'cat {number}') for number in range(30)]
    qrels = {f'q{topic.qid}': {f'd{topic.qid}': 1} for topic in topics}
    with pytest.raises(InputError, match=r"qids like '0', the judgments like 'q0'"):
        select_judged(searcher, searcher.document_rows(), topics, qrels)
