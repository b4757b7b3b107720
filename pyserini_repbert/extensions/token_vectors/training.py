"""Training late interaction: in-batch and hard negatives, and the scores of a teacher.

Omar Khattab and Matei Zaharia: ColBERT, 2020, section 3; Keshav Santhanam et al.: ColBERTv2, 2022,
section 3.2. https://arxiv.org/abs/2004.12832 and https://arxiv.org/abs/2112.01488
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional

from pyserini_repbert.extensions.token_vectors.folder import NAME
from pyserini_repbert.extensions.token_vectors.network import TokenBert
from pyserini_repbert.extensions.token_vectors.trained import (
    DIMENSION,
    MAX_PASSAGE_TOKENS,
    MAX_QUERY_TOKENS,
    layers_of,
    punctuation_ids,
)
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.systems.sentence_transformers.network import Dense
from pyserini_repbert.tasks.bi_encoder import BiEncoderTask, in_batch_labels
from pyserini_repbert.tasks.instances import Instance
from pyserini_repbert.tasks.losses import in_batch_contrastive
from pyserini_repbert.tasks.task import Batch, limit, outputs

# Instances from whose passages the projection begins.
FIRST_INSTANCES = 32
_SPECIAL_TOKENS = 2
_PROJECTION = 'layers.0.linear.weight'


class MultiVectorTask(BiEncoderTask):
    """Each query's relevant passage against all other passages of the batch, by MaxSim.

    With groups, the scores of a query's own candidates also follow the teacher's (ColBERTv2
    section 3.2).
    """

    known = ('max_query_length', 'max_doc_length', 'dimension')
    query_type = 0
    passage_type = 0

    def new_ranker(self, sizes: BertConfig) -> TokenBert:
        most = sizes.max_position_embeddings - _SPECIAL_TOKENS
        self.max_query = limit(self.recipe, 'max_query_length', MAX_QUERY_TOKENS, most)
        self.max_passage = limit(self.recipe, 'max_doc_length', MAX_PASSAGE_TOKENS, most)
        self.dimension = limit(self.recipe, 'dimension', DIMENSION, sizes.hidden_size)
        self.skipped = torch.tensor(punctuation_ids(self.tokenizer), dtype=torch.int64)
        self.is_projection_new = True
        return TokenBert(sizes, layers_of(sizes.hidden_size, self.dimension))

    def begun(self, base: Mapping[str, Tensor]) -> None:
        adapter = self.recipe.adapter
        goes_on = adapter is not None and adapter.start is not None
        known = base.get(_PROJECTION)
        fits = known is not None and len(known) == self.dimension
        self.is_projection_new = not fits and not goes_on

    @torch.no_grad()
    def before_first_step(self, stream: Iterable[Instance]) -> None:
        """Begin with the projection that keeps most of the inner products of the base's tokens.

        Its rows are the principal directions of the scored tokens of the first passages, scaled
        to length 1.
        """
        if not self.is_projection_new:
            return
        batch = self.collate(list(itertools.islice(stream, FIRST_INSTANCES)))
        ranker = cast(TokenBert, self.ranker)
        ranker.eval()
        hidden = outputs(ranker.bert, batch, 'passage_')
        ranker.train()
        tokens = functional.normalize(hidden[self._scored_passages(batch)].float(), dim=1)
        # In ascending order of their eigenvalues.
        _, directions = torch.linalg.eigh(tokens.T @ tokens)
        projection = cast(Dense, ranker.layers[0]).linear
        projection.weight.copy_(directions.flip(1)[:, : self.dimension].T)

    def ranking(self) -> dict[str, Any]:
        return {
            'system': NAME,
            'max_query_length': self.max_query,
            'max_doc_length': self.max_passage,
            'dimension': self.dimension,
        }

    def _scored_passages(self, batch: Batch) -> Tensor:
        """The tokens of passages that are scored: bool (passages, length)."""
        ids = batch['passage_input_ids']
        punctuation = torch.isin(ids, self.skipped.to(ids.device))
        return _attended(batch, 'passage_') & ~punctuation

    def forward(self, batch: Batch) -> Tensor:
        """The in-batch loss of judged queries; plus the teacher's loss, for groups."""
        vectors = cast(TokenBert, self.ranker).padded_vectors
        queries = outputs(vectors, batch, 'query_')
        passages = outputs(vectors, batch, 'passage_')
        rows = batch['rows']
        with torch.autocast(queries.device.type, enabled=False):
            scores = maxsim(
                queries.float(),
                passages.float(),
                scored_queries=_attended(batch, 'query_'),
                scored_passages=self._scored_passages(batch),
            )
            every_row = torch.arange(len(queries), device=rows.device)
            judged = batch.get('judged')
            of_rows = every_row if judged is None else judged.nonzero().squeeze(1)
            # The first passage of a row is its relevant one.
            firsts = torch.searchsorted(rows, every_row)
            labels = in_batch_labels(batch['passage_keys'], batch['relevant_keys'][of_rows])
            loss = in_batch_contrastive(scores[of_rows], firsts[of_rows], labels)
            if judged is not None:
                own_scores = scores[rows, torch.arange(len(rows), device=rows.device)]
                loss = self.with_teacher(loss, own_scores, batch)
        return loss


def _attended(batch: Batch, prefix: str) -> Tensor:
    """The tokens that are not padding, bool (n, length)."""
    ids = batch[f'{prefix}input_ids']
    mask: Tensor = batch.get(f'{prefix}attention_mask', torch.ones_like(ids))
    return mask.bool()


def maxsim(
    queries: Tensor, passages: Tensor, *, scored_queries: Tensor, scored_passages: Tensor
) -> Tensor:
    """The score of each query for each passage, float32 (queries, passages) (ColBERT eq. 3).

    Parameters
    ----------
    queries, passages : vectors of tokens, float32 (n, length, d)
    scored_queries, scored_passages : the tokens that count, bool (n, length); a passage has one
        or more
    """
    products = torch.einsum('qid,pjd->qpij', queries, passages)
    matches = products.masked_fill(~scored_passages[None, :, None], -torch.inf).amax(dim=3)
    return matches.masked_fill(~scored_queries[:, None], 0.0).sum(dim=2)
