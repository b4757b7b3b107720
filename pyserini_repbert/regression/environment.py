"""What a score can depend on.

Versions, the machine, and the recorded checkpoints and settings of its commands.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterable, Sequence

from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.record import (
    CODE,
    PACKAGES,
    Record,
    code_version,
    decisive,
    read_record,
    versions,
)

SHORT = 16  # hexadecimal digits of a checksum that are shown


def fingerprint() -> dict[str, str]:
    """Name -> value of the machine's part, the same for all conditions."""
    import torch

    from pyserini_repbert.models.precision import has_native_bfloat16

    is_native = has_native_bfloat16(torch.device('cpu'))
    omp_threads = os.environ.get('OMP_NUM_THREADS', 'unset')
    values = versions() | _java()
    values[CODE] = code_version()
    values['platform'] = f'{platform.system()} {platform.machine()}'
    values['vector instructions'] = torch.backends.cpu.get_cpu_capability()
    values['bfloat16'] = 'native' if is_native else 'emulated'
    values['gpu'] = torch.cuda.get_device_name() if torch.cuda.is_available() else 'none'
    values['threads'] = f'{torch.get_num_threads()} (OMP_NUM_THREADS {omp_threads})'
    return values


def cache_version(environment: dict[str, str]) -> str:
    """A hash of the code and the packages in a `fingerprint`.

    Results of another version are not used again.
    """
    names = (CODE, 'anserini', 'anserini jar', 'python', *PACKAGES)
    parts = [f'{name} {environment.get(name)}' for name in names]
    return hashlib.sha256('\n'.join(parts).encode()).hexdigest()


def _java() -> dict[str, str]:
    from pyserini_repbert.checksums import remembered_digest
    from pyserini_repbert.files import human_size
    from pyserini_repbert.lucene import java_home

    try:
        java = java_home.find_java()
        version = java.version
        if java.has_module(java_home.VECTOR_MODULE):
            version += ', vector module'
    except PyseriniRepbertError as error:
        version = f'none: {error}'
    try:
        jar = java_home.anserini_jar()
    except PyseriniRepbertError:
        return {'java': version, 'anserini': 'none'}
    content = f'{human_size(jar.stat().st_size)}, sha256 {remembered_digest(jar)[:SHORT]}'
    return {'java': version, 'anserini': jar.name, 'anserini jar': content}


def condition_fingerprint(commands: Iterable[Sequence[str]]) -> dict[str, str]:
    """What the scores of commands that have run depend on beside the machine, by their records.

    'NAME weights', 'NAME tokenizer' and 'NAME config' of each checkpoint -> first 16 digits of the
    SHA-256; 'COMMAND precision' -> precision of its models; 'COMMAND SETTING' -> its value as JSON,
    given or by default.
    """
    models: dict[str, str] = {}
    settings: dict[str, list[str]] = {}
    for words in commands:
        record = _find_record(words)
        if record is None:
            continue
        for model in record.models:
            models[f'{model.name} weights'] = model.weights[:SHORT]
            models[f'{model.name} tokenizer'] = model.tokenizer[:SHORT]
            models[f'{model.name} config'] = model.config[:SHORT]
        for name, value in _settings(record).items():
            settings.setdefault(f'{record.name} {name}', []).append(value)
    joined = {name: '; '.join(dict.fromkeys(values)) for name, values in settings.items()}
    return models | joined


def _settings(record: Record) -> dict[str, str]:
    """The precision of a command's models, and its settings as JSON."""
    settings = {}
    if record.models:
        precisions = dict.fromkeys(model.precision for model in record.models)
        settings['precision'] = ', '.join(precisions)
    for name, value in record.settings.items():
        settings[name] = json.dumps(value)
    return settings


def _find_record(words: Sequence[str]) -> Record | None:
    """The record of a command, beside a file or folder that it names; None if there is none."""
    command = decisive(words)
    for word in words[2:]:
        # `--output=FILE` names a file, too.
        record = read_record(word.rpartition('=')[2])
        if record is not None and record.command == command:
            return record
    return None
