"""The vectors of a dense bundle by docid, for a Lucene index of the same passages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.lucene.vector_indexer import MAX_DIMENSION


class VectorsByDocid:
    """Hands out a bundle's vectors by docid, and keeps track of those taken.

    Parameters
    ----------
    bundle : the vectors
    corpus : the name of the corpus that the docids come from, for errors

    Raises
    ------
    InputError
        for vectors longer than Lucene takes
    """

    def __init__(self, bundle: DenseBundle, corpus: str) -> None:
        dimension = bundle.settings.dimension
        if dimension > MAX_DIMENSION:
            raise InputError(
                f'index {bundle.folder} has vectors of {dimension} dimensions, Lucene takes at most {MAX_DIMENSION}: '
                'search the index itself'
            )
        self.bundle, self.corpus = bundle, corpus
        self._taken = np.zeros(len(bundle), bool)

    def take(self, docids: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of docids, float32 (n, d). Raises MismatchError for a docid that the bundle lacks."""
        rows = self.bundle.rows(docids)
        if (rows < 0).any():
            raise MismatchError(
                f"passage '{docids[int(np.argmin(rows))]}' of corpus {self.corpus} has no vector in index "
                f'{self.bundle.folder}: give the corpus that it was encoded from'
            )
        self._taken[rows] = True
        return self.bundle.vectors(rows)

    def check_all_taken(self) -> None:
        """Raises MismatchError if a vector was not taken."""
        if not self._taken.all():
            docid = self.bundle.docid(int(np.argmin(self._taken)))
            raise MismatchError(
                f"index {self.bundle.folder} has a vector of '{docid}', which corpus {self.corpus} has no passage "
                'with text of: give the corpus that it was encoded from'
            )

    def record(self) -> dict[str, object]:
        """The entry on vectors in a Lucene index's record."""
        settings = self.bundle.settings
        return {
            'encoder': settings.encoder,
            'weights_sha256': settings.weights_sha256,
            'dimension': settings.dimension,
        }
