"""The options of `Collection.open` that name further models: 'sparse', and those of extensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import representations

# Says what ranks beside vectors: BM25, nothing, or a further model.
SPARSE = 'sparse'
BM25 = 'bm25'
NONE = 'none'
# Which extension of this package stores a further model, by the option that names the model, and by
# what the record of a shard calls it.
_STORED_BY = {
    SPARSE: 'learned_sparse',
    'terms': 'learned_sparse',
    'multi_vector': 'token_vectors',
    'tokens': 'token_vectors',
}


def model_options() -> tuple[str, ...]:
    """The options that name further models, or none."""
    options = [SPARSE, *(kind.option for kind in representations())]
    return tuple(dict.fromkeys(options))


def names_model(option: str, model: Any) -> bool:
    """Whether what is given for one of `model_options` is a further model, or its name."""
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
                f"no extension stores the model that '{option}' names: {missing_advice(option)}, "
                'or leave it out',
                parameters=(option,),
            )


def missing_advice(name: str) -> str:
    """What to do where no extension stores a further model.

    `name` is of the option that names the model, or of what shards have of it.
    """
    if name in _STORED_BY:
        return f"install the extension '{_STORED_BY[name]}', which does"
    return 'install the extension that does'
