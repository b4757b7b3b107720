"""`BundlePart`: what an extension keeps in the folder of a bundle."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path


class BundlePart:
    """What an extension keeps in the folder of a bundle, of vectors or of term weights; each method
    does nothing unless it is replaced. No command copies a bundle, so there is no hook for that.

    Attributes
    ----------
    files : regular expressions, as in `FolderForm`. A bundle may be written again beside such files
    """

    files: tuple[str, ...] = ()

    def replacing(self, folder: Path) -> AbstractContextManager[None]:
        """A context in which other shards replace a bundle's.

        It removes what belongs to the previous shards.

        Raises BusyError if another process makes it.
        """
        return nullcontext()

    def check(self, folder: Path, index_sha256: str) -> list[str]:
        """Compare its files; returns what `index check` says of them, a line each.

        Parameters
        ----------
        folder : of the bundle
        index_sha256 : of its manifest: the state of the bundle

        Raises DamagedFileError.
        """
        return []
