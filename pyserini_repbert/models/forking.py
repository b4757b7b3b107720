"""Computing in processes that are forked from one that has computed.

OpenMP's threads do not live on in a forked process, which would wait for them for ever. There,
PyTorch and FAISS compute in one thread. A process that is started by `spawn` has all threads.
"""

from __future__ import annotations

import os
import sys


def compute_alone() -> None:
    """Let PyTorch and FAISS compute in one thread, where they are loaded."""
    if torch := sys.modules.get('torch'):
        torch.set_num_threads(1)
    if faiss := sys.modules.get('faiss'):
        faiss.omp_set_num_threads(1)


if hasattr(os, 'register_at_fork'):  # Windows cannot fork
    os.register_at_fork(after_in_child=compute_alone)
