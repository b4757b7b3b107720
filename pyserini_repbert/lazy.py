"""Public names that are imported on first use, so that importing a package (or asking for --help) stays quick."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any


def exports(package: str, where: dict[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` for `package`.

    Parameters
    ----------
    package : the package's `__name__`
    where : the module that defines names, relative to `package` ('.searcher') -> the names, with a space between
    """
    modules = {name: module for module, names in where.items() for name in names.split()}

    def __getattr__(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f'module {package!r} has no attribute {name!r}')
        value = getattr(importlib.import_module(modules[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    names = sorted(modules)
    return __getattr__, lambda: names, names
