"""Running a model over sequences of different lengths: little padding, bounded memory, results in
the given order.

Sequences are sorted by length and cut into batches of at most `token_budget` padded tokens; the
other sequences of a batch change a result by rounding only. A batch that does not fit into memory
is split and tried again.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyserini_repbert.models.ahead import is_unwanted
from pyserini_repbert.models.precision import on_device
from pyserini_repbert.models.token_ids import Progress
from pyserini_repbert.models.tokenizer import ModelInputs, TokenChunk, TokenSequence

TOKEN_BUDGET = {'cpu': 2048, 'cuda': 65536, 'mps': 16384}
# Tokens of padding that a batch may have: beyond them, another batch costs less.
_MOST_PADDING = {'cpu': 64}
_IN_FLIGHT = 2  # batches whose results may still be being copied from a GPU to the host

Forward = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""A model: input_ids and token_type_ids, int64 (n, length), and attention_mask to a result (n, …).

The mask is bool (n, length), best in the host's memory; None where nothing is padded.
"""


def length_batches(
    lengths: Sequence[int], token_budget: int | None, device: torch.device | str
) -> list[list[int]]:
    """Positions in batches, shortest first.

    Each batch has at most `token_budget` tokens with its padding (default: by device), or a single
    sequence. On a CPU, a batch also ends where its padding would cost more than another batch.
    """
    token_budget = usual_budget(token_budget, device)
    most_padding = _MOST_PADDING.get(torch.device(device).type, math.inf)
    batches: list[list[int]] = []
    batch: list[int] = []
    n_tokens = 0
    for position in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[position]
        padded = (len(batch) + 1) * length
        padding = padded - n_tokens - length
        if batch and (padded > token_budget or padding > most_padding):
            batches.append(batch)
            batch = []
            n_tokens = 0
        batch.append(position)
        n_tokens += length
    if batch:
        batches.append(batch)
    return batches


