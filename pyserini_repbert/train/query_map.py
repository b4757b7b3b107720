"""A map of query vectors, learnt from judgments: q' = q (I + A), A symmetric.

For each topic: the mean over its relevant passages of -log softmax of their inner products among
those of other passages, plus `RIDGE` |A|^2. Scores are divided by the standard deviation of a
query's scores over random passages, so the settings hold whatever the vectors' length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.names.dense import RepBertSearcher
from pyserini_repbert.ranking import Query

RIDGE = 0.26
TEMPERATURE = 0.5  # in standard deviations of a query's scores
STEPS = 40  # of LBFGS, from A = 0
# passages that a topic's relevant ones are told from: its best others, and random ones
HARD = 100
RANDOM = 1000


class Topic(NamedTuple):
    """A judged topic: its vector, float32 (d,), and the grades of its relevant passages by
    docid.
    """

    query: Query
    vector: NDArray[np.float32]
    grades: Mapping[str, int]


class Contrast:
    """The float32 vectors that the map is learnt from.

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

    def __init__(
        self, dense: RepBertSearcher, index: DenseBundle, topics: Sequence[Topic], seed: int
    ) -> None:
        vectors = np.stack([topic.vector for topic in topics])
        relevant_rows = []
        for topic in topics:
            rows = index.rows(list(topic.grades))
            relevant_rows.append(rows[rows >= 0])
        n_relevant = [len(rows) for rows in relevant_rows]
        n_random = min(RANDOM, len(index))
        drawn = np.random.default_rng(seed).choice(len(index), n_random, replace=False)
        random_rows = np.sort(drawn)
        best = dense.of_vectors(vectors, HARD + max(n_relevant))
        others = []
        for hits, topic in zip(best, topics, strict=True):
            others.append([docid for docid in hits.docids if docid not in topic.grades])
        n_hard = min(HARD, *map(len, others))
        hard = [index.vectors(index.rows(docids[:n_hard])) for docids in others]
        in_random = [np.isin(random_rows, rows) for rows in relevant_rows]
        self.queries = torch.from_numpy(vectors)
        self.random = torch.from_numpy(index.vectors(random_rows))
        self.is_relevant = torch.from_numpy(np.stack(in_random))
        self.hard = torch.from_numpy(np.stack(hard))
        self.relevant = torch.from_numpy(index.vectors(np.concatenate(relevant_rows)))
        self.topic_of = torch.from_numpy(np.repeat(np.arange(len(topics)), n_relevant))
        deviation = float((self.queries @ self.random.T).std(dim=1).mean())
        self.scale = 1 / (TEMPERATURE * deviation)


def learn_query_map(contrast: Contrast, positions: Sequence[int]) -> NDArray[np.float32]:
    """The map A, float32 (d, d), symmetric, learnt from the topics at these positions."""
    chosen = torch.tensor(list(positions))
    queries = contrast.queries[chosen]
    hard = contrast.hard[chosen]
    is_relevant = contrast.is_relevant[chosen]
    new_position = torch.full((len(contrast.queries),), -1)
    new_position[chosen] = torch.arange(len(chosen))
    owners = new_position[contrast.topic_of]
    relevant = contrast.relevant[owners >= 0]
    owners = owners[owners >= 0]
    share = 1 / (torch.bincount(owners)[owners] * len(chosen))
    half = torch.zeros(queries.shape[1], queries.shape[1], requires_grad=True)
    optimizer = torch.optim.LBFGS([half], max_iter=STEPS, line_search_fn='strong_wolfe')

    def loss() -> Tensor:
        optimizer.zero_grad()
        change = (half + half.T) / 2
        mapped = (queries + queries @ change) * contrast.scale
        at_random = (mapped @ contrast.random.T).masked_fill(is_relevant, -torch.inf)
        at_hard = torch.einsum('td,thd->th', mapped, hard)
        others = torch.cat([at_random, at_hard], dim=1).logsumexp(dim=1)[owners]
        scores = (mapped[owners] * relevant).sum(dim=1)
        losses = torch.logaddexp(others, scores) - scores
        total = (share * losses).sum() + RIDGE * change.square().sum()
        total.backward()  # type: ignore[no-untyped-call]
        return total

    threads = torch.get_num_threads()
    # hundreds of small products: threads would wait for each other longer than they compute
    torch.set_num_threads(1)
    try:
        optimizer.step(loss)  # type: ignore[no-untyped-call]
    finally:
        torch.set_num_threads(threads)
    result: NDArray[np.float32] = ((half + half.T) / 2).detach().numpy()
    return result
