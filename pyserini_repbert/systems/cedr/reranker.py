"""Reranking with CEDR: documents of up to a few pages, read with the query and matched term by
term.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pyserini_repbert.errors import InputError
from pyserini_repbert.models.batching import length_batches, run_positions
from pyserini_repbert.models.checkpoints.checkpoint import AnyCheckpoint
from pyserini_repbert.models.precision import Precision
from pyserini_repbert.ranking import REASON_TERMS, Candidate, Ranking
from pyserini_repbert.rerank.base import ExplanationSettings, Progress, Scores
from pyserini_repbert.rerank.cross_encoder import TextReranker, each_pair, in_lists
from pyserini_repbert.systems.cedr.explaining import SimilarityMap
from pyserini_repbert.systems.cedr.layout import CedrLayout
from pyserini_repbert.systems.cedr.loading import load_ranker
from pyserini_repbert.systems.cedr.settings import NAME
from pyserini_repbert.trace import SILENT, Trace

MAP_DIGITS = 4  # of a similarity, as JSON shows it
EMPTY_SCORE = -1e6  # score of a document without wordpieces, below those that a model gives


class CedrReranker(TextReranker, recorded_as='CedrReranker'):
    """Scores are the model's own: any real number, comparable within one query only.

    In the paper, CEDR reranks the 150 best hits of BM25 on Robust04, and the 100 best of query
    likelihood on WebTrack; documents are cut to 800 wordpieces (CEDR section 3.1). Those too long
    for BERT's positions are read in parts. Pairs of all queries share batches, sorted by length. A
    score depends on its batch by rounding only; in DRMM, which counts similarities in bins,
    rounding may move one to the next bin.

    `MonoBertReranker` explains the parameters that are not here.

    Parameters
    ----------
    precision : of BERT; similarities and heads are always in float32
    max_length : wordpieces kept of a document; default: the checkpoint's limit, otherwise 800
    n_layers : run only BERT's first `n_layers` layers (CEDR section 3.2, Figure 2b); default: all
    """

    def __init__(
        self,
        model: AnyCheckpoint,
        device: str = 'cpu',
        precision: Precision | str = Precision.FLOAT32,
        max_length: int | None = None,
        n_layers: int | None = None,
        token_budget: int | None = None,
    ) -> None:
        super().__init__(model, device, precision, token_budget)
        self.ranker = load_ranker(self.checkpoint, n_layers, max_length).to(self.device)
        self.ranker.bert.to(self.dtype)
        self.layout = CedrLayout(self.ranker.bert.config, self.ranker.settings, self.tokenizer)
        self.text_limit = self.ranker.settings.max_doc_length
        self.n_layers = self.ranker.bert.config.num_hidden_layers  # BERT's layers that run

    def identity(self) -> Mapping[str, object]:
        return {
            **super().identity(),
            'max_length': self.ranker.settings.max_doc_length,
            'n_layers': self.n_layers,
        }

    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Ranking], on_progress: Progress = int
    ) -> Scores:
        """CEDR's scores, float32 (n,) a query; `EMPTY_SCORE` for a text without wordpieces.

        The log counts of an empty document in KNRM and DRMM are far from all others, and could rank
        it first.
        """
        tokens = self._inputs_of(queries, lists)
        texts = each_pair(queries, lists)
        pairs = [self.layout.cut(tokens[query], tokens[text]) for query, text in texts]
        limit = self.ranker.settings.max_doc_length
        self.work.candidates += len(pairs)
        self.work.inferences += len(pairs)
        self.work.truncated += sum(len(tokens[text]) > limit for _, text in texts)
        costs = [self.layout.cost(pair) for pair in pairs]
        self.work.tokens += sum(costs)

        def forward(batch: list[int]) -> Tensor:
            scores: Tensor = self.ranker(
                self.layout.collate([pairs[position] for position in batch], self.device)
            )
            return scores

        batches = length_batches(costs, self.token_budget, self.device)
        scores = run_positions(forward, batches, on_progress)
        scores[[not tokens[text] for _, text in texts]] = EMPTY_SCORE
        return in_lists(scores, lists)

    def explain(
        self, query: str, hits: Ranking, settings: ExplanationSettings, trace: Trace = SILENT
    ) -> dict[str, Any]:
        """The similarity maps of each hit.

        Parameters
        ----------
        query : its text
        hits : whose maps are shown
        settings : which layers are shown
        trace : gets the progress, in model inputs
        """
        passages = []
        for hit in hits:
            maps = self.similarity_maps(query, hit.text or '', settings.layers or [self.n_layers])
            layers = []
            for layer_map in maps:
                values = np.round(layer_map.values.astype(float), MAP_DIGITS).tolist()
                layers.append({'layer': layer_map.layer, 'values': values})
            passages.append(
                {
                    'docid': hit.docid,
                    'n_layers': self.n_layers,
                    'query_tokens': maps[0].query,
                    'passage_tokens': maps[0].passage,
                    'maps': layers,
                }
            )
        return {'system': NAME, 'passages': passages}

    def reason(self, query: str, hit: Candidate) -> str:
        """The most similar passage token of each query token, in the last layer."""
        if not all(self.tokenizer.ids([query, str(hit.text)])):
            return ''
        (last,) = self.similarity_maps(query, str(hit.text), [self.n_layers])
        best = [matches[0] for matches in last.best_matches(1)]
        pairs = sorted(zip(last.query, best, strict=True), key=lambda pair: -pair[1].similarity)
        return ', '.join(
            f'{word}~{match.token} {match.similarity:.2f}' for word, match in pairs[:REASON_TERMS]
        )

    def similarity_maps(
        self, query: str, passage: str, layers: Sequence[int] | None = None
    ) -> list[SimilarityMap]:
        """The similarity maps of a query and a passage, cut as the model cuts them; layer 0 is the
        embedding output; default: all layers.

        Raises InputError for a layer that the model lacks, and for a text without words.
        """
        if layers is None:
            layers = range(self.n_layers + 1)
        unknown = [layer for layer in layers if not 0 <= layer <= self.n_layers]
        if unknown:
            raise InputError(
                f'layer {unknown[0]} was asked for, expected 0 (embeddings) to {self.n_layers}'
            )
        pair = self.layout.cut(*self.tokenizer.ids([query, passage]))
        if not all(pair):
            raise InputError(
                f'the {"passage" if pair.query else "query"} has no words: there is nothing to '
                f'compare'
            )
        batch = self.layout.collate([pair], self.device)
        with torch.inference_mode():
            evidence = self.ranker.evidence(batch, similarity=True)
        values = evidence.similarity[0, :, : len(pair.query)].cpu().numpy()
        query_tokens, passage_tokens = (self.tokenizer.tokens(ids) for ids in pair)
        return [
            SimilarityMap(layer, query_tokens, passage_tokens, values[layer]) for layer in layers
        ]


def similarity_maps(
    reranker: CedrReranker, query: str, passage: str, layers: Sequence[int] | None = None
) -> list[SimilarityMap]:
    """How similar each wordpiece of a query is to each of a passage, layer by layer.

    Parameters
    ----------
    reranker : an opened CEDR
    query, passage : texts
    layers : 0 for the embedding output; default: all

    Raises InputError for a layer that the model lacks, and for a text without words.
    """
    return reranker.similarity_maps(query, passage, layers)
