"""The fixed questions about anything: 100 training questions of the demo collection.

People asked them a search engine: about films, sports, law, anatomy. A paragraph of Wikipedia
answers each (`resources/demo/README.md` names the source and its licence). None is a test question
of the demo.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyserini_repbert.catalog import RESOURCES
from pyserini_repbert.data.qrels import read_qrels
from pyserini_repbert.data.topics import read_topics
from pyserini_repbert.extensions.off_topic.file import N_QUESTIONS
from pyserini_repbert.names.corpora import open_corpus

# Not by their names in the catalog: a file in the working directory may have these.
_DEMO = RESOURCES / 'demo'


@dataclass(frozen=True)
class AnsweredQuestion:
    """A question, and a passage that answers it."""

    question: str
    passage: str


def answered_questions() -> list[AnsweredQuestion]:
    """The fixed questions, `N_QUESTIONS` of them: those with the shortest answers.

    Short answers are encoded soon.
    """
    text_of = {passage.docid: passage.text for passage in open_corpus(_DEMO / 'corpus.jsonl.gz')}
    qrels = read_qrels(_DEMO / 'qrels.train.txt.gz')
    answered = []
    for topic in read_topics(_DEMO / 'topics.train.tsv.gz'):
        # Each has one judged passage.
        (docid,) = qrels[topic.qid]
        answered.append(AnsweredQuestion(topic.text, text_of[docid]))
    answered.sort(key=lambda each: len(each.passage))
    return answered[:N_QUESTIONS]
