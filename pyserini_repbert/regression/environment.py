"""What a score can depend on: versions, numerics, thread count, policies, and the recorded settings of its commands."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.record import PACKAGES, Record, decisive, read_record, versions

SHORT = 16  # hexadecimal digits of a checksum that are shown
TIE_POLICY = '(-score, docid), in rerankers the order of the stage before; written scores strictly decrease'
PRECISION = 'float32, or as a command says'


def fingerprint() -> dict[str, str]:
    """Name -> value of what is compared when two results differ: the machine's part, the same for all conditions."""
    return versions() | _java() | {
        'code': code_version(),
        'platform': f'{platform.system()} {platform.machine()}',
        'blas': _blas(),
        **_torch(),
        'precision': PRECISION,
        'ties': TIE_POLICY,
    }  # fmt: skip


def code_version() -> str:
    """The first digits of the SHA-256 over this package's .py and .yaml files, the regressions' own code aside."""
    root = Path(__file__).resolve().parents[1]
    total = hashlib.sha256()
    for path in sorted(root.rglob('*')):
        inside = path.relative_to(root)
        if path.suffix in ('.py', '.yaml') and inside.parts[0] != 'regression':
            total.update(f'{inside.as_posix()}\0'.encode() + path.read_bytes())
    return total.hexdigest()[:SHORT]


def cache_version(environment: dict[str, str]) -> str:
    """A hash that must agree for a remembered result to be used: of the code and the packages that it needs.

    Parameters
    ----------
    environment : from `fingerprint`
    """
    parts = [f'{name} {environment.get(name)}' for name in ('code', 'anserini', 'anserini jar', 'python', *PACKAGES)]
    return hashlib.sha256('\n'.join(parts).encode()).hexdigest()


def _java() -> dict[str, str]:
    from pyserini_repbert.catalog import cache_folder
    from pyserini_repbert.files import human_size, remembered_digest
    from pyserini_repbert.lucene import java_home

    found = {}
    try:
        java = java_home.find_java()
        found['java'] = java.version + (', vector module' if java.has_module(java_home.VECTOR_MODULE) else '')
    except PyseriniRepbertError as error:
        found['java'] = f'none: {error}'
    try:
        jar = java_home.anserini_jar()
        sha256 = remembered_digest(jar, cache_folder())[:SHORT]
        return found | {'anserini': jar.name, 'anserini jar': f'{human_size(jar.stat().st_size)}, sha256 {sha256}'}
    except PyseriniRepbertError:
        return found | {'anserini': 'none'}


def _blas() -> str:
    try:
        import numpy as np

        blas = np.show_config(mode='dicts')['Build Dependencies']['blas']  # type: ignore[call-overload, index]
        return f'{blas["name"]} {blas["version"]}'
    except (KeyError, TypeError, ImportError):
        return 'unknown'


def _torch() -> dict[str, str]:
    """How PyTorch computes here, with its default number of threads."""
    import torch

    from pyserini_repbert.models.precision import has_native_bfloat16

    built = torch.__config__.show()
    library = re.search(r'BLAS_INFO=(\w+)', built)
    onednn = re.search(r'MKL-DNN (v[\d.]+)', built)
    parts = [f'BLAS {library[1]}' if library else 'BLAS unknown', f'oneDNN {onednn[1]}' if onednn else 'no oneDNN']
    return {
        'torch blas': ', '.join([*parts, torch.backends.cpu.get_cpu_capability()]),
        'bfloat16': 'native' if has_native_bfloat16(torch.device('cpu')) else 'emulated',
        'gpu': torch.cuda.get_device_name() if torch.cuda.is_available() else 'none',
        'threads': f'{torch.get_num_threads()} (OMP_NUM_THREADS {os.environ.get("OMP_NUM_THREADS", "unset")})',
    }


def recorded(words: Sequence[str]) -> Record | None:
    """The record of a command that has run, found beside a file or folder that it names; None if there is none."""
    command = decisive(words)
    found = (read_record(word.rpartition('=')[2]) for word in words[2:])
    return next((record for record in found if record is not None and record.command == command), None)


def condition_fingerprint(records: Iterable[Record]) -> dict[str, str]:
    """What the scores of recorded commands depend on beside the machine.

    Returns
    -------
    'NAME weights', 'NAME tokenizer' and 'NAME config' of each checkpoint -> first 16 digits of the SHA-256; 'COMMAND
    precision' -> precision of its models; 'COMMAND SETTING' -> its value as JSON, given or by default
    """
    models: dict[str, str] = {}
    found: dict[str, dict[str, None]] = {}
    for record in records:
        for model in record.models:
            parts = {'weights': model.weights, 'tokenizer': model.tokenizer, 'config': model.config}
            models |= {f'{model.name} {part}': value[:SHORT] for part, value in parts.items()}
        used = (
            {'precision': ', '.join(dict.fromkeys(model.precision for model in record.models))} if record.models else {}
        )
        settings = {name: json.dumps(value) for name, value in record.settings.items()}
        for name, value in (used | settings).items():
            found.setdefault(f'{record.name} {name}', {})[value] = None
    return models | {name: '; '.join(values) for name, values in found.items()}
