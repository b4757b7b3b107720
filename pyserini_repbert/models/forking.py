"""Computing in processes that are forked from one that has computed.

OpenMP's threads do not live on in a forked process, which would wait for them for ever. There,
PyTorch and FAISS compute in one thread, whatever number of threads is asked for. A process that is
started by `spawn` has all threads.
"""

from __future__ import annotations

import os
import sys

_is_forked = False


def usable_threads(threads: int) -> int:
    """The threads that this process can compute in, of those asked for: 1 where it was forked."""
    return 1 if _is_forked else threads


def compute_alone() -> None:
    """Let PyTorch and FAISS compute in one thread, where they are loaded."""
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
