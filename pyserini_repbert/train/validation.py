"""Validation during training: the model is written as a checkpoint, opened as a user would open
it, and ranks.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from pyserini_repbert.data.ordering import reciprocal_scores
from pyserini_repbert.data.runs import iter_run
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import by_rank, evaluate, parse_measures
from pyserini_repbert.evaluate.studies.depths import evaluate_depths
from pyserini_repbert.indexes.texts import open_texts
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.names.rerankers import open_reranker
from pyserini_repbert.names.topics import load_qrels
from pyserini_repbert.ranking import NO_HITS, Query, Ranking, Run, by_score
from pyserini_repbert.systems.encoders import document_encoder, query_encoder
from pyserini_repbert.systems.registry import systems
from pyserini_repbert.tasks.recipe import Validation
from pyserini_repbert.tasks.task import Task
from pyserini_repbert.train.checkpoints import write_checkpoint
from pyserini_repbert.train.result import AT_CUTOFF, CUTOFF


def read_candidates(settings: Validation, qids: set[str], where: str) -> Run:
    """The best hits of the validation's run for these topics, with their texts.

    `where` begins errors: InputError for a run without hits of these topics, or for a hit that the
    corpus lacks.
    """
    # Only a validation with a run has candidates.
    assert settings.run is not None
    hits = {qid: ranking for qid, ranking in iter_run(settings.run, settings.depth) if qid in qids}
    if not hits:
        raise InputError(
            f'{where}: {settings.run} has hits for none of the topics: check run and topics'
        )
    distinct: dict[str, None] = {}
    for ranking in hits.values():
        distinct.update(dict.fromkeys(ranking.docids))
    docids = list(distinct)
    passages = open_texts(
        settings.corpus, settings.index, docids, settings.corpus_format, settings.fields
    )
    texts: dict[str, str] = {}
    for docid, text in zip(docids, passages.texts(docids), strict=True):
        if text is None:
            raise InputError(
                f"{where}: passage '{docid}' of {settings.run} is not in the corpus: check both"
            )
        texts[docid] = text
    return {qid: ranking.with_texts(texts) for qid, ranking in hits.items()}


class Validator:
    """Ranks the candidates of the validation topics, those without judgments left out, and
    measures the rankings.
    """

    def __init__(self, settings: Validation, system: str, topics: Sequence[Query]) -> None:
        self.settings = settings
        self.system = system
        self.measures = parse_measures([settings.measure])
        qrels = load_qrels(settings.qrels)
        self.topics = [query for query in topics if query.qid in qrels]
        self.qrels = {query.qid: qrels[query.qid] for query in self.topics}
        if not self.topics:
            raise InputError(
                f'validation: none of the topics is judged in {settings.qrels}: check topics and '
                f'qrels'
            )
        self.texts: dict[str, str] = {}  # of all candidates
        self.ranked: Run = {}  # what was measured last
        self.candidates: Run = self._hits() if settings.run else self._whole_corpus()

    def _whole_corpus(self) -> Run:
        settings = self.settings
        if settings.corpus is None:
            raise InputError('validation: without a run the whole corpus is ranked: name it')
        corpus = open_corpus(
            settings.corpus, settings.corpus_format, settings.fields, keep_empty=True
        )
        self.texts = {passage.docid: passage.text for passage in corpus}
        ranking = Ranking(self.texts, reciprocal_scores(len(self.texts)))
        return {query.qid: ranking for query in self.topics}

    def _hits(self) -> Run:
        """The candidates of the topics in the validation's run."""
        candidates = read_candidates(self.settings, set(self.qrels), 'validation')
        for ranking in candidates.values():
            for docid, text in zip(ranking.docids, ranking.texts, strict=True):
                if text is not None:
                    self.texts[docid] = text
        return candidates

    def measure(self, task: Task, base: Checkpoint) -> float:
        """The measure's mean over the topics, for the task's present model.

        Leaves random states as they were.
        """
        device = str(next(task.ranker.parameters()).device)
        with tempfile.TemporaryDirectory(prefix='validation.') as folder, torch.random.fork_rng():
            write_checkpoint(Path(folder), task, base)
            self.ranked = self._rank(folder, device)
        evaluation = evaluate(by_rank(self.ranked), self.qrels, self.measures)
        return evaluation.means[self.settings.measure]

    def cutoff(self) -> dict[str, float]:
        """How many hits the model that was measured last should rerank (EPIC section 3); empty
        without a run.
        """
        if self.settings.run is None or not self.ranked:
            return {}
        measure = self.settings.measure
        depths = range(max(map(len, self.candidates.values())) + 1)
        values = {
            depth: evaluation.means[measure]
            for depth, evaluation in evaluate_depths(
                self.candidates, self.ranked, self.qrels, self.measures, depths
            )
        }
        # The smallest if several are equal.
        best = max(values, key=values.__getitem__)
        return {CUTOFF: best, AT_CUTOFF: values[best]}

    def _rank(self, model: str, device: str) -> Run:
        """The topics' candidates, as the model of this folder ranks them."""
        if systems()[self.system].reranker is None:
            return self._rank_by_vectors(model, device)
        reranker = open_reranker(model, device)
        return reranker.rank(self.topics, self.candidates, self.settings.depth)

    def _rank_by_vectors(self, model: str, device: str) -> Run:
        topic_texts = [query.text for query in self.topics]
        topic_encoder = query_encoder(model, device)
        queries = topic_encoder.encode_batch(topic_texts)
        passage_encoder = document_encoder(model, device, open_encoder=topic_encoder)
        passages = passage_encoder.embed(list(self.texts.values()))
        row_of = {docid: row for row, docid in enumerate(self.texts)}
        run: Run = {}
        for query, vector in zip(self.topics, queries, strict=True):
            docids = self.candidates.get(query.qid, NO_HITS).docids
            rows = [row_of[docid] for docid in docids]
            ranking = by_score(docids, (passages[rows] @ vector).tolist())
            run[query.qid] = ranking[: self.settings.depth]
        return run
