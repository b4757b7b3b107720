"""Judging in a service: pools of documents, judgments, and learning from them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from pyserini_repbert.adapt.judged_topics import LEAST_TOPICS
from pyserini_repbert.collection.judging.own_settings import learning_in_use
from pyserini_repbert.collection.judgments import Judgment, JudgmentStore, question_text
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.serve.added_fields import RANDOM
from pyserini_repbert.serve.answer_models import API
from pyserini_repbert.serve.answers import AnswerOptions
from pyserini_repbert.serve.document_forms import display_parts
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.judging_models import (
    AgreementInfo,
    JudgmentInfo,
    JudgmentsResponse,
    LearningReport,
    LearningResponse,
    PooledDocument,
    PoolResponse,
    QuestionsResponse,
    QuestionState,
)
from pyserini_repbert.serve.learning import CollectionLearner
from pyserini_repbert.serve.requests import PipelineRequest
from pyserini_repbert.serve.service import Service
from pyserini_repbert.trace import Trace

# Documents of a pool that are read together, before their bytes are counted.
_DOCUMENTS_AT_ONCE = 20


def make_pool(
    service: Service,
    index: ServedIndex,
    question: str,
    depth: int,
    rerank: Sequence[str],
    trace: Trace,
) -> list[str]:
    """The documents that are judged for a question: the best of every ranking.

    Their order is random, and always the same for a question: it favours no ranking.

    Parameters
    ----------
    service, index : what searches; the caller holds the index
    question : its text
    depth : how many hits of each ranking
    rerank : rerankers, NAME@K; each adds a ranking
    trace : learns how far the reranking is

    Raises the errors of `Service.search`.
    """
    requests = [PipelineRequest(system=[name]) for name in index.searchable_systems()]
    requests += [PipelineRequest(rerank=[stage]) for stage in rerank]
    limits = service.settings.limits
    docids: set[str] = set()
    for request in requests:
        search = request.search(question, depth, False, limits)
        docids.update(service.search(index, search, trace).hits.docids)
    pool = sorted(docids)
    seed = hashlib.sha256(question_text(question).encode()).digest()
    random.Random(seed).shuffle(pool)
    return pool


@dataclass(frozen=True)
class Pool:
    """The documents that a judge judges for a question.

    Attributes
    ----------
    question : its text
    docids : in the order in which they are shown
    judge : whose grades are shown
    order : of the documents: 'random', or one that an extension adds
    """

    question: str
    docids: Sequence[str]
    judge: str
    order: str = RANDOM

    @property
    def key(self) -> str:
        """Names the pool in judgments."""
        lines = '\n'.join([question_text(self.question), *self.docids])
        digest = hashlib.sha256(lines.encode()).hexdigest()[:16]
        return digest if self.order == RANDOM else f'{self.order}-{digest}'


def pool_answer(
    index: ServedIndex, store: JudgmentStore, pool: Pool, options: AnswerOptions
) -> PoolResponse:
    """A pool as a client shows it: its documents with their best passages, without ranks.

    Parameters
    ----------
    index : the index with the documents; the caller holds it
    store : remembers the pool, and has the judge's grades
    pool : the documents to judge
    options : which fields come with the documents

    Raises InputError if the documents are too long together.
    """
    judgments = store.judgments(pool.judge, pool.question)
    judgment_of = {judgment.docid: judgment for judgment in judgments}
    documents: list[PooledDocument] = []
    for first in range(0, len(pool.docids), _DOCUMENTS_AT_ONCE):
        docids = pool.docids[first : first + _DOCUMENTS_AT_ONCE]
        shown = _pooled_documents(index, pool.question, docids, options.fields)
        if options.size is not None:
            options.size.add(shown)
        documents += shown
    _name_copies(documents, index.store.versions(pool.docids))
    for document in documents:
        judgment = judgment_of.get(document['docid'])
        if judgment is not None:
            document['grade'] = judgment.grade
            document['comment'] = judgment.comment
    store.add_pool(pool.key, pool.question, pool.docids)
    return PoolResponse(
        api=API,
        index=index.alias,
        pool=pool.key,
        question=question_text(pool.question),
        documents=documents,
    )


def _name_copies(documents: Sequence[PooledDocument], versions: Sequence[str]) -> None:
    """Let each document name the first one of the same title and text, whose version it has."""
    first_of: dict[str, str] = {}
    for document, version in zip(documents, versions, strict=True):
        first = first_of.setdefault(version or document['docid'], document['docid'])
        if first != document['docid']:
            document['same_as'] = first


def _pooled_documents(
    index: ServedIndex, question: str, docids: Sequence[str], names: Sequence[str]
) -> list[PooledDocument]:
    """Documents that are not judged yet, with what hits show of them, and their fields of these
    names.
    """
    hits = index.with_shown_texts(question, Ranking(docids, [0.0] * len(docids)))
    all_fields = index.store.fields(docids, names)
    documents = [
        _pooled_document(index, question, hit, fields)
        for hit, fields in zip(hits, all_fields, strict=True)
    ]
    return documents


def _pooled_document(
    index: ServedIndex, question: str, hit: Candidate, fields: dict[str, Any]
) -> PooledDocument:
    """A document that is not judged yet: its title, the text that a hit shows, its position."""
    title = None
    text = hit.text or ''
    start = None
    end = None
    headings: list[str] = []
    if hit.excerpts:
        passage = hit.excerpts[0]
        title = passage.title or None
        text = passage.shown_text
        start, end = passage.body_span
        headings = list(passage.headings)
    return PooledDocument(
        docid=hit.docid,
        title=title,
        text=text,
        start=start,
        end=end,
        headings=headings,
        display=display_parts(question, text, index.find_words),
        fields=fields,
        same_as=None,
        grade=None,
        comment='',
    )


def store_judgments(
    index: ServedIndex, store: JudgmentStore, judgments: Sequence[Judgment]
) -> None:
    """Store judgments of documents, with the version of each document that was judged.

    Raises InputError for one that cannot be stored; none is stored then.
    """
    versions = index.store.versions([judgment.docid for judgment in judgments])
    complete = []
    for judgment, version in zip(judgments, versions, strict=True):
        values = asdict(judgment) | {'generation': index.store.digest, 'version': version}
        complete.append(Judgment(**values))
    store.add(complete)


def judgments_answer(
    index: ServedIndex, store: JudgmentStore, judge: str | None, question: str | None
) -> JudgmentsResponse:
    """Judgments, each with whether its document has changed since; and how far judges agree.

    Parameters
    ----------
    index : has the documents
    store : has the judgments
    judge, question : only judgments of this judge, and of this question; None: of all
    """
    judgments = store.judgments(judge, question)
    versions = index.store.versions([judgment.docid for judgment in judgments])
    listed = []
    for judgment, version in zip(judgments, versions, strict=True):
        info = JudgmentInfo(
            question=judgment.question,
            docid=judgment.docid,
            grade=judgment.grade,
            judge=judgment.judge,
            comment=judgment.comment,
            pool=judgment.pool,
            judged=judgment.judged,
            # What a judge saw of an imported judgment is not known.
            is_older=bool(judgment.version) and judgment.version != version,
        )
        listed.append(info)
    agreement = [
        AgreementInfo(judges=list(pair.judges), documents=pair.documents, kappa=pair.kappa)
        for pair in store.agreements()
    ]
    return JudgmentsResponse(api=API, index=index.alias, judgments=listed, agreement=agreement)


def questions_answer(index: ServedIndex, store: JudgmentStore, judge: str) -> QuestionsResponse:
    """The questions to judge: those that were given, then the topics of the settings.

    The questions to judge next come first.
    """
    texts = store.next_questions()
    known = set(texts)
    for question in store.questions():
        if question.text not in known:
            known.add(question.text)
            texts.append(question.text)
    for topic in index.topics.by_qid.values():
        text = question_text(topic.text)
        if text and text not in known:
            known.add(text)
            texts.append(text)
    judged: dict[str, int] = {}
    for judgment in store.judgments(judge):
        judged[judgment.question] = judged.get(judgment.question, 0) + 1
    pooled = store.pool_sizes()
    questions = [
        QuestionState(text=text, judged=judged.get(text, 0), pooled=pooled.get(text))
        for text in texts
    ]
    return QuestionsResponse(
        api=API,
        index=index.alias,
        judge=judge,
        questions=questions,
        total=len(questions),
        judged=len(judged),
    )


def learning_answer(
    index: ServedIndex, store: JudgmentStore, learner: CollectionLearner
) -> LearningResponse:
    """The progress of a collection's learning, its gain, and whether it is used."""
    relevant = 0
    for grades in store.qrels().values():
        relevant += any(grade > 0 for grade in grades.values())
    learnings = store.learned()
    due = None
    in_use = False
    if learnings:
        due = index.index.why_learn_again(learnings[-1])
        # If it was learned for another encoder, it is not used.
        is_used = learning_in_use(learner.folder) is not None
        in_use = is_used and index.index.learned() is not None
    state = learner.state()
    report = None
    if learnings:
        report = cast(LearningReport, learnings[-1].report)
    return LearningResponse(
        api=API,
        index=index.alias,
        state=state['state'],
        done=state['done'],
        total=state['total'],
        error=state['error'],
        due=due,
        in_use=in_use,
        questions_judged=relevant,
        questions_needed=LEAST_TOPICS,
        report=report,
    )