def collate(
    sequences: ModelInputs | Sequence[TokenSequence],
    pad: int,
    device: torch.device | str,
    positions: Sequence[int] | None = None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The arguments of `Forward`, padded to the longest sequence; the ids on `device`, the mask in
    the host's memory.

    `positions` say which sequences; default: all.
    """
    inputs = ModelInputs.of(sequences)
    chosen = np.arange(len(inputs))
    if positions is not None:
        chosen = np.asarray(positions)
    lengths = inputs.lengths[chosen, None]
    columns = np.arange(lengths.max())
    is_token = columns < lengths
    tokens = inputs.starts[chosen, None] + columns
    tokens = np.minimum(tokens, len(inputs.input_ids) - 1)
    ids = np.where(is_token, inputs.input_ids[tokens], pad).astype(np.int64)
    types = np.where(is_token, inputs.token_type_ids[tokens], 0).astype(np.int64)
    mask = None
    if not is_token.all():
        mask = torch.from_numpy(is_token)
    return (
        on_device(torch.from_numpy(ids), device),
        on_device(torch.from_numpy(types), device),
        mask,
    )


def collate_chunks(
    chunks: Sequence[TokenChunk], pad: int, device: torch.device | str
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """`collate` for chunks, with the padding inside them masked, too.

    The last tensor, int64 (wordpieces,), has the positions of the wordpieces in the flattened ids,
    chunk after chunk.
    """
    ids, types, mask = collate([chunk.sequence for chunk in chunks], pad, device)
    positions = []
    for row, chunk in enumerate(chunks):
        # [CLS] comes before the wordpieces.
        first = row * ids.shape[1] + 1
        positions.append(np.arange(first, first + chunk.n_pieces))
        end = len(chunk.sequence.input_ids) - 1
        if chunk.n_pieces + 1 < end:
            if mask is None:
                mask = torch.ones(ids.shape, dtype=torch.bool)
            mask[row, chunk.n_pieces + 1 : end] = False
    flat_positions = torch.from_numpy(np.concatenate(positions))
    return ids, types, mask, on_device(flat_positions, device)


def arriving(output: Tensor) -> Callable[[], NDArray[np.float32]]:
    """Starts copying a tensor to the host; the function returned waits for the copy, and gives
    it in float32.
    """
    if output.device.type != 'cuda':
        here: NDArray[np.float32] = output.float().cpu().numpy()
        return lambda: here
    target = torch.empty(output.shape, dtype=torch.float32, pin_memory=True)
    target.copy_(output.float(), non_blocking=True)
    event = torch.cuda.current_stream(output.device).record_event()

    def arrived() -> NDArray[np.float32]:
        event.synchronize()
        return target.numpy()

    return arrived


def run_batched(
    forward: Forward,
    sequences: ModelInputs | Sequence[TokenSequence],
    pad: int,
    device: torch.device | str,
    token_budget: int | None = None,
    on_progress: Progress = int,
) -> NDArray[np.float32]:
    """The results of `forward` for all sequences, as in `run_positions`.

    `pad` is the id of the padding token, `token_budget` the most padded tokens in a batch (default:
    `TOKEN_BUDGET`).
    """
    inputs = ModelInputs.of(sequences)
    batches = length_batches(inputs.lengths.tolist(), token_budget, device)
    return run_positions(
        lambda batch: forward(*collate(inputs, pad, device, batch)), batches, on_progress
    )


def usual_budget(token_budget: int | None, device: torch.device | str) -> int:
    """`token_budget`, or the device's default for None and 0."""
    return token_budget or TOKEN_BUDGET.get(torch.device(device).type, TOKEN_BUDGET['cpu'])


def run_positions(
    forward: Callable[[list[int]], Tensor],
    batches: Sequence[list[int]],
    on_progress: Progress = int,
) -> NDArray[np.float32]:
    """The results of `forward` in the order of positions: float32 (n, …), empty (0,) for no
    positions.

    `forward` gives a tensor (len(batch), …) for the positions in a batch; `batches` have all
    positions from 0 to n - 1, each once. A GPU begins the next batch while results of earlier ones
    are still being copied to the host: there, `on_progress` counts what has begun. Errors and the
    handling of too little memory are as in `in_batches`.
    """
    results: NDArray[np.float32] | None = None
    n_positions = sum(map(len, batches))
    waiting: deque[tuple[list[int], Callable[[], NDArray[np.float32]]]] = deque()

    def keep(most_waiting: int) -> None:
        nonlocal results
        while len(waiting) > most_waiting:
            batch, arrived = waiting.popleft()
            rows = arrived()
            if results is None:
                results = np.empty((n_positions, *rows.shape[1:]), dtype=np.float32)
            results[batch] = rows

    def work(batch: list[int]) -> None:
        output = forward(batch)
        waiting.append((batch, arriving(output)))
        keep(_IN_FLIGHT if output.device.type == 'cuda' else 0)

    in_batches(work, batches, on_progress)
    keep(0)
    if results is None:
        return np.empty(0, dtype=np.float32)
    return results


@torch.inference_mode()
def in_batches(
    work: Callable[[list[int]], object], batches: Sequence[list[int]], on_progress: Progress = int
) -> None:
    """Call `work` with the positions in each batch; a batch that does not fit into the device's
    memory is halved.

    `on_progress` is called with the number of positions done since the last call. Raises
    torch.OutOfMemoryError if a single position does not fit. In a thread of `ahead` that was
    closed, it stops after a batch.
    """
    waiting = list(batches)[::-1]
    while waiting:
        if is_unwanted():
            raise CancelledError
        batch = waiting.pop()
        try:
            work(batch)
        except torch.OutOfMemoryError:
            if len(batch) == 1:
                raise
            torch.cuda.empty_cache()
            half = len(batch) // 2
            waiting += [batch[half:], batch[:half]]
            continue
        on_progress(len(batch))
