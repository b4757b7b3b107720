"""What a training gives back."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Trained(NamedTuple):
    """What came of a training.

    Attributes
    ----------
    folder : the checkpoint
    steps : done, fewer than asked for where training stopped early
    loss : mean over all steps of this run
    best : the validation measure of the model that was kept, if there was a validation
    cutoff, at_cutoff : how many hits of the validation topics it is best to rerank, and the measure then, if it reranks
    """

    folder: Path
    steps: int
    loss: float
    best: float | None
    cutoff: int | None = None
    at_cutoff: float | None = None
