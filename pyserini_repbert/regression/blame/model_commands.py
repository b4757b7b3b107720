"""What a command does with models: its checkpoints, its precision, its batches; and the same command set otherwise.

Commands are lists of words, as a shell splits them: 'python', '-m', 'pyserini_repbert.encode', '--corpus', ….
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyserini_repbert import catalog

PRECISIONS = {'float32': '--fp32', 'bfloat16': '--bf16', 'float16': '--fp16'}


@dataclass(frozen=True, slots=True)
class Flags:
    """How a command names and runs models.

    Attributes
    ----------
    models : flag that names a checkpoint -> its kind in the catalog
    batch : flags of the size of a batch
    """

    models: Mapping[str, str]
    batch: Sequence[str] = field(default=('--batch-tokens',))


COMMANDS = {
    'search': Flags({'--encoder': 'encoders', '--rerank': 'rerankers'}, ('--batch-size', '--batch-tokens')),
    'encode': Flags({'--encoder': 'encoders'}),
    'rerank': Flags({'--reranker': 'rerankers'}),
    'index epic': Flags({'--encoder': 'rerankers'}),
    'evaluate epic-pruning': Flags({'--model': 'rerankers'}, ()),
}
STAGES = ('--rerank', '--reranker')  # NAME@K:OPTIONS


@dataclass(frozen=True, slots=True)
class Model:
    """A checkpoint that a command runs: its name or folder, its kind in the catalog, its precision as asked for."""

    name: str
    kind: str
    precision: str


def command_name(words: Sequence[str]) -> str:
    """'search', 'index epic': the package's command, '' for another program's."""
    module = words[2].removeprefix('pyserini_repbert').lstrip('.')
    if module == words[2]:
        return ''
    action = f'{module} {words[3]}' if len(words) > 3 else module
    return action if action in COMMANDS else module


def models(words: Sequence[str]) -> list[Model]:
    """The checkpoints that a command runs, in its order; a search without an encoder runs that of its catalog index."""
    name = command_name(words)
    if name not in COMMANDS:
        return []
    precision = _precision(words)
    found = []
    for flag, kind in COMMANDS[name].models.items():
        for value in values(words, flag):
            checkpoint = value.rpartition('@')[0] if flag in STAGES else value
            found.append(Model(checkpoint, kind, precision))
    if name == 'search' and not values(words, '--encoder') and not values(words, '--sparse'):
        entry = catalog.find('indexes', next(iter(values(words, '--index')), ''))
        if entry is not None:
            found.insert(0, Model(str(entry.values['encoder']), 'encoders', precision))
    return found


def values(words: Sequence[str], flag: str) -> list[str]:
    """What is given for a flag, as `--flag value` or `--flag=value`, each time that it comes."""
    found = [word.partition('=')[2] for word in words if word.startswith(f'{flag}=')]
    return found + [after for word, after in itertools.pairwise(words) if word == flag]


def runs_model(words: Sequence[str]) -> bool:
    """Whether a command runs a model: a search does without `--sparse`, and with it where it names an encoder."""
    dense = command_name(words) == 'search' and not values(words, '--sparse')
    return dense or bool(models(words))


def searches_named_index(words: Sequence[str]) -> bool:
    """Whether a command may build the vectors of a catalog index, and so its precision and tokenizer shape them."""
    index = next(iter(values(words, '--index')), '')
    return runs_model(words) and catalog.find('indexes', index) is not None and not Path(index).exists()


def with_precision(words: Sequence[str], precision: str) -> list[str]:
    """The command in `precision`, where it runs a model."""
    if not runs_model(words):
        return list(words)
    others = (word for word in _without(words, '--precision') if word not in PRECISIONS.values())
    return [*others, PRECISIONS[precision]]


def with_batches_of_one(words: Sequence[str]) -> list[str]:
    """The command with one text, or topic, in a batch, where it has a flag for that and runs a model."""
    if not runs_model(words):
        return list(words)
    changed = list(words)
    for flag in COMMANDS[command_name(words)].batch:
        changed = [*_without(changed, flag), flag, '1']
    return changed


def with_threads(words: Sequence[str], threads: int) -> list[str]:
    """The command with another number after `--threads`, where it has that flag."""
    if not values(words, '--threads'):
        return list(words)
    return [*_without(words, '--threads'), '--threads', str(threads)]


def with_checkpoints(words: Sequence[str], renamed: Callable[[str], str]) -> list[str]:
    """The command with other checkpoints: `renamed` gives each one's folder from what the command calls it."""
    name = command_name(words)
    changed = list(words)
    if name not in COMMANDS:
        return changed
    for position, word in enumerate(words):
        flag, equals, value = word.partition('=')
        if flag not in COMMANDS[name].models:
            continue
        where = position if equals else position + 1
        given = value if equals else words[where]
        called, at, rest = given.rpartition('@') if flag in STAGES else (given, '', '')
        changed[where] = (f'{flag}=' if equals else '') + renamed(called) + at + rest
    if name == 'search' and not values(words, '--encoder'):
        changed += [
            text for own in models(words) if own.kind == 'encoders' for text in ('--encoder', renamed(own.name))
        ]
    return changed


def _precision(words: Sequence[str]) -> str:
    """What the command's flags ask for."""
    flagged = [kind for kind, flag in PRECISIONS.items() if flag in words]
    return next(iter([*values(words, '--precision'), *flagged]), 'float32')


def _without(words: Sequence[str], flag: str) -> list[str]:
    kept, skip = [], False
    for word in words:
        if skip or word == flag or word.startswith(f'{flag}='):
            skip = word == flag
            continue
        kept.append(word)
    return kept
