"""Runs by the cosine of a bi-encoder's vectors: over a whole collection, or over a run's best hits, also with BM25."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from demo_runs import LEXICAL, Collection

from pyserini_repbert.data.runs import reciprocal_scores
from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
from pyserini_repbert.ranking import NO_HITS, Query, Ranking, Run
from pyserini_repbert.rerank.base import ordered

HITS = 1000
BELOW = 0.9  # a candidate that BM25 has not found counts this share of the score of BM25's last hit
SHARD = 4096  # passages; an encoding that is stopped loses no more than a shard


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


def reranked_by_cosine(first: Run, encoder: str, collection: Collection, lexical: float = 0.0) -> Run:
    """A BM25 run whose best `collection.depth` hits are reranked by the cosine of a bi-encoder's vectors.

    Parameters
    ----------
    lexical : weight of BM25 beside the cosine (`with_lexical`)
    """
    from pyserini_repbert.names.texts import open_texts
    from pyserini_repbert.names.topics import load_topics
    from pyserini_repbert.train.teachers import BiEncoderTeacher

    teacher, depth = BiEncoderTeacher(open_checkpoint(encoder)), collection.depth
    wanted = [docid for own in first.values() for docid in own.docids[:depth]]
    passages = open_texts(collection.corpus, None, wanted, fields=collection.fields)
    found: Run = {}
    for query in load_topics(collection.topics):
        hits = first.get(query.qid, NO_HITS)
        best = hits[:depth]
        texts = [text or '' for text in passages.texts(best.docids)]
        scores = teacher.scores(query.qid, query.text, best.docids, texts) if best else []
        by_cosine = ordered(Ranking(best.docids), np.asarray(scores))
        ranked = [*with_lexical(by_cosine, best, lexical).docids, *hits.docids[depth:]]
        found[query.qid] = Ranking(ranked, reciprocal_scores(len(ranked)))
    return found


def with_lexical(cosines: Ranking, bm25: Ranking, weight: float = LEXICAL) -> Ranking:
    """Candidates scored by the cosine plus `weight` times BM25's score, in units of BM25's best score for the query."""
    if not bm25:
        return cosines
    known, last = dict(zip(bm25.docids, bm25.scores, strict=True)), bm25.scores[-1]
    lexical = np.array([known.get(docid, BELOW * last) for docid in cosines.docids]) / bm25.scores[0]
    return ordered(cosines, np.asarray(cosines.scores) + weight * lexical)


def _normalised(vectors: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms == 0, 1, norms)
