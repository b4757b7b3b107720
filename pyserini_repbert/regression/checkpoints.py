"""What the commands of a condition ran, by their records, and its fingerprint: checkpoints, precision and settings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from pyserini_repbert.record import Record, decisive, read_record
from pyserini_repbert.regression.environment import SHORT


def recorded(words: Sequence[str]) -> Record | None:
    """The record of a command that has run: beside one of the files and folders that it names."""
    command = decisive(words)
    found = (read_record(word.rpartition('=')[2]) for word in words[2:])
    return next((record for record in found if record is not None and record.command == command), None)


def condition_fingerprint(records: Iterable[Record]) -> dict[str, str]:
    """What the scores of recorded commands depend on beside the machine.

    Returns
    -------
    'NAME weights', 'NAME tokenizer' and 'NAME config' -> SHA-256, its first 16 digits; 'COMMAND precision' -> what its
    models ran in; 'COMMAND SETTING' -> its value, given or by default
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
