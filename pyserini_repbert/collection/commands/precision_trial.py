"""What `--precision auto` would gain and change: some passages are encoded in both precisions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.models.precision import gains_by_bfloat16

# A trial of so many passages takes a second with a model of MiniLM's size.
_LEAST = 4
_MOST = 32
_ROUNDS = 2


@dataclass(frozen=True)
class PrecisionTrial:
    """What bfloat16 does for some passages.

    Attributes
    ----------
    passages : how many were tried
    speed : how many times as fast as in float32 they were encoded
    difference : the greatest of the scores between two of them, between the precisions
    """

    passages: int
    speed: float
    difference: float


def try_bfloat16(
    encoder: Any, inputs: Sequence[str], passages_a_second: float, seconds: float
) -> PrecisionTrial | None:
    """Encode some passages in float32 and in bfloat16.

    Parameters
    ----------
    encoder : in float32, on a CPU; bfloat16 is tried with another one of the same model
    inputs : passages, as the encoder reads them
    passages_a_second : how fast the encoder is
    seconds : that its rounds may take, about

    Returns None if the machine does not compute faster in bfloat16.
    """
    import torch

    from pyserini_repbert.systems.encoders import document_encoder

    if not gains_by_bfloat16(torch.device('cpu')):
        return None
    n_passages = int(np.clip(seconds * passages_a_second / _ROUNDS, _LEAST, _MOST))
    tried = list(inputs)[:n_passages]
    rounded = document_encoder(encoder.name, 'cpu', precision='bfloat16')
    # The first round makes kernels, and does not count.
    _encode(rounded, tried)
    exact_rounds = []
    rounded_rounds = []
    for _ in range(_ROUNDS):
        exact_rounds.append(_encode(encoder, tried))
        rounded_rounds.append(_encode(rounded, tried))
    exact = min(exact_rounds, key=lambda own: own.seconds)
    fast = min(rounded_rounds, key=lambda own: own.seconds)
    difference = float(np.abs(exact.scores - fast.scores).max())
    return PrecisionTrial(len(tried), exact.seconds / fast.seconds, difference)


@dataclass(frozen=True)
class _Round:
    """The seconds of encoding passages, and their scores with each other, float32 (n, n)."""

    seconds: float
    scores: NDArray[np.float32]


def _encode(encoder: Any, inputs: Sequence[str]) -> _Round:
    began = time.perf_counter()
    vectors = encoder.embed_whole(inputs)
    return _Round(time.perf_counter() - began, vectors @ vectors.T)
