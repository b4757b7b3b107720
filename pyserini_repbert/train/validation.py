"""Validation during training: the model is written as a checkpoint, opened as a user would open it, and ranks."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from pyserini_repbert.data.runs import iter_run, reciprocal_scores
from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import evaluate, parse_measures
from pyserini_repbert.evaluate.studies.depths import Cutoff, tune_cutoff
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint, open_checkpoint
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.names.texts import open_texts
from pyserini_repbert.names.topics import load_qrels
from pyserini_repbert.ranking import NO_HITS, Candidate, Query, Ranking, Run
from pyserini_repbert.rerank import CedrReranker, DuoBertReranker, EpicReranker, MonoBertReranker, Reranker
from pyserini_repbert.train.recipe import Adapter, System, Validation
from pyserini_repbert.train.saving import write_checkpoint
from pyserini_repbert.train.tasks.base import Task

Scores = Sequence[NDArray[np.floating]]
_RERANKERS = {
    System.MONOBERT: MonoBertReranker,
    System.DUOBERT: DuoBertReranker,
    System.EPIC: EpicReranker,
    System.CEDR: CedrReranker,
}


class Validator:
    """Ranks the candidates of the validation topics, and measures the rankings.

    Parameters
    ----------
    settings : from the recipe
    system : what is trained
    topics : the validation topics; those without judgments are left out

    Raises
    ------
    InputError
        where no topic is judged or none has hits, a hit is not in the corpus, or there is neither run nor corpus
    """

    def __init__(self, settings: Validation, system: System, topics: Sequence[Query]) -> None:
        self.settings, self.system = settings, system
        self.measures = parse_measures([settings.measure])
        qrels = load_qrels(settings.qrels)
        self.topics = [query for query in topics if query.qid in qrels]
        self.qrels = {query.qid: qrels[query.qid] for query in self.topics}
        if not self.topics:
            raise InputError(f'validation: none of the topics is judged in {settings.qrels}: check topics and qrels')
        self.shared = NO_HITS
        self.ranked: Run = {}
        self.lists = self._all_passages() if settings.run is None else self._hits(settings.run)

    def _all_passages(self) -> list[Ranking]:
        settings = self.settings
        if settings.corpus is None:
            raise InputError('validation: without a run the whole corpus is ranked: name it')
        corpus = open_corpus(settings.corpus, settings.corpus_format, settings.fields, keep_empty=True)
        self.shared = Ranking.of(Candidate(passage.docid, 0.0, passage.text) for passage in corpus)
        return [self.shared] * len(self.topics)

    def _hits(self, run: str) -> list[Ranking]:
        hits = {qid: ranked.docids for qid, ranked in iter_run(run, self.settings.depth) if qid in self.qrels}
        if not hits:
            raise InputError(f'validation: {run} has hits for none of the topics: check run and topics')
        wanted = [docid for docids in hits.values() for docid in docids]
        own = self.settings
        passages = open_texts(own.corpus, own.index, wanted, own.corpus_format, own.fields)
        found = []
        for query in self.topics:
            docids = hits.get(query.qid, ())
            texts = passages.texts(docids)
            for docid, text in zip(docids, texts, strict=True):
                if text is None:
                    raise InputError(f"validation: passage '{docid}' of {run} is not in the corpus: check both")
            found.append(Ranking(docids, [0.0] * len(docids), texts))
        return found

    def measure(self, task: Task, base: Checkpoint, adapter: Adapter | None) -> float:
        """The measure's mean over the topics, for the task's model as it is now. Leaves random states as they were.

        Raises InputError for scores that are not finite.
        """
        device = str(next(task.ranker.parameters()).device)
        with tempfile.TemporaryDirectory(prefix='validation.') as folder, torch.random.fork_rng():
            write_checkpoint(Path(folder), task, base, adapter)
            scores = self._scores(open_checkpoint(folder), device)
        self.ranked = {}
        for query, candidates, own in zip(self.topics, self.lists, scores, strict=True):
            docids = np.asarray(candidates.docids)
            keys = -np.asarray(own, dtype=np.float64)
            if not np.isfinite(keys).all():
                raise InputError('validation: the model gives scores that are not finite: give a smaller learning rate')
            is_searcher = self.system is System.REPBERT  # a reranker's ties keep the first stage's order
            order = np.lexsort((docids, keys)) if is_searcher else np.argsort(keys, kind='stable')
            order = order[: self.settings.depth]
            self.ranked[query.qid] = Ranking(docids[order].tolist(), reciprocal_scores(len(order)))
        return evaluate(self.ranked, self.qrels, self.measures).means[self.settings.measure]

    def cutoff(self) -> Cutoff | None:
        """How many hits the model that was measured last should rerank (EPIC section 3); None without a run."""
        if self.settings.run is None or not self.ranked:
            return None
        first: Run = {}
        for query, candidates in zip(self.topics, self.lists, strict=True):
            first[query.qid] = Ranking(candidates.docids, reciprocal_scores(len(candidates)))
        deepest = max(map(len, self.lists))
        return tune_cutoff(first, self.ranked, self.qrels, self.measures[0], range(deepest + 1))

    def _scores(self, model: Checkpoint, device: str) -> Scores:
        queries = [query.text for query in self.topics]
        if self.system is System.REPBERT:
            return self._inner_products(model, device, queries)
        reranker: Reranker = _RERANKERS[self.system](model, device)
        return reranker.score_lists(queries, self.lists)

    def _inner_products(self, model: Checkpoint, device: str, queries: list[str]) -> Scores:
        vectors = RepBertQueryEncoder(model, device).encode_batch(queries)
        encoder = RepBertDocumentEncoder(model, device)
        if self.shared:
            passages = encoder.embed([text or '' for text in self.shared.texts])
            return list(vectors @ passages.T)
        texts = {candidate.docid: candidate.text or '' for own in self.lists for candidate in own}
        rows = {docid: row for row, docid in enumerate(texts)}
        passages = encoder.embed(list(texts.values()))
        found = []
        for vector, candidates in zip(vectors, self.lists, strict=True):
            found.append(passages[[rows[docid] for docid in candidates.docids]] @ vector)
        return found
