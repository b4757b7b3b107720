"""Neural ranking for Pyserini: RepBERT, EPIC, monoBERT/duoBERT, CEDR, and interleave fusion with Lucene's rankings."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyserini_repbert.interop.pyserini import register as register
    from pyserini_repbert.ranking import Candidate as Candidate, Query as Query, Ranking as Ranking

__version__ = '0.3.0'


def lazily(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package (PEP 562) whose names are imported on first use.

    `modules` has the module of each name.
    """

    def __getattr__(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f'module {package!r} has no attribute {name!r}')
        value = getattr(importlib.import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    names = sorted(modules)
    return __getattr__, lambda: names, names


_MODULES = {
    'register': 'pyserini_repbert.interop.pyserini',
    'Candidate': 'pyserini_repbert.ranking',
    'Query': 'pyserini_repbert.ranking',
    'Ranking': 'pyserini_repbert.ranking',
}
__getattr__, __dir__, __all__ = lazily(__name__, _MODULES)
