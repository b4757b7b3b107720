"""The options of `Collection.open` that name further models: 'sparse', and extensions' options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import representations
from pyserini_repbert.extension_words import missing_extension

# Says what ranks beside vectors: BM25, nothing, or a further model.
SPARSE = 'sparse'
BM25 = 'bm25'
NONE = 'none'


def model_options() -> tuple[str, ...]:
    """The options that name further models, or none."""
    options = [SPARSE, *(kind.option for kind in representations())]
    return tuple(dict.fromkeys(options))


def names_model(option: str, model: Any) -> bool:
    """Whether the value given for one of `model_options` is a further model or its name."""
    without = (None, NONE, BM25) if option == SPARSE else (None, NONE)
    return model not in without


def check_options(given: Mapping[str, Any]) -> None:
    """Raises InputError for a further model that no extension stores.

    `given` has names of models, or of none, or opened models, by their options.
    """
    stored = [kind.option for kind in representations()]
    for option, model in given.items():
        is_own = option == SPARSE and not names_model(option, model)
        if model is not None and not is_own and option not in stored:
            raise InputError(
                f"'{option}' names a model, and no extension that is installed stores what it makes"
                f'{missing_extension(f"{option}_model")}',
                parameters=(option,),
            )
