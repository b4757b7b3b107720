"""Neural ranking for Pyserini: RepBERT, EPIC, monoBERT/duoBERT, CEDR, and interleave fusion with
Lucene's rankings.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyserini_repbert.interop.pyserini import register as register
    from pyserini_repbert.ranking import Candidate as Candidate, Query as Query, Ranking as Ranking

__version__ = '0.4.0'


def lazily(
    package: str, names: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package (PEP 562) that imports `names`, by
    module, on first use.
    """
    modules: dict[str, str] = {}
    for module, names_of_module in names.items():
        modules |= dict.fromkeys(names_of_module, module)

    def __getattr__(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f'module {package!r} has no attribute {name!r}')
        value = getattr(importlib.import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__, lambda: sorted(modules), sorted(modules)


_NAMES = {
    'pyserini_repbert.interop.pyserini': ('register',),
    'pyserini_repbert.ranking': ('Candidate', 'Query', 'Ranking'),
}
__getattr__, __dir__, __all__ = lazily(__name__, _NAMES)
