"""The threads in which PyTorch and FAISS compute.

OpenMP's threads do not live on in a forked process, which would wait for them for ever. There,
PyTorch and FAISS compute in one thread, even if more threads are requested. A process that is
started by `spawn` has all threads.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyserini_repbert.data.values import MAX_THREADS
from pyserini_repbert.errors import InputError

_is_forked = False


def usable_threads(threads: int) -> int:
    """The number of threads that this process can use, at most as many as requested: 1 if it was
    forked.
    """
    return 1 if _is_forked else threads


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """A context in which PyTorch uses `threads` threads; 1 leaves its own setting.

    Raises InputError for a number out of range.
    """
    if not 1 <= threads <= MAX_THREADS:
        raise InputError(f'threads={threads} were asked for, expected 1 to {MAX_THREADS}')
    if threads == 1 and 'torch' not in sys.modules:
        # A lone question may do without PyTorch.
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(usable_threads(threads) if threads > 1 else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def faiss_threads(threads: int) -> Iterator[None]:
    """A context in which FAISS uses `threads` threads; 0 leaves its own setting."""
    import faiss

    before = faiss.omp_get_max_threads()
    if threads:
        faiss.omp_set_num_threads(usable_threads(threads))
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def compute_alone() -> None:
    """Let PyTorch and FAISS compute in one thread, if they are loaded."""
    global _is_forked
    _is_forked = True
    torch = sys.modules.get('torch')
    if torch is not None:
        torch.set_num_threads(1)
    faiss = sys.modules.get('faiss')
    if faiss is not None:
        faiss.omp_set_num_threads(1)


if hasattr(os, 'register_at_fork'):  # Windows cannot fork
    os.register_at_fork(after_in_child=compute_alone)
