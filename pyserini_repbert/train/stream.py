"""The instances of all sources as an endless stream, in an order that the seed decides."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

from torch.utils.data import IterableDataset, get_worker_info

from pyserini_repbert.errors import InputError
from pyserini_repbert.tasks.instances import Instance


class InstanceStream(IterableDataset[Instance]):
    """The instances of all sources, epoch after epoch without end, in an order that the seed
    decides.

    In an epoch, sources take turns until all are exhausted. Only the shuffle buffer, of `shuffle`
    instances, is held in memory; a buffer of 1 keeps the order. Sources are anything with
    `instances(seed, epoch)` and `where`.

    Iteration begins with the instance at `position`, from 0. Worker processes take turns of `chunk`
    instances, a batch of all devices. Raises InputError for sources without instances.
    """

    def __init__(
        self, sources: Sequence[Any], seed: int, shuffle: int, chunk: int = 1, position: int = 0
    ) -> None:
        self.sources = list(sources)
        self.seed = seed
        self.shuffle = shuffle
        self.chunk = chunk
        self.position = position

    def __iter__(self) -> Iterator[Instance]:
        instances = itertools.islice(self._endless(), self.position, None)
        worker = get_worker_info()
        if worker is None:
            yield from instances
            return
        for number in itertools.count():
            part = list(itertools.islice(instances, self.chunk))
            if number % worker.num_workers == worker.id:
                yield from part

    def first_epoch(self) -> Iterator[Instance]:
        """The instances of the first epoch, as training gets them."""
        return self._shuffled(0)

    def _endless(self) -> Iterator[Instance]:
        for epoch in itertools.count():
            is_empty = True
            for instance in self._shuffled(epoch):
                is_empty = False
                yield instance
            if is_empty:
                where = ', '.join(source.where for source in self.sources)
                reason = 'no topic has both a relevant passage and the negatives asked for'
                raise InputError(f'{where}: no training instances: {reason}')

    def _shuffled(self, epoch: int) -> Iterator[Instance]:
        draw = random.Random(f'{self.seed} {epoch}')
        buffer: list[Instance] = []
        for instance in self._in_turns(epoch):
            if len(buffer) < self.shuffle:
                buffer.append(instance)
                continue
            index = draw.randrange(len(buffer))
            yield buffer[index]
            buffer[index] = instance
        draw.shuffle(buffer)
        yield from buffer

    def _in_turns(self, epoch: int) -> Iterator[Instance]:
        """An instance of each source, then the next of each, until all are exhausted."""
        streams = [source.instances(self.seed, epoch) for source in self.sources]
        for turn in itertools.zip_longest(*streams):
            for instance in turn:
                if instance is not None:
                    yield instance
