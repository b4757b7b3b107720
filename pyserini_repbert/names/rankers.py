"""What a ranker's name means: the system of a checkpoint folder, or a class of the user's own (`MODULE:CLASS`)."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyserini_repbert.data.json_values import parse_json
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.ranking import Ranker

_FORM = re.compile(r'[^\W\d][\w.]*:[^\W\d]\w*')


def system_of(folder: StrPath) -> str | None:
    """The `ranking.system` in a checkpoint folder's config.json; None without one."""
    try:
        config = parse_json((Path(folder) / 'config.json').read_text(encoding='utf-8'))
        system = config['ranking']['system']
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(system)


def names_class(name: str) -> bool:
    """Whether a name has the form `MODULE:CLASS`, and is no file or folder."""
    return bool(_FORM.fullmatch(name)) and not Path(name).exists()


def ranker_class(name: str, searches: bool) -> type[Ranker]:
    """The class that `MODULE:CLASS` names: a first stage, or else a reranker.

    Raises InputError for a module that Python does not find (in the working directory or by PYTHONPATH), and for a name
    that leads to no such class.
    """
    module, _, attribute = name.partition(':')
    try:
        chosen = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"'{name}': {error}; expected MODULE:CLASS, the module's folder in PYTHONPATH") from error
    if not (inspect.isclass(chosen) and issubclass(chosen, Ranker) and (chosen.reads is None) == searches):
        wanted = 'first stage: subclass Ranker' if searches else 'reranker: subclass Reranker'
        raise InputError(f"'{name}' is no {wanted}")
    return chosen


def arguments_of(kind: Any, name: str, options: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments to call a ranker's class with: the options, and the settings that it has.

    Raises InputError for an option that the class lacks.
    """
    known = inspect.signature(kind).parameters
    if unknown := next((key for key in options if key not in known), None):
        raise InputError(f"'{name}' ({kind.__name__}) has no option '{unknown}': leave it out")
    return {key: value for key, value in settings.items() if key in known and value is not None} | dict(options)
