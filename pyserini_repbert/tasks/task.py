"""The base of all tasks: a model to train, its batches of tensors, and its loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from pyserini_repbert.errors import InputError
from pyserini_repbert.models.batching import Forward, collate
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.tokenizer import ModelInputs, TokenSequence, WordPieceTokenizer
from pyserini_repbert.tasks.instances import Instance, InstanceSource
from pyserini_repbert.tasks.losses import (
    listwise_divergence,
    localized_contrastive,
    pair_loss,
)
from pyserini_repbert.tasks.recipe import Recipe

Batch = dict[str, Any]  # tensors by name; of CEDR also lists of such dictionaries
GROUP = 8  # sequences of like length that a CPU runs at once


class Task(nn.Module, ABC):
    """The module that the trainer runs: `forward` gives the loss of a batch that `collate` made."""

    known: tuple[str, ...]  # keys that the recipe's `ranking` may have
    # whether a batch may have no gradient for some weights, which several processes have to know
    leaves_weights_unused = False
    # whether its instances have queries
    reads_queries = True
    # whether the other passages of a batch are a query's negatives
    negatives_from_batch = False
    inputs_per_pair = 1  # how many inputs, as `batch_size` counts them, a pair of passages makes
    # prefixes of body weights that are trained in full beside an adapter
    trained_in_body: tuple[str, ...] = ()

    def __init__(
        self,
        recipe: Recipe,
        tokenizer: WordPieceTokenizer,
        sources: Sequence[InstanceSource],
        config: Mapping[str, Any],
    ) -> None:
        super().__init__()
        self.recipe = recipe
        self.tokenizer = tokenizer
        self.sources = list(sources)
        for key in recipe.ranking:
            if key not in self.known:
                expected = ', '.join(self.known)
                raise InputError(
                    f"recipe '{recipe.name}': ranking.{key} is unknown: expected one of {expected}"
                )
        self.ranker = self.new_ranker(BertConfig.from_dict(config))

    @abstractmethod
    def new_ranker(self, sizes: BertConfig) -> nn.Module:
        """The model with new weights; also reads the recipe's settings of its inputs."""

    @classmethod
    def body_config(cls, values: Mapping[str, Any], recipe: Recipe) -> dict[str, Any]:
        """The config.json of the model, from its base's config.json."""
        return dict(values)

    @property
    def inputs_per_instance(self) -> int:
        """How many inputs, as `batch_size` counts them, an instance makes; a group counts as a
        whole.
        """
        return 1 if self.recipe.training.group else self.inputs_per_pair

    @abstractmethod
    def collate(self, instances: Sequence[Any]) -> Batch:
        """The tensors of a batch of instances."""

    @abstractmethod
    def forward(self, batch: Batch) -> Tensor:
        """The loss of a batch: a float32 scalar."""

    @abstractmethod
    def ranking(self) -> dict[str, Any]:
        """The `ranking` object for config.json."""

    def begun(self, base: Mapping[str, Tensor]) -> None:
        """Called with the base's weights by name, after the model has copied them and before it
        gets an adapter.
        """

    def before_first_step(self, stream: Iterable[Any]) -> None:
        """Called with the stream of instances, whose first ones training gets too; not where
        training is resumed.
        """

    def notes(self) -> list[str]:
        """What the model card says beside the measures."""
        return []

    def finished(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """The weights to save, from those in training."""
        return tensors

    def of_teacher(self, groups: Sequence[Instance]) -> Batch:
        """The tensors that `with_teacher` reads.

        `present` bool (groups, candidates): where a group has a candidate; `judged` bool (groups,):
        whether the first one is relevant; with a teacher, `taught` float32 (groups, candidates):
        its scores as logits, 0 where a group has no candidate.
        """
        sizes = torch.tensor([len(group.docids) for group in groups])
        present = torch.arange(int(sizes.max())) < sizes[:, None]
        batch = {'present': present, 'judged': torch.tensor([group.judged for group in groups])}
        if self.recipe.teacher is not None:
            taught: list[float] = []
            for group in groups:
                taught += self.sources[group.source].taught(group.qid, group.docids)
            batch['taught'] = torch.zeros(present.shape).masked_scatter(
                present, torch.tensor(taught)
            )
        return batch

    def with_teacher(self, loss: Tensor, scores: Tensor, batch: Batch) -> Tensor:
        """`loss`, of the judged groups, and the teacher's over all groups, weighted; `loss` without
        a teacher.

        `scores` (passages,) are of the candidates of all groups, one group after the other.
        """
        teacher = self.recipe.teacher
        present = batch['present']
        if teacher is None:
            return loss
        groups = scores.new_zeros(present.shape).masked_scatter(present, scores)
        return teacher.judged_weight * loss + teacher.weight * listwise_divergence(
            groups, batch['taught'], present
        )

    def queries_and_passages(
        self, instances: Sequence[Instance]
    ) -> tuple[list[list[int]], list[list[int]]]:
        """Wordpieces of the instances' queries, and of their passages, the passages of one instance
        after the other.
        """
        queries = []
        texts: list[str] = []
        for instance in instances:
            source = self.sources[instance.source]
            queries.append(source.query(instance.qid))
            texts += source.texts(instance.docids)
        ids = self.tokenizer.ids([*queries, *texts])
        return ids[: len(queries)], ids[len(queries) :]


class GroupTask(Task):
    """A task whose instances may be groups of candidates of one query."""

    def collate(self, instances: Sequence[Instance]) -> Batch:
        """The tensors that `scores` reads: for the relevant passages, then for the others; or
        for groups.
        """
        queries, passages = self.queries_and_passages(instances)
        if not self.recipe.training.group:
            return self.inputs_of(
                queries, [*passages[::2], *passages[1::2]], [*range(len(queries))] * 2
            )
        query_of: list[int] = []
        for row, group in enumerate(instances):
            query_of += [row] * len(group.docids)
        return self.inputs_of(queries, passages, query_of) | self.of_teacher(instances)

    @abstractmethod
    def inputs_of(
        self, queries: list[list[int]], passages: list[list[int]], query_of: Sequence[int]
    ) -> Batch:
        """The tensors that `scores` reads, from wordpieces; `query_of` is the row of each
        passage's query.
        """

    @abstractmethod
    def scores(self, batch: Batch) -> Tensor:
        """The passages' scores for their queries, (passages,), from the tensors of `inputs_of`."""

    def forward(self, batch: Batch) -> Tensor:
        """The recipe's `PairLoss` of relevant passages against the others; or `group_loss`."""
        if 'present' in batch:
            return self.group_loss(batch)
        positive, negative = torch.chunk(self.scores(batch), 2)
        return pair_loss(positive, negative, self.recipe.training.loss)

    def group_loss(self, batch: Batch) -> Tensor:
        """Localized contrastive estimation over the judged groups, and the teacher's loss over
        all groups.
        """
        present = batch['present']
        judged = batch['judged']
        scores = self.scores(batch).float()
        groups = scores.new_zeros(present.shape).masked_scatter(present, scores)
        return self.with_teacher(
            localized_contrastive(groups[judged], present[judged]), scores, batch
        )


def padded(sequences: ModelInputs | Sequence[TokenSequence], pad: int, prefix: str = '') -> Batch:
    """Sequences as tensors by name, padded to the longest; no mask where nothing is padded."""
    return named(*collate(sequences, pad, 'cpu'), prefix)


def named(ids: Tensor, types: Tensor, mask: Tensor | None, prefix: str) -> Batch:
    """The tensors of padded sequences by their names in a batch.

    Parameters
    ----------
    ids, types : int64 (n, length)
    mask : bool (n, length), False at padding; None if nothing is padded
    prefix : of the names
    """
    batch = {f'{prefix}input_ids': ids, f'{prefix}token_type_ids': types}
    return batch if mask is None else {**batch, f'{prefix}attention_mask': mask}


def outputs(model: Forward, batch: Batch, prefix: str = '') -> Tensor:
    """The model's result for the sequences that `padded` put into a batch.

    A CPU runs `GROUP` sequences of like length at once, with little padding; a result of (n,
    length, h) becomes 0 beyond the longest of those.
    """
    ids = batch[f'{prefix}input_ids']
    types = batch[f'{prefix}token_type_ids']
    whole_mask = batch.get(f'{prefix}attention_mask')
    if whole_mask is None or ids.device.type != 'cpu' or len(ids) <= GROUP:
        return model(ids, types, whole_mask)
    width = ids.shape[1]
    lengths = (whole_mask * torch.arange(1, width + 1)).amax(dim=1)
    order = lengths.argsort(stable=True)
    results = []
    for group in torch.split(order, GROUP):
        longest = int(lengths[group[-1]])
        mask = whole_mask[group, :longest]
        out = model(
            ids[group, :longest], types[group, :longest], None if bool(mask.all()) else mask
        )
        results.append(functional.pad(out, (0, 0, 0, width - longest)) if out.dim() == 3 else out)
    return torch.cat(results)[order.argsort()]


def limit(recipe: Recipe, name: str, default: int, most: int | None = None) -> int:
    """A length from the recipe's `ranking`.

    Raises InputError for anything but an integer from 1 to `most`.
    """
    value = recipe.ranking.get(name, default if most is None else min(default, most))
    if (
        not isinstance(value, int)
        or isinstance(value, bool)
        or value < 1
        or (most is not None and value > most)
    ):
        bound = 'of at least 1' if most is None else f'from 1 to {most}'
        raise InputError(
            f"recipe '{recipe.name}': ranking.{name} is {value!r}, expected an integer {bound}"
        )
    return value
