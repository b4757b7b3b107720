"""Judgments as the files that other programs read: topics, qrels, JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Set
from dataclasses import asdict

from pyserini_repbert.collection.judgments import JudgmentStore
from pyserini_repbert.data.values import Choice


class JudgmentFormat(Choice, what='format of judgments'):
    """The judgments to export."""

    TOPICS = 'topics'
    QRELS = 'qrels'
    JSONL = 'jsonl'


def exported(store: JudgmentStore, form: JudgmentFormat, only_random: bool = False) -> str:
    """The text of a file of judgments.

    Parameters
    ----------
    store : the judgments
    form : 'topics' for lines `qid<TAB>question`, 'qrels' for TREC's lines `qid 0 docid grade` with
        one grade for each document, 'jsonl' for each judgment with judge, comment and time
    only_random : leave out questions that were chosen to be judged early, and not at random
    """
    left_out = store.chosen_qids() if only_random else set()
    chosen = JudgmentFormat(form)
    if chosen is JudgmentFormat.TOPICS:
        lines = _topic_lines(store, left_out)
    elif chosen is JudgmentFormat.QRELS:
        lines = _qrels_lines(store, left_out)
    else:
        lines = _json_lines(store, left_out)
    return ''.join(f'{line}\n' for line in lines)


def _topic_lines(store: JudgmentStore, left_out: Set[str]) -> Iterator[str]:
    for topic in store.topics():
        if topic.qid not in left_out:
            yield f'{topic.qid}\t{topic.text}'


def _qrels_lines(store: JudgmentStore, left_out: Set[str]) -> Iterator[str]:
    for qid, grades in store.qrels().items():
        if qid not in left_out:
            for docid, grade in grades.items():
                yield f'{qid} 0 {docid} {grade}'


def _json_lines(store: JudgmentStore, left_out: Set[str]) -> Iterator[str]:
    qid_of = {question.text: question.qid for question in store.questions()}
    for judgment in store.judgments():
        qid = qid_of[judgment.question]
        if qid not in left_out:
            yield json.dumps({'qid': qid, **asdict(judgment)}, ensure_ascii=False)
