"""Scans: how the vectors nearest to a question's are found without exact search.

Extensions add them (`Extension.scans`). The name of a scan is what asks for it everywhere: the
field of `PipelineSpec` and the flag, `ann=True` of a searcher, the setting of a service, and the
ranking of an index.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import by_name, loaded
from pyserini_repbert.extension_words import missing_extension

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pyserini_repbert.index.dense import DenseBundle
    from pyserini_repbert.search.scores import TopRows


class OpenScan(Protocol):
    """A scan of some vectors, open.

    Attributes
    ----------
    name : of the scan
    sha256 : of the files it reads, for the records of runs
    """

    name: str
    sha256: str

    def computing_in(self, threads: int) -> AbstractContextManager[None]:
        """A context in which it computes in so many threads."""


class BundleScan(OpenScan, Protocol):
    """A scan of a dense bundle."""

    def search(self, queries: NDArray[np.float32], k: int) -> list[TopRows]:
        """The k best rows for each query, float32 (n, d), and all that tie with the last."""


class VectorScan(ABC):
    """A way to find the best rows of vectors.

    Attributes
    ----------
    name : of its flag and its rankings, of the field of `PipelineSpec` that asks for it, and of the
        setting of a service that offers it: 'ann'
    """

    name: str

    @abstractmethod
    def of_bundle(self, bundle: DenseBundle, verify: bool) -> BundleScan:
        """The scan of a dense bundle.

        Parameters
        ----------
        bundle : the vectors
        verify : compare the files that the scan reads with their checksums

        Raises InputError for a bundle that cannot be scanned so, DamagedFileError for a file that
        is not intact.
        """


@cache
def scans() -> Mapping[str, VectorScan]:
    """The scans that extensions add, by name."""
    return by_name('scan', loaded('scans'))


def asked_scan(values: Mapping[str, Any]) -> str:
    """The name of the requested scan; '' for exact search.

    `values` says whether each is requested, by name. Raises InputError for an unknown name, and if
    several are requested.
    """
    for name in values:
        if name not in scans():
            raise InputError(
                f"there is no way to search named '{name}'{missing_extension(name)}",
                parameters=(name,),
            )
    asked = [name for name, is_asked in values.items() if is_asked]
    if len(asked) > 1:
        raise InputError(
            f'{" and ".join(asked)} were asked for: vectors are searched in one way',
            parameters=asked,
        )
    return asked[0] if asked else ''
