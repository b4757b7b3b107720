"""`Machine`: where an index is searched, and where a pipeline runs."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from pyserini_repbert.data.checked_values import CheckedValues


class Machine(CheckedValues):
    """Where a pipeline runs: it decides rankings only by the rounding of hardware and batches."""

    devices: tuple[str, ...] = ('cpu',)
    """Rerankers run on all of them; query encoders and dense search on the first."""
    threads: int = Field(default=1, ge=1)
    workers: int = Field(default=0, ge=0)
    """Processes that tokenise for the rerankers; 0: the model's process does."""
    batch_size: int = Field(default=512, ge=1, description='topics searched together')
    batch_tokens: int | None = Field(
        default=None, ge=1, description=('tokens in a batch, padding included')
    )
    download: bool = Field(default=False, description='download a missing prebuilt sparse index')
    build: bool = Field(default=False, description='build a missing index of the catalog')
    ray: Any = None
    """Workers of a cluster (`ray_worker_pool`), which search dense shards, or rerank."""
