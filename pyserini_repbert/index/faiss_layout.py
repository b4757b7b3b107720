"""Pyserini's FAISS layout, a folder with `index` and `docid`: read, searched and written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.checksums import CHECKSUMS, verify_checksums, write_checksums
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.files import StrPath, atomic_folder, check_replaced
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.index.faiss_form import DOCIDS, FAISS_FILES, FAISS_FORM, INDEX

_ROWS = 65536  # rows added at a time


def read_faiss(path: Path, advice: str, flag: int = 0) -> Any:
    """An index of FAISS.

    Parameters
    ----------
    path : of its file
    advice : what to do about another file
    flag : of FAISS's `read_index`: how it is read

    Raises DamagedFileError, with `advice`, for another file.
    """
    import faiss

    try:
        return faiss.read_index(str(path), flag)
    except RuntimeError as error:
        raise DamagedFileError(
            f'{path} is not a FAISS index ({str(error).splitlines()[0]}): {advice}'
        ) from error


class FaissFolder:
    """An index folder in Pyserini's layout, of any kind that FAISS can read.

    `verify` compares its files with the checksums beside them, if there are any (this package
    exports them).
    """

    # Its vectors cannot be read for a sample.
    sample = None
    sample_mean = None

    def __init__(self, folder: StrPath, verify: bool = True) -> None:
        self.folder = Path(folder)
        if verify and (self.folder / CHECKSUMS).is_file():
            verify_checksums(self.folder, FAISS_FILES)
        self.index = read_faiss(self.folder / INDEX, 'export it again')
        try:
            self._docids = (self.folder / DOCIDS).read_text(encoding='utf-8').splitlines()
        except UnicodeDecodeError as error:
            raise DamagedFileError(
                f'{self.folder / DOCIDS} is not valid UTF-8: export it again'
            ) from error
        self.dimension = int(self.index.d)
        if len(self._docids) != self.index.ntotal:
            raise DamagedFileError(
                f'{self.folder} has {self.index.ntotal} vectors but {len(self._docids)} docids: '
                'export it again'
            )

    def __len__(self) -> int:
        return len(self._docids)

    def docids(self, rows: NDArray[np.int64]) -> list[str]:
        """The docids of many rows."""
        return [self._docids[row] for row in rows.tolist()]

    def search(
        self, query: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores, float32 (m,), and rows, int64 (m,), of a query's best hits, best first.

        They are at least the k best and all that tie with the last of these. The query is float32
        (d,). Raises DamagedFileError for scores that are not finite, and for rows without docids.
        """
        wanted = min(k, len(self))
        while wanted:
            asked = min(wanted + 1, len(self))
            all_scores, all_rows = self.index.search(query[None, :], asked)
            is_hit = all_rows[0] >= 0
            scores = all_scores[0][is_hit]
            rows = all_rows[0][is_hit]
            if not np.isfinite(scores).all() or rows.max(initial=0) >= len(self):
                raise DamagedFileError(
                    f'{self.folder / INDEX} gives a score that is not finite, or a row that has no '
                    'docid: export it again'
                )
            is_whole = asked == len(self) or len(rows) <= wanted
            if is_whole or scores[-1] != scores[min(k, len(rows)) - 1]:
                return scores, rows
            wanted *= 2
        return np.empty(0, np.float32), np.empty(0, np.int64)


def export_faiss(
    bundle: DenseBundle,
    output: StrPath,
    on_progress: Callable[[int], object] = int,
    overwrite: bool = False,
) -> None:
    """Write a dense bundle as Pyserini's FAISS layout.

    It is a flat inner-product index of float32 vectors. FAISS holds the whole index in memory until
    it is written.

    Parameters
    ----------
    bundle : the dense index to export
    output : the folder to write
    on_progress : is given the number of vectors that were added, from time to time
    overwrite : replace an export that is in `output`, once the new one is complete

    Raises InputError for an output inside the index, or one that exists and is not replaced.
    """
    import faiss

    target = Path(output)
    check_replaced(target, overwrite, DOCIDS, FAISS_FORM)
    if bundle.folder.resolve() in target.resolve().parents:
        raise InputError(
            f'output {target} is inside the index {bundle.folder}: give another folder'
        )
    index = faiss.IndexFlatIP(bundle.settings.dimension)
    for _, vectors in bundle.blocks(_ROWS):
        index.add(np.ascontiguousarray(vectors, dtype=np.float32))
        on_progress(len(vectors))
    with atomic_folder(target, FAISS_FORM if overwrite else None) as folder:
        faiss.write_index(index, str(folder / INDEX))
        with open(folder / DOCIDS, 'w', encoding='utf-8', newline='\n') as stream:
            for shard in bundle.shards:
                stream.writelines(f'{docid}\n' for docid in shard.docids)
        write_checksums(folder)
