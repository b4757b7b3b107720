"""A recorded command with other settings: another precision, batches of one, other threads, other checkpoints.

A command is its list of words, as a shell splits it: 'python', '-m', …. Its record says which models and settings it
ran.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.record import Record

PRECISIONS = {'float32': '--fp32', 'bfloat16': '--bf16', 'float16': '--fp16'}
_BATCHES = {'batch_size': '--batch-size', 'batch_tokens': '--batch-tokens'}


def builds_named_index(record: Record) -> bool:
    """Whether a command may have built the vectors of a catalog index, which depend on its precision and tokenizer."""
    index = record.input('index')
    named = index is not None and catalog.find('indexes', index.name) is not None and not Path(index.name).exists()
    return named and bool(record.models)


def with_precision(words: Sequence[str], record: Record, precision: str) -> list[str]:
    """The command in `precision`; unchanged if it runs no model."""
    if not record.models:
        return list(words)
    return [*(word for word in words if word not in PRECISIONS.values()), '--precision', precision]


def with_batches_of_one(words: Sequence[str], record: Record) -> list[str]:
    """The command with batches of one text or topic; unchanged if it runs no model, or has no flag for that."""
    flags = [flag for name, flag in _BATCHES.items() if name in record.settings] if record.models else []
    return [*words, *(word for flag in flags for word in (flag, '1'))]


def with_threads(words: Sequence[str], record: Record, threads: int) -> list[str]:
    """The command with another number of threads; unchanged if it names none."""
    named = any(word.partition('=')[0] == '--threads' for word in words)
    return [*words, '--threads', str(threads)] if named else list(words)


def with_checkpoints(words: Sequence[str], record: Record, folders: Mapping[str, str]) -> list[str]:
    """The command with other checkpoints.

    A dense search that takes its encoder's name from the index gets an `--encoder`.

    Parameters
    ----------
    folders : name of a checkpoint that ran -> folder of the one that takes its place
    """
    ours = {model.name: folders[model.name] for model in record.models if model.name in folders}
    first = next((place for place, word in enumerate(words) if place > 1 and word.startswith('-')), len(words))
    changed, left = list(words), dict(ours)
    for place in range(first, len(words)):
        for name, folder in ours.items():
            if (named := re.fullmatch(rf'(|.*=){re.escape(name)}(|@.*)', words[place])) is not None:
                changed[place] = f'{named[1]}{folder}{named[2]}'
                left.pop(name, None)
    if record.name == 'search' and record.input('sparse') is None:
        changed += [word for folder in left.values() for word in ('--encoder', folder)]
    return changed
