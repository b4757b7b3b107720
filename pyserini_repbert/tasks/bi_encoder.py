"""Tasks that encode queries and passages apart: each passage of a batch counts for all queries.

Labels say which passages of a batch are relevant to which of its queries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor

from pyserini_repbert.tasks.instances import Instance, InstanceSource
from pyserini_repbert.tasks.task import Batch, Task, padded


class BiEncoderTask(Task):
    """Batches of queries, of passages, and of the docids by which labels are found.

    Attributes
    ----------
    max_query, max_passage : wordpieces kept, special tokens not counted; set by `new_ranker`
    query_type, passage_type : token types
    """

    negatives_from_batch = True
    max_query: int
    max_passage: int
    query_type: int
    passage_type: int

    def collate(self, instances: Sequence[Instance]) -> Batch:
        """Queries, passages, and the docids by which labels are found.

        The batch has the tensors of `padded`, with the prefixes `query_` and `passage_`, and these:

        - `rows`, int64 (n,): the row of each passage's query
        - `passage_keys`, int64 (n,): hashes of the docids
        - `relevant_keys`, int64 (queries, m): hashes of the docids that are relevant to a query,
          padded with -1
        - for groups, the tensors of `of_teacher`
        """
        queries: list[str] = []
        passages: list[str] = []
        rows: list[int] = []
        keys: list[int] = []
        relevant_keys: list[list[int]] = []
        for row, instance in enumerate(instances):
            source = self.sources[instance.source]
            queries.append(source.query(instance.qid))
            passages += source.texts(instance.docids)
            rows += [row] * len(instance.docids)
            keys += [_key(source, docid) for docid in instance.docids]
            relevant: list[str] = []
            if instance.judged:
                relevant = [instance.docids[0], *source.relevant(instance.qid)]
            relevant_keys.append([_key(source, docid) for docid in dict.fromkeys(relevant)])
        most = max(1, *map(len, relevant_keys))
        for keys_of_query in relevant_keys:
            keys_of_query += [-1] * (most - len(keys_of_query))
        query_inputs = self.tokenizer.single(queries, self.max_query, self.query_type)
        passage_inputs = self.tokenizer.single(passages, self.max_passage, self.passage_type)
        batch = {
            **padded(query_inputs, self.tokenizer.pad, 'query_'),
            **padded(passage_inputs, self.tokenizer.pad, 'passage_'),
            'rows': torch.tensor(rows),
            'passage_keys': torch.tensor(keys),
            'relevant_keys': torch.tensor(relevant_keys),
        }
        if self.recipe.training.group:
            batch |= self.of_teacher(instances)
        return batch


def _key(source: InstanceSource, docid: str) -> int:
    """A hash of a passage's corpus and docid for int64 tensors: from 0 to 2^63 - 1."""
    text = f'{source.space}\n{docid}'.encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), 'little') >> 1


def in_batch_labels(passage_keys: Tensor, relevant_keys: Tensor) -> Tensor:
    """Which passages are relevant to each row: bool (rows, passages).

    `passage_keys` are int64 (passages,), `relevant_keys` int64 (rows, m).
    """
    return (passage_keys[None, :, None] == relevant_keys[:, None, :]).any(dim=2)
