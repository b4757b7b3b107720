"""Reranking by late interaction: for each token of the query, its best match in the passage.

Use it as a second stage, on hundreds of candidates: query and passage are encoded apart, each
passage once for all queries of a run. ColBERT section 3.3, equation 3.
https://arxiv.org/abs/2004.12832
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyserini_repbert.extensions.token_vectors.encoder import MultiVectorTextEncoder, TokenVectors
from pyserini_repbert.models.checkpoints.checkpoint import AnyCheckpoint
from pyserini_repbert.models.precision import Precision
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.record import OWN_ENGINE
from pyserini_repbert.rerank.base import (
    ExplanationSettings,
    Progress,
    Reranker,
    Scores,
    Work,
    rounded,
)
from pyserini_repbert.trace import SILENT, Trace

# The score of a passage without a token that is scored, as in sentence-transformers.
NO_TOKENS = -1e9
# Candidates whose queries are encoded together: bounds the vectors in memory.
GROUP = 4096


def best_matches(query: Tensor, passages: TokenVectors) -> Tensor:
    """The inner product of each query token with its best match in each passage.

    Parameters
    ----------
    query : vectors of its tokens, float32 (q, d)
    passages : n of them

    Returns float32 (n, q), -inf for a passage without tokens.
    """
    products = passages.vectors @ query.T
    lengths = torch.from_numpy(passages.lengths).to(products.device)
    return torch.segment_reduce(products, 'max', lengths=lengths, axis=0)


class MultiVectorReranker(Reranker, recorded_as='MultiVectorReranker'):
    """Scores are sums over the query's tokens of the best match in the passage (ColBERT eq. 3).

    They are means where the folder says 'meanmaxsim'. Of its work, an inference is a passage that
    was encoded.

    Parameters
    ----------
    model : a folder of a `MultiVectorEncoder`, a checkpoint that `train` made, or an encoder,
        which has its own device, precision and length
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    precision : 'float32', 'bfloat16', 'float16', or 'auto'
    max_length : tokens kept of a passage, special tokens and prompt included; default: as the
        folder says
    token_budget : padded tokens in a batch; default: by device

    Attributes
    ----------
    engine : what runs the model, as records have it
    """

    def __init__(
        self,
        model: AnyCheckpoint | MultiVectorTextEncoder,
        device: str = 'cpu',
        precision: Precision | str = Precision.FLOAT32,
        max_length: int | None = None,
        token_budget: int | None = None,
    ) -> None:
        if not isinstance(model, MultiVectorTextEncoder):
            model = MultiVectorTextEncoder(model, device, precision, max_length, token_budget)
        self.encoder = model
        self.name = model.name
        self.precision = str(model.precision)
        self.engine = model.engine
        if self.engine == OWN_ENGINE:
            self.work = Work()

    @property
    def weights_sha256(self) -> str:
        """Checksum over the files of the folder."""
        return self.encoder.weights_sha256

    def identity(self) -> Mapping[str, object]:
        return {
            **super().identity(),
            'dtype': self.precision,
            'max_tokens': self.encoder.limit,
            'engine': self.engine,
        }

    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Ranking], on_progress: Progress = int
    ) -> Scores:
        """The score of each candidate, float64 (n,) a query."""
        scores: Scores = [np.empty(len(ranking), np.float64) for ranking in lists]
        for numbers in _groups(lists):
            self._score_group(numbers, queries, lists, scores, on_progress)
        return scores

    def _score_group(
        self,
        numbers: Sequence[int],
        queries: Sequence[str],
        lists: Sequence[Ranking],
        scores: Scores,
        on_progress: Progress,
    ) -> None:
        """Fill in the scores of some queries. Each passage is encoded once for all of them.

        Parameters
        ----------
        numbers : of the queries
        queries, lists, on_progress : as in `score_lists`
        scores : of all queries
        """
        encoded = self.encoder.encode_queries([queries[number] for number in numbers])
        vectors_of = dict(zip(numbers, encoded, strict=True))
        candidates_of = _candidates_by_text(numbers, lists)
        texts = list(candidates_of)

        def score(positions: Sequence[int], passages: TokenVectors) -> None:
            passages_of: dict[int, list[int]] = defaultdict(list)
            rows_of: dict[int, list[int]] = defaultdict(list)
            for passage, position in enumerate(positions):
                for number, row in candidates_of[texts[position]]:
                    passages_of[number].append(passage)
                    rows_of[number].append(row)
            for number, rows in rows_of.items():
                chosen = passages.select(passages_of[number])
                scores[number][rows] = self._scores(vectors_of[number], chosen)
                on_progress(len(rows))

        spent = self.encoder.encode_passages(texts, score)
        if self.work is not None:
            self.work.candidates += sum(map(len, candidates_of.values()))
            self.work.inferences += len(texts)
            self.work.tokens += spent.tokens or 0
            self.work.truncated += spent.truncated or 0

    def _scores(self, query: TokenVectors, passages: TokenVectors) -> NDArray[np.float64]:
        """The scores of passages, float64 (n,)."""
        matches = best_matches(query.vectors, passages).double().cpu().numpy()
        scores: NDArray[np.float64] = matches.sum(axis=1)
        scores[passages.lengths == 0] = NO_TOKENS
        if self.encoder.is_mean:
            scores /= max(1, len(query.vectors))
        return scores

    def explain(
        self, query: str, hits: Ranking, settings: ExplanationSettings, trace: Trace = SILENT
    ) -> dict[str, Any]:
        """Which token of a hit each token of the query found, as tables of values of JSON.

        For each token of the query, a row has what it 'adds' to the score, its 'share' of the
        score, its match in the passage ('match'), and the match's 'position' in the model's input.
        The values of 'adds' sum to the score, the shares to 1. `query`, `hits`, `settings` and
        `trace` are as in `Reranker.explain`.
        """
        (asked,) = self.encoder.encode_queries([query])
        tables: dict[int, dict[str, Any]] = {}
        scores = np.empty(len(hits), np.float64)

        def explain_batch(positions: Sequence[int], passages: TokenVectors) -> None:
            for row, position in enumerate(positions):
                passage = passages.select([row])
                scores[position] = self._scores(asked, passage)[0]
                tables[position] = {
                    'docid': hits.docids[position],
                    'title': f'score {scores[position]:.4f}',
                    'rows': self._matches(asked, passage, float(scores[position])),
                }
            trace.advance(len(positions))

        self.encoder.encode_passages([hit.text or '' for hit in hits], explain_batch)
        return {
            'system': 'own',
            'docids': list(hits.docids),
            'scores': rounded(scores),
            'inferences': len(hits),
            'tables': [tables[position] for position in range(len(hits))],
        }

    def _matches(
        self, query: TokenVectors, passage: TokenVectors, score: float
    ) -> list[dict[str, Any]]:
        """A row for each token of the query; none for a passage without tokens."""
        if not len(passage.vectors):
            return []
        products = (query.vectors @ passage.vectors.T).double().cpu().numpy()
        best = products.argmax(axis=1)
        added = products.max(axis=1)
        if self.encoder.is_mean:
            added /= len(added)
        tokens = self._names(query)
        matches = self._names(passage)
        rows = []
        for token, value, found in zip(tokens, added.tolist(), best.tolist(), strict=True):
            rows.append(
                {
                    'token': token,
                    'adds': round(value, 6),
                    'share': round(value / score, 4) if score else 0.0,
                    'match': matches[found],
                    'position': int(passage.positions[found]),
                }
            )
        return rows

    def _names(self, vectors: TokenVectors) -> list[str]:
        """The names of tokens; '#3' for the fourth vector, where vectors were joined."""
        if vectors.ids is None:
            return [f'#{position}' for position in vectors.positions]
        return self.encoder.token_names(vectors.ids.tolist())


def _candidates_by_text(
    numbers: Sequence[int], lists: Sequence[Ranking]
) -> dict[str, list[tuple[int, int]]]:
    """The lists and rows in which each text comes, of the lists of some queries."""
    candidates_of: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number in numbers:
        for row, candidate in enumerate(lists[number]):
            candidates_of[candidate.text or ''].append((number, row))
    return candidates_of


def _groups(lists: Sequence[Ranking]) -> Iterator[list[int]]:
    """The numbers of lists, so many together that they have at most `GROUP` candidates."""
    group: list[int] = []
    n_candidates = 0
    for number, ranking in enumerate(lists):
        if group and n_candidates + len(ranking) > GROUP:
            yield group
            group = []
            n_candidates = 0
        group.append(number)
        n_candidates += len(ranking)
    if group:
        yield group
