"""The fingerprint of a condition: the checkpoints that its commands run, by checksum, and their precision."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyserini_repbert.catalog import cache_folder
from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.files import remembered_digest
from pyserini_repbert.regression.blame.model_commands import Model, command_name, models, values
from pyserini_repbert.regression.environment import SHORT

if TYPE_CHECKING:
    from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint


def condition_fingerprint(commands: Sequence[Sequence[str]]) -> dict[str, str]:
    """What these commands (lists of words) depend on beside the machine; nothing for those without a model.

    Returns
    -------
    'NAME weights', 'NAME tokenizer' and 'NAME settings' -> SHA-256, its first 16 digits; 'COMMAND precision' -> what
    its models run in here; 'COMMAND threads' -> as asked
    """
    found: dict[str, str] = {}
    asked: dict[str, dict[str, None]] = {}
    for words in commands:
        own = models(words)
        for model in own:
            if f'{model.name} weights' not in found:
                found |= {f'{model.name} {part}': value for part, value in checksums(model).items()}
        if own:
            used = ', '.join(dict.fromkeys(dtype(words, model.precision) for model in own))
            asked.setdefault(f'{command_name(words)} precision', {})[used] = None
        if threads := values(words, '--threads'):
            asked.setdefault(f'{command_name(words)} threads', {})[threads[-1]] = None
    return found | {name: '; '.join(own) for name, own in asked.items()}


def checksums(model: Model) -> dict[str, str]:
    """'weights', 'tokenizer' and 'settings' of a checkpoint -> SHA-256, 16 digits of it, or why it cannot be read."""
    from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint

    try:
        checkpoint = open_checkpoint(model.name, model.kind)
        return {
            'weights': checkpoint.weights_sha256[:SHORT],
            'tokenizer': _tokenizer(checkpoint),
            'settings': _settings(checkpoint),
        }
    except PyseriniRepbertError as error:
        return {'weights': f'unread: {error}'}


def _tokenizer(checkpoint: Checkpoint) -> str:
    """The checksum of the files that its tokenizer is read from: its own, or its base's."""
    folder = checkpoint.tokenizer_folder
    whole = folder / 'tokenizer.json'
    files = [whole] if whole.is_file() else [folder / name for name in ('vocab.txt', 'tokenizer_config.json')]
    return _over([remembered_digest(file, cache_folder()) for file in files if file.is_file()])


def _settings(checkpoint: Checkpoint) -> str:
    return _over([json.dumps(checkpoint.config, sort_keys=True)])


def _over(parts: Sequence[str]) -> str:
    """The checksum of one file as it is, of several over their checksums."""
    if len(parts) == 1 and len(parts[0]) == 64:
        return parts[0][:SHORT]
    return hashlib.sha256('\n'.join(parts).encode()).hexdigest()[:SHORT]


def dtype(words: Sequence[str], precision: str) -> str:
    """What a command's models run in: the precision it asks for, or what 'auto' comes to on the device it asks for."""
    from pyserini_repbert.models.precision import used_precision

    try:
        return str(used_precision(precision, next(iter(values(words, '--device')), 'cpu')))
    except PyseriniRepbertError:  # which the command itself will meet, and say
        return 'unknown' if precision == 'auto' else precision
