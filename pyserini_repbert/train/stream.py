"""The stream of training instances from all sources, in an order that the seed decides."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

from torch.utils.data import IterableDataset, get_worker_info

from pyserini_repbert.errors import InputError
from pyserini_repbert.train.sources import Instance


class InstanceStream:
    """The instances of all sources, epoch after epoch without end, in an order that the seed decides.

    In an epoch, sources take turns until all are exhausted. Only the shuffle buffer is held in memory.

    Parameters
    ----------
    sources : anything with `instances(seed, epoch)` and `where`
    shuffle : size of the shuffle buffer, in instances; 1 keeps the order
    """

    def __init__(self, sources: Sequence[Any], seed: int, shuffle: int) -> None:
        self.sources, self.seed, self.shuffle = list(sources), seed, shuffle

    def from_position(self, position: int) -> Iterator[Instance]:
        """The stream from its `position`-th instance (from 0) on. Raises InputError for sources without instances."""
        return itertools.islice(self._endless(), position, None)

    def _endless(self) -> Iterator[Instance]:
        for epoch in itertools.count():
            nothing = True
            for instance in self._shuffled(epoch):
                nothing = False
                yield instance
            if nothing:
                where = ', '.join(source.where for source in self.sources)
                raise InputError(
                    f'{where}: no training instances: no topic has both a relevant passage and the negatives asked for'
                )

    def _shuffled(self, epoch: int) -> Iterator[Instance]:
        draw = random.Random(f'{self.seed} {epoch}')
        waiting: list[Instance] = []
        for instance in self._in_turn(epoch):
            if len(waiting) < self.shuffle:
                waiting.append(instance)
                continue
            at = draw.randrange(len(waiting))
            waiting[at], instance = instance, waiting[at]
            yield instance
        if self.shuffle > 1:
            draw.shuffle(waiting)
        yield from waiting

    def _in_turn(self, epoch: int) -> Iterator[Instance]:
        active = [source.instances(self.seed, epoch) for source in self.sources]
        while active:
            for one in list(active):
                instance = next(one, None)
                if instance is None:
                    active.remove(one)
                else:
                    yield instance


class StreamDataset(IterableDataset[Instance]):
    """Instances from a position on; several worker processes take turns.

    Parameters
    ----------
    chunk : instances of one turn: a batch of all devices
    position : instances to skip
    """

    def __init__(self, stream: InstanceStream, chunk: int, position: int = 0) -> None:
        self.stream, self.chunk, self.position = stream, chunk, position

    def __iter__(self) -> Iterator[Instance]:
        found = self.stream.from_position(self.position)
        worker = get_worker_info()
        if worker is None:
            yield from found
            return
        for number in itertools.count():
            part = list(itertools.islice(found, self.chunk))
            if number % worker.num_workers == worker.id:
                yield from part
