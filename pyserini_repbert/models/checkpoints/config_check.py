"""Checking a checkpoint's config.json: its values, and that its sizes are those of the weights.

Wrong sizes are found before a model of those sizes is built.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyserini_repbert.errors import DamagedFileError, InputError

LARGEST_LIMIT = 1_000_000  # wordpieces of a text
_EMBEDDINGS = 'bert.embeddings.{}_embeddings.weight'
_FEED_FORWARD = 'bert.encoder.layer.0.intermediate.dense.weight'
_LAYER = re.compile(r'bert\.encoder\.layer\.(\d+)\.')
_TEXTS = ('system', 'layout', 'variant', 'architecture')
_FLAGS = ('joint', 'pad_query', 'normalised')


def check_config(path: Path, config: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise DamagedFileError, naming the file `path`, unless it is the config.json of a BERT with these weights.

    Parameters
    ----------
    shapes : of the weights, by name, the body as `bert.*`; sizes that they do not tell are not compared
    """
    from pyserini_repbert.models.bert_config import BertConfig

    try:
        check_ranking(config.get('ranking', {}))
        sizes = BertConfig.from_dict(config)
    except InputError as error:
        raise DamagedFileError(f'{path}: {error}') from error
    layers = [int(match[1]) for match in map(_LAYER.match, shapes) if match]
    told: dict[str, int] = {'num_hidden_layers': max(layers) + 1} if layers else {}
    for name, places in {
        _EMBEDDINGS.format('word'): ('vocab_size', 'hidden_size'),
        _EMBEDDINGS.format('position'): ('max_position_embeddings', 'hidden_size'),
        _EMBEDDINGS.format('token_type'): ('type_vocab_size', 'hidden_size'),
        _FEED_FORWARD: ('intermediate_size', 'hidden_size'),
    }.items():
        if len(shapes.get(name, ())) == len(places):
            told |= dict(zip(places, shapes[name], strict=True))
    for name, size in told.items():
        if getattr(sizes, name) != size:
            raise DamagedFileError(
                f'{path}: {name} is {getattr(sizes, name)}, the weights beside it have {size}: restore the file'
            )


def check_ranking(ranking: object) -> None:
    """Raise InputError for a `ranking` that is not an object, or has values that no system has."""
    if not isinstance(ranking, Mapping):
        raise InputError(f'ranking is {ranking!r}, an object was expected')
    for name, value in ranking.items():
        if name.startswith('max_') or name == 'k_max':
            if type(value) is not int or not 1 <= value <= LARGEST_LIMIT:
                raise InputError(f'ranking.{name} is {value!r}, a whole number from 1 to {LARGEST_LIMIT} was expected')
        elif name == 'doc_token_type' and value not in (0, 1):
            raise InputError(f'ranking.{name} is {value!r}, 0 or 1 was expected')
        elif name in _TEXTS and not isinstance(value, str):
            raise InputError(f'ranking.{name} is {value!r}, a text was expected')
        elif name in _FLAGS and not isinstance(value, bool):
            raise InputError(f'ranking.{name} is {value!r}, true or false was expected')
