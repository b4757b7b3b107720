"""Runs by the cosine of a bi-encoder's vectors: of a whole collection, and of a run's best hits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from demo_runs import Collection

from pyserini_repbert.formats.runs import reciprocal_scores
from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
from pyserini_repbert.ranking import Query, Ranking, Run

HITS = 1000
SHARD = 4096  # passages: an encoding that is stopped loses no more


def cosine_run(folder: Path, encoder: str, topics: Sequence[Query], hits: int = HITS) -> Run:
    """Rankings by the cosine of query and passage vectors, ties by docid; a zero vector's cosine is 0."""
    from pyserini_repbert.encode import RepBertQueryEncoder
    from pyserini_repbert.index.dense import DenseBundle

    bundle = DenseBundle(folder)
    passages = _normalised(np.concatenate([np.asarray(block, np.float32) for _, block in bundle.blocks(SHARD)]))
    queries = _normalised(RepBertQueryEncoder(encoder).encode_batch([query.text for query in topics]))
    docids = [bundle.docid(row) for row in range(len(bundle))]
    places = np.argsort(np.argsort(np.array(docids)))
    run = {}
    for query, vector in zip(topics, queries, strict=True):
        scores = passages @ vector
        best = np.lexsort((places, -scores))[:hits]
        run[query.qid] = Ranking([docids[row] for row in best], scores[best].tolist())
    return run


def reranked_by_cosine(first: Run, encoder: str, collection: Collection) -> Run:
    """The best hits of a run by the cosine of a bi-encoder's vectors; the rest stays below."""
    from pyserini_repbert.names.texts import open_texts
    from pyserini_repbert.names.topics import load_topics
    from pyserini_repbert.train.teachers import BiEncoderTeacher

    teacher, depth = BiEncoderTeacher(open_checkpoint(encoder)), collection.depth
    wanted = [docid for own in first.values() for docid in own.docids[:depth]]
    passages = open_texts(collection.corpus, None, wanted, fields=collection.fields)
    found: Run = {}
    for query in load_topics(collection.topics):
        docids = first[query.qid].docids if query.qid in first else ()
        best = docids[:depth]
        texts = [text or '' for text in passages.texts(best)]
        scores = teacher.scores(query.qid, query.text, best, texts) if best else []
        order = sorted(range(len(best)), key=lambda place: -scores[place])
        ranked = [*(best[place] for place in order), *docids[depth:]]
        found[query.qid] = Ranking(ranked, reciprocal_scores(len(ranked)))
    return found


def _normalised(vectors: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms == 0, 1, norms)
