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
from pyserini_repbert.ranking import Query
from pyserini_repbert.search.dense import RepBertSearcher

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
    """The float32 vectors that the map is learnt from: of n topics, r relevant passages, and m
    random ones.
    """

    def __init__(
        self, dense: RepBertSearcher, index: DenseBundle, topics: Sequence[Topic], seed: int
    ) -> None:
        vectors = np.stack([topic.vector for topic in topics])
        rows = [index.rows(list(topic.grades)) for topic in topics]
        rows = [rows_of_topic[rows_of_topic >= 0] for rows_of_topic in rows]
        chosen = np.sort(
            np.random.default_rng(seed).choice(len(index), min(RANDOM, len(index)), replace=False)
        )
        best = dense.of_vectors(vectors, HARD + max(map(len, rows)))
        others = [
            [d for d in hits.docids if d not in topic.grades]
            for hits, topic in zip(best, topics, strict=True)
        ]
        n_hard = min(HARD, *map(len, others))
        hard = [index.vectors(index.rows(docids[:n_hard])) for docids in others]
        self.queries = torch.from_numpy(vectors)  # (n, d)
        self.random = torch.from_numpy(index.vectors(chosen))  # (m, d)
        self.is_relevant = torch.from_numpy(
            np.stack([np.isin(chosen, relevant) for relevant in rows])
        )  # (n, m)
        self.hard = torch.from_numpy(
            np.stack(hard)
        )  # (n, `HARD`, d): each topic's best passages that are not relevant
        self.relevant = torch.from_numpy(index.vectors(np.concatenate(rows)))  # (r, d)
        self.topic_of = torch.from_numpy(
            np.repeat(np.arange(len(rows)), list(map(len, rows)))
        )  # (r,)
        self.scale = 1 / (
            TEMPERATURE * float((self.queries @ self.random.T).std(dim=1).mean())
        )  # of inner products


def learn_query_map(contrast: Contrast, places: Sequence[int]) -> NDArray[np.float32]:
    """The map A, float32 (d, d), symmetric, learnt from the topics at these places."""
    chosen = torch.tensor(list(places))
    queries = contrast.queries[chosen]
    hard = contrast.hard[chosen]
    is_relevant = contrast.is_relevant[chosen]
    new_place = torch.full((len(contrast.queries),), -1)
    new_place[chosen] = torch.arange(len(chosen))
    owners = new_place[contrast.topic_of]
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
        others = torch.cat([at_random, torch.einsum('td,thd->th', mapped, hard)], dim=1).logsumexp(
            dim=1
        )[owners]
        scores = (mapped[owners] * relevant).sum(dim=1)
        total = (
            share * (torch.logaddexp(others, scores) - scores)
        ).sum() + RIDGE * change.square().sum()
        total.backward()  # type: ignore[no-untyped-call]
        return total

    threads = torch.get_num_threads()
    torch.set_num_threads(
        1
    )  # hundreds of small products: threads would wait for each other longer than they compute
    try:
        optimizer.step(loss)  # type: ignore[no-untyped-call]
    finally:
        torch.set_num_threads(threads)
    result: NDArray[np.float32] = ((half + half.T) / 2).detach().numpy()
    return result
