"""A map of query vectors, learned from judgments: q' = q (I + A), A symmetric.

For each topic, the loss is the mean over its relevant passages of -log softmax of their inner
products among other passages' products, plus `RIDGE` |A|^2. Scores are divided by the standard
deviation of a query's scores over random passages, so the settings hold whatever the vectors'
length.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyserini_repbert.adapt.judged_topics import JudgedTopic
from pyserini_repbert.search.dense import VectorSearcher
from pyserini_repbert.search.document_rows import DocumentRows

RIDGE = 0.26
TEMPERATURE = 0.5  # in standard deviations of a query's scores
STEPS = 40  # of LBFGS, from A = 0
HARD = 100  # best other passages that a topic's relevant ones are told from
RANDOM = 1000  # random passages that they are told from


@dataclass(frozen=True)
class TrainingVectors:
    """The float32 vectors that a map is learned from.

    Attributes
    ----------
    queries : of n topics, (n, d)
    random : of random passages, (m, d)
    is_relevant : which of the random passages are relevant to a topic, bool (n, m)
    hard : of each topic's best passages that are not relevant, (n, at most `HARD`, d)
    relevant : of the relevant passages of all topics, (r, d)
    topic_of : the topic of each relevant passage, (r,)
    scale : of inner products
    """

    queries: Tensor
    random: Tensor
    is_relevant: Tensor
    hard: Tensor
    relevant: Tensor
    topic_of: Tensor
    scale: float


def read_training_vectors(
    dense: VectorSearcher, index: DocumentRows, topics: Sequence[JudgedTopic], seed: int
) -> TrainingVectors:
    """Read the vectors of the topics' relevant passages and of others from the index.

    Parameters
    ----------
    dense : finds the best passages of each topic
    index : what `dense` searches; of a relevant document, its best passage is read
    topics : with their vectors
    seed : draws the random passages
    """
    relevant_rows = [index.best_rows(topic.vector, list(topic.grades)) for topic in topics]
    n_relevant = [len(rows) for rows in relevant_rows]
    usable = index.usable_rows()
    n_random = min(RANDOM, len(usable))
    drawn = np.random.default_rng(seed).choice(len(usable), n_random, replace=False)
    random_rows = usable[np.sort(drawn)]
    in_random = [np.isin(random_rows, index.rows(list(topic.grades))) for topic in topics]

    queries = torch.from_numpy(np.stack([topic.vector for topic in topics]))
    random = torch.from_numpy(index.vectors(random_rows))
    deviation = float((queries @ random.T).std(dim=1).mean())
    return TrainingVectors(
        queries=queries,
        random=random,
        is_relevant=torch.from_numpy(np.stack(in_random)),
        hard=_read_hard_vectors(dense, index, topics, most_relevant=max(n_relevant)),
        relevant=torch.from_numpy(index.vectors(np.concatenate(relevant_rows))),
        topic_of=torch.from_numpy(np.repeat(np.arange(len(topics)), n_relevant)),
        scale=1 / (TEMPERATURE * deviation),
    )


def _read_hard_vectors(
    dense: VectorSearcher, index: DocumentRows, topics: Sequence[JudgedTopic], most_relevant: int
) -> Tensor:
    """The vectors of each topic's best passages that are not relevant: (n, at most `HARD`, d)."""
    queries = np.stack([topic.vector for topic in topics])
    rankings = dense.of_vectors(queries, HARD + most_relevant)
    not_relevant = []
    for topic, ranking in zip(topics, rankings, strict=True):
        not_relevant.append([docid for docid in ranking.docids if docid not in topic.grades])
    n_hard = min(HARD, *map(len, not_relevant))
    vectors = []
    for topic, docids in zip(topics, not_relevant, strict=True):
        rows = index.best_rows(topic.vector, docids[:n_hard])
        vectors.append(index.vectors(rows))
    return torch.from_numpy(np.stack(vectors))


def learn_query_map(vectors: TrainingVectors, positions: Sequence[int]) -> NDArray[np.float32]:
    """The map A, float32 (d, d), symmetric, learned from the topics at these positions."""
    objective = _Objective(vectors, positions)
    dimension = vectors.queries.shape[1]
    half = torch.zeros(dimension, dimension, requires_grad=True)
    optimizer = _UncompiledLBFGS([half], max_iter=STEPS, line_search_fn='strong_wolfe')

    def loss() -> Tensor:
        half.grad = None
        total = objective.loss(_symmetric(half))
        total.backward()  # type: ignore[no-untyped-call]
        return total

    threads = torch.get_num_threads()
    # Hundreds of small products: threads would wait for each other longer than they compute.
    torch.set_num_threads(1)
    try:
        optimizer.step(loss)  # type: ignore[no-untyped-call]
    finally:
        torch.set_num_threads(threads)
    result: NDArray[np.float32] = _symmetric(half).detach().numpy()
    return result


class _UncompiledLBFGS(torch.optim.LBFGS):
    """PyTorch's LBFGS without what keeps `torch.compile` away from it: to import that compiler
    takes two seconds, and nothing is compiled here.
    """

    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)


def _symmetric(half: Tensor) -> Tensor:
    return (half + half.T) / 2


class _Objective:
    """What a map of some of the topics minimises."""

    def __init__(self, vectors: TrainingVectors, positions: Sequence[int]) -> None:
        chosen = torch.tensor(list(positions))
        new_position = torch.full((len(vectors.queries),), -1)
        new_position[chosen] = torch.arange(len(chosen))
        topic_of = new_position[vectors.topic_of]
        self.queries = vectors.queries[chosen]
        self.random = vectors.random
        self.is_relevant = vectors.is_relevant[chosen]
        self.hard = vectors.hard[chosen]
        self.relevant = vectors.relevant[topic_of >= 0]
        self.topic_of = topic_of[topic_of >= 0]
        # Each topic counts the same, however many relevant passages it has.
        self.share = 1 / (torch.bincount(self.topic_of)[self.topic_of] * len(chosen))
        self.scale = vectors.scale

    def loss(self, query_map: Tensor) -> Tensor:
        """The loss of a map, (d, d), symmetric: a scalar."""
        mapped = (self.queries + self.queries @ query_map) * self.scale
        of_random = (mapped @ self.random.T).masked_fill(self.is_relevant, -torch.inf)
        of_hard = torch.einsum('td,thd->th', mapped, self.hard)
        others = torch.cat([of_random, of_hard], dim=1).logsumexp(dim=1)[self.topic_of]
        scores = (mapped[self.topic_of] * self.relevant).sum(dim=1)
        losses = torch.logaddexp(others, scores) - scores
        return (self.share * losses).sum() + RIDGE * query_map.square().sum()
